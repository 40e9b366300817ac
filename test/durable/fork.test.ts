import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  Call,
  Content,
  Hooks,
  Kernel,
  MediaStore,
  type Message,
  ProtocolRegistry,
  Provider,
  RunState,
  RunStore,
  RunWorker,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"
import { originsOf } from "../../src/internal/loop/fork.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { subjects } from "../support/crashScripts.ts"
import { put } from "../support/runStore.ts"

const model = { id: "scripted", capabilities: ["text"] as const }
const agent = Agent.make({ name: "clerk", instructions: "", model, skills: "all" })

/** Says what it was told: the results it has read, in order. */
const echo = MockProvider.layerOf(
  MockProvider.make().onCall(({ messages }: Provider.Request) => {
    const said = messages.filter((message) => message.role === "assistant").length
    const read = messages.flatMap((message) => message.content).map((part) => ("text" in part ? part.text : ""))
    if (said < 2) return `<block type="command" name="pay">${JSON.stringify({ turn: said })}</block>`
    return `<block type="final">${read.filter((text) => text.includes('name="pay"')).length} calls</block>`
  })
)

const world = Effect.gen(function* () {
  const store = yield* RunStore.makeMemory
  const entered: Array<string> = []
  const pay = Skill.dynamic("pay", {
    description: "pays",
    inputSchema: { type: "object" },
    execute: (_, { callId }) => Effect.sync(() => (entered.push(callId), "paid"))
  })
  const layer = Kernel.layerNoProvider.pipe(
    Layer.provide([SkillRegistry.layer(pay), ProtocolRegistry.layer(), MediaStore.layerMemory, echo]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )
  return { store, entered, layer }
})

const journalOf = (store: RunStore.RunStoreShape, runId: string) => Stream.runCollect(store.read(runId))

/** A journal in which every kind of record names calls: those of its run, and one that is none of them. */
const naming = (runId: string, options?: Journal.Options) => {
  const run = Journal.begin(runId, options)
  const records = [run.last().record]
  const say = (...of: Parameters<typeof run.commit>) => void records.push(run.commit(...of).record)
  const turnId = `${runId}:t1`
  const call = (n: number): Call.Call => ({
    callId: `${turnId}.${n}`,
    name: "pay",
    input: {},
    kind: "skill",
    review: "unreviewed"
  })
  const result = (n: number) => Call.succeeded(call(n), [Content.text("paid")])
  const answer = (n: number) => ({ callId: `${turnId}.${n}`, approved: false })
  const asked = (n: number) => ({ callId: `${turnId}.${n}`, name: "pay", input: {}, reason: "it costs" })
  const calls = [call(0), call(1), call(2), call(3)]
  const said = {
    role: "assistant",
    content: calls.map(({ callId }) => Content.toolUse(callId, "pay"))
  } as const
  const foreign = "another root:t1/a:t1.0"
  const metadata = { callIds: [call(1).callId, foreign], questions: [asked(1)], room: 7 }
  say("phase", [{ type: "turn_started", turnId }])
  const prepared = { type: "turn_prepared", model: "m", dialect: "tools", tools: [] } as const
  say("phase", [{ ...prepared, prompt: { base: 1, append: [said] } }])
  say("phase", [{ type: "model_started", attempt: 1 }])
  const completed = { type: "model_completed", model: "m", usage: null, finishReason: "stop", latencyMs: 1 } as const
  say("phase", [{ ...completed, message: said, outcome: { type: "tools" }, calls }])
  say("phase", [{ type: "tool_calls_started", calls, questions: [asked(1), { ...asked(2), answer: answer(2) }] }])
  say("phase", [{ type: "paused", reason: "approval_required", metadata }])
  say("resume", [], { resumed: true, answers: [answer(1)] })
  say("phase", [{ type: "tool_call_started", callId: call(0).callId, change: { type: "rewrite", call: call(0) } }])
  say("phase", [{ type: "tool_call_started", callId: call(1).callId, change: { type: "skip", result: result(1) } }])
  say("pause", [{ type: "paused", reason: "approval_required", metadata: { questions: [7, { room: 7 }] } }], {
    asked: [asked(3), { ...asked(2), answer: answer(2) }]
  })
  say("launch", [], { launched: [call(0).callId] })
  say("resume", [], { resumed: true, retried: [call(0).callId] })
  say("launch", [], { launched: [call(0).callId, call(3).callId] })
  say("resume", [], { resumed: true, resolved: [result(0)] })
  say("phase", [{ type: "tool_call_completed", callId: call(3).callId, result: result(3) }])
  say("phase", [{ type: "tool_calls_completed" }])
  say("phase", [{ type: "turn_completed", turnId }])
  say("pause", [{ type: "paused", reason: "sleeps", metadata: "until ten" }])
  return records
}

/** A message that tells what was called, but no longer what came of it. */
const withoutOutput = (message: Message.Message): Message.Message => ({
  ...message,
  content: message.content.map((part) => (part.type === "tool_result" ? { ...part, content: [] } : part))
})

describe("Kernel.fork", () => {
  it.effect("finds no run in a journal that does not begin with the beginning of one (S-16)", () =>
    Effect.gen(function* () {
      const { layer, store } = yield* world
      yield* Effect.provide(Kernel.run(agent, "go", { runId: "run" }), layer)
      const damaged = {
        ...store,
        read: (runId: string) =>
          Stream.map(store.read(runId), (record) => (record.revision === 1 ? { ...record, events: [] } : record))
      }
      const refused = yield* Effect.flip(Effect.provideService(Kernel.fork("run"), RunStore.RunStore, damaged))
      assert.deepStrictEqual(refused, new RunStore.RunNotFound({ runId: "run" }))
      assert.strictEqual((yield* store.list()).length, 1)
    })
  )

  it.effect("goes on from any commit; the original is untouched, and nothing before it runs again", () =>
    Effect.gen(function* () {
      const { entered, layer, store } = yield* world
      const result = yield* Effect.provide(Kernel.run(agent, "go", { runId: "run" }), layer)
      const before = yield* journalOf(store, "run")
      entered.length = 0
      for (const { revision } of before) {
        const id = yield* Effect.provide(Kernel.fork("run", { revision, runId: `fork${revision}` }), layer)
        const state = Option.getOrThrow(yield* store.load(id))
        assert.deepStrictEqual(state.forkedFrom, { runId: "run", revision })
        assert.strictEqual(state.revision, revision)
        const inFlight = state.currentTurn?.inFlight.map((call) => call.callId) ?? []
        const replay = Object.fromEntries(inFlight.map((callId) => [callId, "retry" as const]))
        const forked = yield* Effect.provide(Kernel.resume(agent, id, { recover: replay }), layer)
        assert.strictEqual(forked.text, result.text)
        const after = yield* journalOf(store, id)
        assert.deepStrictEqual(
          after.map((record) => RunState.isCopied(state, record.revision)),
          after.map((record) => record.revision <= revision)
        )
      }
      assert.deepStrictEqual(yield* journalOf(store, "run"), before)
      // Calls of a fork have ids of their own: no skill takes one for a repetition of the original's.
      assert.isTrue(entered.every((callId) => /^fork\d+:t[12]\.0$/.test(callId)))
      assert.strictEqual(new Set(entered).size, entered.length)
    })
  )

  it.effect("leaves no half behind where its process died: nobody goes on with one, and a worker removes it", () =>
    Effect.gen(function* () {
      const { layer, store } = yield* world
      yield* Effect.provide(Kernel.run(agent, "go", { runId: "run" }), layer)
      yield* Effect.provide(Kernel.fork("run", { revision: 9, runId: "fork" }), layer)
      const whole = yield* journalOf(store, "fork")
      for (const length of whole.keys()) {
        const { entered, layer, store } = yield* world
        let state: RunState.RunState | undefined
        for (const record of whole.slice(0, length + 1)) {
          const next = RunState.advance(state, record)
          yield* state === undefined ? store.create(record, next) : store.commit(record, next)
          state = next
        }
        const isWhole = length === whole.length - 1
        const resumed = yield* Effect.result(Effect.provide(Kernel.resume(agent, "fork"), layer))
        assert.strictEqual(Result.isFailure(resumed) && resumed.failure._tag === "RunNotFound", !isWhole)
        if (isWhole) continue
        yield* TestClock.adjust("11 minutes")
        yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), layer)
        assert.isTrue(Option.isNone(yield* store.head("fork")))
        assert.deepStrictEqual(entered, [])
      }
    })
  )

  it.effect("runs on what was changed: another result, another answer, another context", () =>
    Effect.gen(function* () {
      const { entered, layer, store } = yield* world
      yield* Effect.provide(Kernel.run(agent, "go", { runId: "run", context: { mood: "good" } }), layer)
      const completed = (yield* journalOf(store, "run")).find(
        (record) => record.events[0]?.type === "tool_call_completed"
      )
      assert.isDefined(completed)
      entered.length = 0
      const id = yield* Effect.provide(
        Kernel.fork("run", {
          revision: completed.revision,
          edit: (record) => ({
            ...record,
            events: record.events.map((event) =>
              event.type === "tool_call_completed"
                ? { ...event, result: { ...event.result, output: [{ type: "text" as const, text: "refused" }] } }
                : event.type === "run_started"
                  ? { ...event, context: { mood: "bad" } }
                  : event
            )
          })
        }),
        layer
      )
      assert.match(id, /^run_[0-9a-f]{24}$/)
      yield* Effect.provide(Kernel.resume(agent, id), layer)
      const state = Option.getOrThrow(yield* store.load(id))
      assert.deepStrictEqual(state.context, { mood: "bad" })
      const texts = state.prompt.flatMap((message) => message.content).map((part) => ("text" in part ? part.text : ""))
      assert.isTrue(texts.some((text) => text.includes("refused")))
      assert.strictEqual(entered.length, 1)
      const original = Option.getOrThrow(yield* store.load("run"))
      assert.isFalse(JSON.stringify(original.prompt).includes("refused"))
    })
  )

  it.effect("shows who changes it its own ids, and has the beginning whatever revision is asked for", () =>
    Effect.gen(function* () {
      const { layer, store } = yield* world
      yield* Effect.provide(Kernel.run(agent, "go", { runId: "run" }), layer)
      const shown = new Set<string>()
      const edit = (record: RunState.RunRecord) => {
        for (const { runId } of [record, ...record.events]) shown.add(runId)
        return record
      }
      yield* Effect.provide(Kernel.fork("run", { runId: "fork", edit }), layer)
      assert.deepStrictEqual([...shown], ["fork"])
      yield* Effect.provide(Kernel.fork("run", { runId: "anew", revision: 0 }), layer)
      assert.strictEqual(Option.getOrThrow(yield* store.load("anew")).revision, 1)
    })
  )

  it.effect("is no orphan, however old the original: no worker takes it up while it is made, nor after (R-2)", () =>
    Effect.gen(function* () {
      const { entered, layer, store } = yield* world
      yield* Effect.provide(Kernel.run(agent, "go", { runId: "run" }), layer)
      yield* TestClock.adjust("20 minutes")
      entered.length = 0
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), layer))
      const sluggish: RunStore.RunStoreShape = {
        ...store,
        commit: (record, state) => Effect.andThen(Effect.sleep("90 seconds"), store.commit(record, state))
      }
      const forking = yield* Effect.forkChild(
        Effect.provideService(Kernel.fork("run", { revision: 14, runId: "twin" }), RunStore.RunStore, sluggish)
      )
      yield* TestClock.adjust("25 minutes")
      assert.strictEqual(yield* Fiber.join(forking), "twin")
      assert.strictEqual(Option.getOrThrow(yield* store.head("twin")).revision, 14)
      assert.deepStrictEqual(entered, [])
      const [first] = yield* journalOf(store, "twin")
      assert.strictEqual(first?.createdAt, 1_200_000)
      assert.strictEqual(first?.events[0]?.at, 0)
      // Nobody came for it: from here on it is like any run that was left behind.
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(Option.getOrThrow(yield* store.head("twin")).status.type, "completed")
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("is made whole or not at all: no worker goes on with a half of it (R-2)", () =>
    Effect.gen(function* () {
      const { entered, layer, store } = yield* world
      yield* Effect.provide(Kernel.run(agent, "go", { runId: "run" }), layer)
      entered.length = 0
      const full = new RunStore.StoreError({ operation: "commit", reason: "unavailable", detail: "no space left" })
      const fork = (commit: RunStore.RunStoreShape["commit"]) =>
        Effect.provideService(Kernel.fork("run", { runId: "twin" }), RunStore.RunStore, { ...store, commit })
      const failing = fork((record, state) => (record.revision > 7 ? Effect.fail(full) : store.commit(record, state)))
      const refused = yield* Effect.forkChild(Effect.flip(failing))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(refused), full)
      const cutOff = yield* Effect.forkChild(
        fork((record, state) => (record.revision > 7 ? Effect.never : store.commit(record, state)))
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(cutOff)
      assert.isTrue(Option.isNone(yield* store.head("twin")))
      // It was stored, but nobody was told so before he gave it up.
      const late: RunStore.RunStoreShape = {
        ...store,
        create: (record, state) => Effect.andThen(store.create(record, state), Effect.sleep("1 second"))
      }
      const given = yield* Effect.forkChild(
        Effect.provideService(Kernel.fork("run", { runId: "twin" }), RunStore.RunStore, late)
      )
      yield* TestClock.adjust("500 millis")
      const stopped = yield* Effect.forkChild(Fiber.interrupt(given), { startImmediately: true })
      yield* TestClock.adjust("500 millis")
      yield* Fiber.join(stopped)
      assert.isTrue(Option.isNone(yield* store.head("twin")))
      yield* TestClock.adjust("20 minutes")
      yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), layer)
      assert.deepStrictEqual(entered, [])
      assert.isTrue(Option.isNone(yield* store.head("twin")))
      // The name is free again, and that of another run stays its own.
      assert.strictEqual(yield* fork(store.commit), "twin")
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Effect.flip(fork(store.commit)))._tag, "RunExists")
      assert.isTrue(Option.isSome(yield* store.head("twin")))
    })
  )

  it.live("is made of a store that fails for a moment, whether it took a record then or not (R-6)", () =>
    Effect.gen(function* () {
      const { layer, store } = yield* world
      yield* Effect.provide(Kernel.run(agent, "go", { runId: "run" }), layer)
      const lost = Effect.fail(new RunStore.StoreError({ operation: "commit", reason: "unavailable", detail: "lost" }))
      for (const takes of [true, false]) {
        let asked = 0
        // The first record, and the third.
        const flaky = <E>(taken: Effect.Effect<void, E>) =>
          Effect.suspend(() => {
            asked++
            if (asked !== 1 && asked !== 4) return taken
            return takes ? Effect.andThen(taken, lost) : lost
          })
        const weak: RunStore.RunStoreShape = {
          ...store,
          create: (record, state) => flaky(store.create(record, state)),
          commit: (record, state) => flaky(store.commit(record, state))
        }
        const id = yield* Effect.provideService(Kernel.fork("run", { revision: 5 }), RunStore.RunStore, weak)
        assert.strictEqual(Option.getOrThrow(yield* store.head(id)).revision, 5)
        assert.strictEqual(asked, 7)
      }
      assert.strictEqual((yield* store.list()).length, 3)
    })
  )

  it.effect("names its own calls wherever the conversation does, results that were cleared too", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const seen: Array<ReadonlyArray<string>> = []
      const counting = MockProvider.layerOf(
        MockProvider.make().onCall(({ messages }: Provider.Request) => {
          const parts = messages.flatMap((message) => message.content)
          seen.push(parts.flatMap((part) => ("callId" in part ? [`${part.type} ${part.callId}`] : [])))
          const said = messages.filter((message) => message.role === "assistant").length
          return said < 3 ? { calls: [{ id: "call_0", name: "look", params: {} }] } : "done"
        })
      )
      const cleared = Hooks.layer({
        onTurnPrepared: ({ prepared }) =>
          Effect.succeed({ value: { ...prepared, messages: prepared.messages.map(withoutOutput) } })
      })
      const look = Skill.dynamic("look", {
        description: "looks",
        inputSchema: { type: "object" },
        execute: () => Effect.succeed("much to see")
      })
      const layer = Kernel.layerNoProvider.pipe(
        Layer.provide([SkillRegistry.layer(look), ProtocolRegistry.layer(), MediaStore.layerMemory, counting, cleared]),
        Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
      )
      const native = Agent.make({ name: "clerk", instructions: "", model, skills: "all", dialect: "tools" })
      yield* Effect.provide(Kernel.run(native, "go", { runId: "run" }), layer)
      const asked = seen.at(-1)?.map((id) => id.replace(" run:", " twin:"))
      assert.strictEqual(asked?.length, 6)
      const third = (yield* journalOf(store, "run")).findLast(
        ({ events }) => events[0]?.type === "tool_calls_completed"
      )
      const id = yield* Effect.provide(Kernel.fork("run", { revision: third?.revision ?? 0, runId: "twin" }), layer)
      yield* Effect.provide(Kernel.resume(native, id), layer)
      assert.deepStrictEqual(seen.at(-1), asked)
    })
  )

  it.live("keeps a question open: its answer names the fork's own call (DR-22)", () =>
    Effect.gen(function* () {
      const subject = subjects().find(({ name }) => name === "approval")
      assert.isDefined(subject)
      const store = yield* RunStore.makeMemory
      const layer = Kernel.layerNoProvider.pipe(
        Layer.provide(subject.layer),
        Layer.provide([ProtocolRegistry.layer(), MediaStore.layerMemory]),
        Layer.provideMerge(Layer.succeed(RunStore.RunStore, store)),
        Layer.orDie
      )
      const paused = yield* Effect.flip(Effect.provide(Kernel.run(subject.agent, "go", { runId: "run" }), layer))
      assert.strictEqual(paused._tag, "RunPaused")
      const id = yield* Effect.provide(Kernel.fork("run", { runId: "twin" }), layer)
      const answers = [{ callId: "call-a", approved: false, reason: "no" }]
      const denied = yield* Effect.provide(Kernel.resume(subject.agent, id, { answers: answers }), layer)
      assert.strictEqual(denied.text, "done")
      assert.isTrue(denied.toolCallsMade[0]?.isError)
      assert.strictEqual(Option.getOrThrow(yield* store.head("run")).status.type, "paused")
    })
  )

  it.effect("of a task is a run of its own in each of its records, and names its own calls there", () =>
    Effect.gen(function* () {
      const { store } = yield* world
      const task = naming("root:t1/a", { rootRunId: "root", parentRunId: "root", taskId: "a", depth: 1 })
      let state: RunState.RunState | undefined
      for (const record of task) {
        const next = RunState.advance(state, record)
        yield* state === undefined ? store.create(record, next) : store.commit(record, next)
        state = next
      }
      yield* Effect.provideService(Kernel.fork("root:t1/a", { runId: "twin" }), RunStore.RunStore, store)
      const [first, ...rest] = naming("twin").map((record) => ({ ...record, createdAt: 0 }))
      const forkedFrom = { runId: "root:t1/a", revision: task.length }
      const events = first?.events.map((event) => ({ ...event, forkedFrom }))
      assert.deepStrictEqual<unknown>(yield* journalOf(store, "twin"), [{ ...first, events }, ...rest])
    })
  )

  it.effect("comes from the root of a task, and from all that was forked from, even in a circle", () =>
    Effect.gen(function* () {
      const { store } = yield* world
      const fork = (from: string, runId: string) =>
        Effect.provideService(Kernel.fork(from, { runId }), RunStore.RunStore, store)
      const origins = (runId: string) =>
        Effect.flatMap(store.load(runId), (state) => originsOf(store, Option.getOrThrow(state)))
      yield* put(store, [Journal.begin("first").last()])
      yield* fork("first", "second")
      yield* put(store, [Journal.begin("second:t1/a", { rootRunId: "second", parentRunId: "second" }).last()])
      yield* fork("second:t1/a", "third")
      assert.deepStrictEqual(yield* origins("third"), ["second", "first"])
      // The id is free again, and taken by a fork of its own fork.
      yield* store.remove(["first"])
      yield* fork("second", "first")
      assert.deepStrictEqual(yield* origins("second"), ["first", "second"])
    })
  )

  it.effect("a run that is not there cannot be forked, and an id is used once", () =>
    Effect.gen(function* () {
      const { layer } = yield* world
      yield* Effect.provide(Kernel.run(agent, "go", { runId: "run" }), layer)
      const none = yield* Effect.flip(Effect.provide(Kernel.fork("nobody"), layer))
      assert.strictEqual(none._tag, "RunNotFound")
      const taken = yield* Effect.flip(Effect.provide(Kernel.fork("run", { runId: "run" }), layer))
      assert.strictEqual(taken._tag, "RunExists")
    })
  )
})
