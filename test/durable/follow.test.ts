import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Queue, Schema, Stream } from "effect"
import { Agent, Kernel, Limits, Policy, Provider, type RunEvent, RunStore, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { soundRuns } from "../../src/store-kit/internal/storeGuard.ts"
import { LiveTree, treesOf } from "../../src/store-kit/internal/liveTree.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { command, final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"
import { plan } from "../support/workflow.ts"
import { times } from "../support/longRun.ts"

const agentOf = (...skills: ReadonlyArray<Skill.AnySkill>) => Agent.make({ instructions: "", model: "m", skills })

/** A model whose replies are sent piece by piece, as the test says; each text ends with `end`. */
const spoken = Effect.gen(function* () {
  const pieces = yield* Queue.unbounded<string>()
  const usage = {
    inputTokens: { total: 1, uncached: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 }
  }
  const provider: Provider.ProviderShape = {
    name: "spoken",
    stream: () =>
      Stream.fromQueue(pieces).pipe(
        Stream.takeUntil((piece) => piece === "end"),
        Stream.map((piece) =>
          piece === "end"
            ? { type: "finish" as const, reason: "stop" as const, usage }
            : { type: "text-delta" as const, id: "0", delta: piece }
        )
      )
  }
  return { provider, say: (...texts: ReadonlyArray<string>) => Queue.offerAll(pieces, texts) }
})

/** Follows a run in a fiber; `heard` fills as events arrive. */
const listen = Effect.fnUntraced(function* (runId: string, options: Kernel.FollowOptions = {}) {
  const heard: Array<RunEvent.RunEvent> = []
  const fiber = yield* Effect.forkChild(
    Stream.runForEach(Kernel.follow(runId, options), (event) => Effect.sync(() => heard.push(event))),
    { startImmediately: true }
  )
  return { heard, fiber }
})

const textIn = (events: ReadonlyArray<RunEvent.RunEvent>) =>
  events.map((event) => (event.type === "text_chunk" || event.type === "block_content" ? event.text : "")).join("")

const revisionsIn = (events: ReadonlyArray<RunEvent.RunEvent>) =>
  events.flatMap((event) => ("revision" in event ? [event.revision] : []))

const settle = Effect.repeat(Effect.yieldNow, { times: 200 })

const stored = (runId: string) =>
  RunStore.RunStore.use((store) =>
    Effect.map(Stream.runCollect(store.read(runId)), (records) => records.flatMap(({ events }) => events))
  )

/** The events without their times. */
const shapes = (events: ReadonlyArray<RunEvent.RunEvent>) => events.map(({ type }) => type)

describe("Kernel.follow", () => {
  it.effect("emits the stored events of a run at rest, all of them or those after a revision, and ends", () =>
    Effect.gen(function* () {
      yield* Kernel.run(agentOf(), "?", { provider: MockProvider.make(final("done")), runId: "r" })
      const all = yield* Stream.runCollect(Kernel.follow("r"))
      assert.deepStrictEqual(all, yield* stored("r"))
      const later = yield* Stream.runCollect(Kernel.follow("r", { after: 3 }))
      assert.deepStrictEqual(
        later,
        all.filter((event) => "revision" in event && event.revision > 3)
      )
      assert.deepStrictEqual(yield* Stream.runCollect(Kernel.follow("r", { after: 1_000 })), [])
      assert.strictEqual((yield* Effect.flip(Stream.runDrain(Kernel.follow("unknown"))))._tag, "RunNotFound")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("emits the pause of a run that it follows live, although one record holds the calls and the pause", () =>
    Effect.gen(function* () {
      const pay = Skill.make("pay", {
        description: "",
        input: Schema.Struct({}),
        effects: "write",
        execute: () => Effect.void
      })
      const { provider, say } = yield* spoken
      const run = yield* Effect.forkChild(Effect.exit(Kernel.run(agentOf(pay), "?", { provider, runId: "r" })))
      yield* settle
      const { fiber, heard } = yield* listen("r")
      yield* settle
      yield* say(command("pay", {}), "end")
      yield* Fiber.join(run)
      yield* Fiber.join(fiber)
      const [, ...last] = (yield* stored("r")).slice(-3)
      assert.deepStrictEqual(shapes(last), ["tool_calls_started", "paused"])
      assert.deepStrictEqual(shapes(heard.slice(-2)), shapes(last))
      assert.deepStrictEqual(new Set(revisionsIn(last)).size, 1)
    }).pipe(Effect.provide([kernel(), Policy.layerRules({ confirm: [{ name: "pay" }] })]))
  )

  it.effect("emits what the stream of the run emits, when it follows from the beginning", () =>
    Effect.gen(function* () {
      const { provider, say } = yield* spoken
      const told: Array<RunEvent.RunEvent> = []
      const run = yield* Effect.forkChild(
        Stream.runForEach(Kernel.stream(agentOf(), "?", { provider, runId: "r" }), (event) =>
          Effect.sync(() => told.push(event))
        )
      )
      yield* settle
      const { fiber, heard } = yield* listen("r")
      yield* settle
      yield* say("Hello, ", '<block type="final">wor', "ld</block>", "end")
      yield* Fiber.join(run)
      yield* Fiber.join(fiber)
      const missed = new Set(["messages_sent"])
      assert.deepStrictEqual(shapes(heard), shapes(told.filter(({ type }) => !missed.has(type))))
      assert.strictEqual(textIn(heard), textIn(told))
    }).pipe(Effect.provide(kernel()))
  )

  it.effect(
    "emits the text so far to a subscriber that joins in the middle of a reply, and the rest as it arrives",
    () =>
      Effect.gen(function* () {
        const { provider, say } = yield* spoken
        const run = yield* Effect.forkChild(Kernel.run(agentOf(), "?", { provider, runId: "r" }))
        yield* settle
        yield* say("Well. ", '<block type="final">one ', "two <b", ">bold</b")
        yield* settle
        const { fiber, heard } = yield* listen("r")
        yield* settle
        assert.strictEqual(textIn(heard), "Well. one two <b>bold")
        assert.deepStrictEqual(shapes(heard).slice(-3), ["text_chunk", "block_start", "block_content"])
        yield* say("> three", "</block>", "end")
        yield* Fiber.join(run)
        yield* Fiber.join(fiber)
        assert.strictEqual(textIn(heard), "Well. one two <b>bold</b> three")
        assert.deepStrictEqual(revisionsIn(heard), revisionsIn(yield* stored("r")))
      }).pipe(Effect.provide(kernel()))
  )

  it.effect("keeps the order of events for a subscriber that joins at any time", () => {
    const look = Skill.make("look", {
      description: "Looks",
      input: Schema.Struct({}),
      effects: "read",
      execute: () => Effect.as(settle, "seen")
    })
    return Effect.gen(function* () {
      for (let pause = 0; pause < 40; pause += times(1, 4)) {
        const runId = `r${pause}`
        const provider = MockProvider.make(command("look"), command("look"), `thinking ${final("done")}`)
        const run = yield* Effect.forkChild(Kernel.run(agentOf(look), "?", { provider, runId }))
        yield* Effect.repeat(Effect.yieldNow, { times: pause * 20 })
        const events = yield* Effect.retry(Stream.runCollect(Kernel.follow(runId)), { times: 5 })
        yield* Fiber.join(run)
        const phases = events.filter((event) => "revision" in event)
        assert.deepStrictEqual(shapes(phases), shapes(yield* stored(runId)))
        assert.strictEqual(new Set(revisionsIn(events)).size, revisionsIn(events).length)
        // A call starts after its launch and ends before its result is stored.
        let open = false
        for (const { type } of events) {
          if (type === "skill_execute") open = true
          if (type === "skill_result") open = false
          if (type === "tool_call_completed") assert.isFalse(open)
        }
      }
    }).pipe(Effect.provide(kernel(look)))
  })

  it.effect("does not slow the run for a subscriber that never reads, which later continues from the store", () =>
    Effect.gen(function* () {
      const { provider, say } = yield* spoken
      const run = yield* Effect.forkChild(Kernel.run(agentOf(), "?", { provider, runId: "r" }))
      yield* settle
      const gate = yield* Deferred.make<void>()
      const heard: Array<RunEvent.RunEvent> = []
      const slow = yield* Effect.forkChild(
        Stream.runForEach(Kernel.follow("r"), (event) =>
          Effect.andThen(
            Effect.sync(() => heard.push(event)),
            event.type === "text_chunk" && event.text === "0 " ? Deferred.await(gate) : Effect.void
          )
        )
      )
      yield* settle
      yield* say("0 ")
      yield* settle
      for (let word = 1; word < 200; word++) {
        yield* say(`${word} `)
        yield* settle
      }
      yield* Deferred.succeed(gate, undefined)
      yield* settle
      const whole = Array.from({ length: 200 }, (_, word) => `${word} `).join("")
      assert.strictEqual(textIn(heard), whole)
      yield* say(final("done"), "end")
      yield* Fiber.join(run)
      yield* Fiber.join(slow)
      assert.strictEqual(textIn(heard), `${whole}done`)
      assert.deepStrictEqual(revisionsIn(heard), revisionsIn(yield* stored("r")))
    }).pipe(Effect.provide(Layer.provideMerge(kernel(), Limits.layer({ liveEvents: 8 }))))
  )

  it.effect(
    "emits every event of a record once, although those after the first were dropped from the live events",
    () =>
      Effect.gen(function* () {
        const store = yield* RunStore.RunStore
        const run = Journal.begin("r")
        yield* Journal.put(store, [run.last()])
        const tree = new LiveTree(treesOf(soundRuns(store)), undefined, 1)
        const live = { published: 1, reply: undefined, reports: undefined }
        tree.enter("r", "r", live)
        const gate = yield* Deferred.make<void>()
        const heard: Array<string> = []
        const follower = yield* Effect.forkChild(
          Stream.runForEach(Kernel.follow("r"), (event) => {
            heard.push(event.type)
            return event.type === "turn_started" ? Deferred.await(gate) : Effect.void
          }),
          { startImmediately: true }
        )
        yield* settle
        const turnId = "r:t1"
        const { record, state } = run.commit("phase", [
          { type: "turn_started", turnId },
          { type: "turn_prepared", model: "m", dialect: "blocks", tools: [], prompt: { base: 0, append: [] } },
          { type: "model_started", attempt: 1 }
        ])
        yield* Journal.put(store, [{ record, state }])
        live.published = 2
        for (const event of record.events) {
          tree.publish?.(event, "agent")
          yield* settle
        }
        assert.deepStrictEqual(heard, ["run_started", "turn_started"])
        tree.leave("r", "r")
        yield* Deferred.succeed(gate, undefined)
        yield* settle
        assert.deepStrictEqual(heard, ["run_started", ...shapes(record.events)])
        yield* Fiber.interrupt(follower)
      }).pipe(Effect.provide(RunStore.layerMemory))
  )

  it.effect("leaves the run alone when its consumer stops", () =>
    Effect.gen(function* () {
      const { provider, say } = yield* spoken
      const run = yield* Effect.forkChild(Kernel.run(agentOf(), "?", { provider, runId: "r" }))
      yield* settle
      const followers = yield* Effect.forEach([1, 2, 3], () => listen("r"))
      yield* settle
      yield* Effect.forEach(followers, ({ fiber }) => Fiber.interrupt(fiber))
      yield* say(final("done"), "end")
      assert.strictEqual((yield* Fiber.join(run)).text, "done")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("ends at a pause, or continues past it to the end of the run", () => {
    const send = Skill.make("send", {
      description: "Sends",
      input: Schema.Struct({}),
      execute: () => Effect.as(settle, "sent")
    })
    const confirm = Policy.layer((call) => Effect.succeed(Policy.confirm(`${call.name} costs`)))
    return Effect.gen(function* () {
      const agent = agentOf(send)
      const provider = MockProvider.make(command("send"), final("done"))
      yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" }))
      const paused = yield* Stream.runCollect(Kernel.follow("r"))
      assert.strictEqual(paused.at(-1)?.type, "paused")
      const { fiber, heard } = yield* listen("r", { until: "end" })
      yield* settle
      assert.deepStrictEqual(shapes(heard), shapes(paused))
      yield* Kernel.resume(agent, "r", { provider, answers: [{ callId: "r:t1.0", approved: true }] })
      yield* Fiber.join(fiber)
      assert.include(shapes(heard), "skill_result")
      assert.strictEqual(heard.at(-1)?.type, "run_completed")
      assert.deepStrictEqual(revisionsIn(heard), revisionsIn(yield* stored("r")))
    }).pipe(Effect.provide([confirm, kernel(send)]))
  })

  it.effect("ends with `run_cancelled`", () =>
    Effect.gen(function* () {
      const { provider, say } = yield* spoken
      const run = yield* Effect.forkChild(Effect.exit(Kernel.run(agentOf(), "?", { provider, runId: "r" })))
      yield* settle
      const { fiber, heard } = yield* listen("r")
      yield* say("half a ")
      yield* settle
      yield* Kernel.cancel("r")
      yield* Fiber.join(fiber)
      assert.strictEqual(heard.at(-1)?.type, "run_cancelled")
      assert.strictEqual(textIn(heard), "half a ")
      assert.isTrue(Exit.isFailure(yield* Fiber.join(run)))
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("follows a child run by its own id", () =>
    Effect.gen(function* () {
      const { provider, say } = yield* spoken
      const run = yield* Effect.forkChild(Kernel.run(agentOf(), "go", { provider, runId: "r" }))
      yield* settle
      yield* say(plan(["a"]), "end")
      yield* settle
      const { fiber, heard } = yield* listen("r:t1/a")
      yield* say("child ", final("result"), "end")
      yield* Fiber.join(fiber)
      assert.isTrue(heard.every(({ runId }) => runId === "r:t1/a"))
      assert.strictEqual(textIn(heard), "child result")
      yield* say(final("done"), "end")
      yield* Fiber.join(run)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("emits thinking and whole native calls from the beginning, too", () =>
    Effect.gen(function* () {
      const agent = Agent.make({
        instructions: "",
        model: { id: "m", capabilities: ["text"] },
        dialect: "tools"
      })
      const gate = yield* Deferred.make<void>()
      const provider: Provider.ProviderShape = {
        name: "thinks",
        stream: () =>
          Stream.concat(
            Stream.make(
              { type: "reasoning-start" as const, id: "t" },
              { type: "reasoning-delta" as const, id: "t", delta: "hm, " },
              { type: "reasoning-delta" as const, id: "t", delta: "well" },
              { type: "text-delta" as const, id: "0", delta: "answer" }
            ),
            Stream.fromEffect(Deferred.await(gate)).pipe(Stream.drain)
          )
      }
      const run = yield* Effect.forkChild(Effect.exit(Kernel.run(agent, "?", { provider, runId: "r" })))
      yield* settle
      const { fiber, heard } = yield* listen("r")
      yield* settle
      const thoughts = heard.map((event) =>
        event.type === "stream_part" && event.part.type === "reasoning-delta" ? event.part.delta : ""
      )
      assert.strictEqual(thoughts.join(""), "hm, well")
      assert.strictEqual(textIn(heard), "answer")
      yield* Fiber.interrupt(run)
      yield* Fiber.interrupt(fiber)
    }).pipe(Effect.provide(kernel()))
  )
})
