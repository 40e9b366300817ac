import { assert, describe, it } from "@effect/vitest"
import { Array as Arr, Effect, Fiber, Layer, Option, Stream } from "effect"
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
import { originsOf } from "../../src/store-kit/StoredRuns.ts"
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
  say("phase", [{ type: "tool_call_completed", callId: call(3).callId, result: { output: [Content.text("paid")] } }])
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
  it.effect("finds no run in a journal that does not start with a run's first record (S-16)", () =>
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

  it.effect("continues from any commit, with the original unchanged and no earlier call repeated", () =>
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

  it.effect("continues with the changed record: another result, another answer, another context", () =>
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

  it.effect("passes the fork's own ids to the function that changes it, and starts at revision 1 at the earliest", () =>
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

  it.effect("is not claimed by a worker while it is created, nor after, however old the original (R-2)", () =>
    Effect.gen(function* () {
      const { entered, layer, store } = yield* world
      yield* Effect.provide(Kernel.run(agent, "go", { runId: "run" }), layer)
      yield* TestClock.adjust("20 minutes")
      entered.length = 0
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), layer))
      const sluggish: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) => Effect.andThen(Effect.sleep("90 seconds"), store.append(records, state))
      }
      const forking = yield* Effect.forkChild(
        Effect.provideService(Kernel.fork("run", { revision: 14, runId: "twin" }), RunStore.RunStore, sluggish)
      )
      yield* TestClock.adjust("2 minutes")
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

  it.effect("is stored by one append, whole or not at all (R-2)", () =>
    Effect.gen(function* () {
      const { entered, layer, store } = yield* world
      yield* Effect.provide(Kernel.run(agent, "go", { runId: "run" }), layer)
      entered.length = 0
      const full = new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: "no space left" })
      const fork = (append: RunStore.RunStoreShape["append"]) =>
        Effect.provideService(Kernel.fork("run", { runId: "twin" }), RunStore.RunStore, { ...store, append })
      assert.deepStrictEqual(yield* Effect.flip(fork(() => Effect.fail(full))), full)
      const cutOff = yield* Effect.forkChild(fork(() => Effect.never))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(cutOff)
      assert.isTrue(Option.isNone(yield* store.head("twin")))
      const appended: Array<number> = []
      const whole = fork((records, state) => {
        appended.push(records.length)
        return store.append(records, state)
      })
      assert.strictEqual(yield* whole, "twin")
      assert.deepStrictEqual(appended, [(yield* journalOf(store, "run")).length])
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Effect.flip(fork(store.append)))._tag, "RunExists")
      assert.deepStrictEqual(entered, [])
    })
  )

  it.effect("succeeds on a store that fails for a moment, whether that stored the records or not (R-6)", () =>
    Effect.gen(function* () {
      const { layer, store } = yield* world
      yield* Effect.provide(Kernel.run(agent, "go", { runId: "run" }), layer)
      const lost = Effect.fail(new RunStore.StoreError({ operation: "append", reason: "unavailable", detail: "lost" }))
      for (const takes of [true, false]) {
        let asked = 0
        const weak: RunStore.RunStoreShape = {
          ...store,
          append: (records, state) =>
            Effect.suspend(() => {
              if (++asked > 1) return store.append(records, state)
              return takes ? Effect.andThen(store.append(records, state), lost) : lost
            })
        }
        const forking = yield* Effect.forkChild(
          Effect.provideService(Kernel.fork("run", { revision: 5 }), RunStore.RunStore, weak)
        )
        yield* TestClock.adjust("1 second")
        assert.strictEqual(Option.getOrThrow(yield* store.head(yield* Fiber.join(forking))).revision, 5)
        assert.strictEqual(asked, 2)
      }
      assert.strictEqual((yield* store.list()).length, 3)
    })
  )

  it.effect("renames its calls everywhere in the conversation, also in cleared results", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const seen: Array<ReadonlyArray<string>> = []
      const counting = MockProvider.layerOf(
        MockProvider.make().onCall(({ messages }: Provider.Request) => {
          const parts = messages.flatMap((message) => message.content)
          seen.push(parts.flatMap((part) => ("callId" in part ? [`${part.type} ${part.callId}`] : [])))
          const said = messages.filter((message) => message.role === "assistant").length
          return said < 3 ? { calls: [{ id: "call_0", name: "look", input: {} }] } : "done"
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
      assert.isTrue(denied.calls[0]?.isError)
      assert.strictEqual(Option.getOrThrow(yield* store.head("run")).status.type, "waiting")
    })
  )

  it.effect("of a task is an independent run in all its records, with its own call ids", () =>
    Effect.gen(function* () {
      const { store } = yield* world
      const task = naming("root:t1/a", { rootRunId: "root", parentRunId: "root", taskId: "a", depth: 1 })
      const state = RunState.fold(task)
      if (!Arr.isReadonlyArrayNonEmpty(task) || state === undefined) return assert.fail("a journal has records")
      yield* store.append(task, state)
      yield* Effect.provideService(Kernel.fork("root:t1/a", { runId: "twin" }), RunStore.RunStore, store)
      const [first, ...rest] = naming("twin").map((record) => ({ ...record, createdAt: 0 }))
      const forkedFrom = { runId: "root:t1/a", revision: task.length }
      const events = first?.events.map((event) => ({ ...event, forkedFrom }))
      assert.deepStrictEqual<unknown>(yield* journalOf(store, "twin"), [{ ...first, events }, ...rest])
    })
  )

  it.effect("descends from the root of a task and from all its origins, even in a cycle", () =>
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

  it.effect("fails for an unknown run, and for an id that is in use", () =>
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
