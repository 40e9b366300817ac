import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Address, EventBus, Kernel, Limits, Recorder, type RunEvent, RunStore, Skill } from "kernai"
import { Scenario } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { agent, plan, play, slow } from "../support/workflow.ts"

const noop = Skill.make("noop", {
  description: "Does nothing",
  input: Schema.Struct({}),
  effects: "read",
  execute: () => Effect.succeed("ok")
})

const script: Scenario.Script = {
  root: [plan(["a", "b", { id: "c", depends_on: ["a"] }]), final("ok")],
  tasks: {
    a: [slow(100, command("noop")), slow(50, final("A"))],
    b: [slow(70, command("noop")), slow(200, final("B"))],
    c: [slow(10, final("C"))]
  }
}

const progress = new Address.TopicId({ type: "agent.progress", source: "run", namespace: "default" })

/** Runs with a bus; what one subscription to a topic hears, and what the stream of the run tells. */
const subscribed = (topic: Address.TopicId, take: (event: RunEvent.RunEvent) => Effect.Effect<void>) =>
  Effect.gen(function* () {
    const bus = yield* EventBus.EventBus
    const heard: Array<RunEvent.RunEvent> = []
    const listener = yield* Effect.forkChild(
      Stream.runForEach(bus.subscribe(topic), (event) =>
        Effect.andThen(
          take(event),
          Effect.sync(() => heard.push(event))
        )
      )
    )
    yield* Effect.yieldNow
    const { events } = yield* play(script)
    yield* TestClock.adjust("1 hour")
    yield* Fiber.interrupt(listener)
    return { heard, events }
  })

const withBus = Layer.provideMerge(kernel(noop), EventBus.layerMemory)

describe("the events of a tree", () => {
  it.effect("all reach one subscription, in the order they happened (CP-13)", () =>
    Effect.gen(function* () {
      const { events, heard } = yield* subscribed(progress, () => Effect.void)
      assert.deepStrictEqual(heard, events)
      assert.deepStrictEqual(
        heard.map((event) => event.at),
        heard.map((event) => event.at).toSorted((a, b) => a - b)
      )
    }).pipe(Effect.provide(withBus))
  )

  it.effect("carry run id, root id, depth and task id (BP-95, W-27)", () =>
    Effect.gen(function* () {
      const { events } = yield* play(script)
      for (const event of events) {
        assert.strictEqual(event.rootRunId, "run")
        const task = event.depth === 0 ? undefined : event.taskId
        assert.strictEqual(event.taskId, task)
        assert.strictEqual(event.runId, task === undefined ? "run" : `run:t1/${task}`)
      }
      assert.deepStrictEqual(
        of(events, "final").map(({ taskId, text }) => [taskId, text]),
        [
          ["a", "A"],
          ["c", "C"],
          ["b", "B"],
          [undefined, "ok"]
        ]
      )
    }).pipe(Effect.provide(kernel(noop)))
  )

  it.effect("keep causal order: a task after its dependencies, a child within its task", () =>
    Effect.gen(function* () {
      const { events } = yield* play(script)
      const at = (type: RunEvent.Type, id?: string) =>
        events.findIndex(
          (event) => event.type === type && (id === undefined || ("id" in event ? event.id : event.taskId) === id)
        )
      for (const id of ["a", "b", "c"]) {
        const own = events.flatMap((event, index) => (event.taskId === id ? [index] : []))
        assert.isBelow(at("workflow_start"), at("task_start", id))
        assert.isBelow(at("task_start", id), Math.min(...own))
        assert.isBelow(Math.max(...own), at("task_complete", id))
        assert.isBelow(at("task_complete", id), at("workflow_complete"))
        const revisions = events.flatMap((event) =>
          event.taskId === id && "revision" in event ? [event.revision] : []
        )
        assert.deepStrictEqual(
          revisions,
          revisions.toSorted((x, y) => x - y)
        )
      }
      assert.isBelow(at("task_complete", "a"), at("task_start", "c"))
      const closed = events.findIndex((event) => event.type === "tool_calls_completed" && event.depth === 0)
      assert.isBelow(at("workflow_complete"), closed)
    }).pipe(Effect.provide(kernel(noop)))
  )

  it.effect("are the same in the same order for stream, recorder and bus (R-23)", () => {
    const recorded: Array<RunEvent.RunEvent> = []
    return Effect.gen(function* () {
      const { events, heard } = yield* subscribed(progress, () => Effect.void)
      assert.deepStrictEqual(heard, events)
      assert.deepStrictEqual(recorded, events)
    }).pipe(
      Effect.provide(withBus),
      Effect.provideService(Recorder.Recorder, { record: (event) => void recorded.push(event) })
    )
  })

  it.effect("drop stream parts for a slow subscriber, never a phase (CP-13, R-23)", () =>
    Effect.gen(function* () {
      const tight = { ...Limits.defaults, liveEvents: 8 }
      const chatty = Scenario.scripted(script, "chars")
      const bus = yield* EventBus.EventBus
      const heard: Array<RunEvent.RunEvent> = []
      const listener = yield* Effect.forkChild(
        Stream.runForEach(bus.subscribe(progress), (event) =>
          Effect.andThen(
            Effect.sleep(1000),
            Effect.sync(() => heard.push(event))
          )
        ).pipe(Effect.provideService(Limits.Limits, tight))
      )
      yield* Effect.yieldNow
      const { events } = yield* play(script, { provider: chatty })
      yield* TestClock.adjust("3 hours")
      yield* Fiber.interrupt(listener)
      const kept = (all: ReadonlyArray<RunEvent.RunEvent>) =>
        all.filter((event) => event.type !== "text_chunk" && event.type !== "block_content")
      assert.deepStrictEqual(kept(heard), kept(events))
      assert.isBelow(heard.length, events.length)
      assert.strictEqual(Math.max(...events.map((event) => event.at)), 270)
    }).pipe(Effect.provide(withBus))
  )

  it.effect("reach a subscriber of an agent's name, stream parts included (CP-13)", () =>
    Effect.gen(function* () {
      const topic = new Address.TopicId({ type: "agent.stream", source: "agent", namespace: "default" })
      const { events, heard } = yield* subscribed(topic, () => Effect.void)
      const pieces = events.filter((event) => event.type === "text_chunk" || event.type === "block_content")
      assert.isAbove(pieces.length, 0)
      assert.deepStrictEqual(heard, pieces)
    }).pipe(Effect.provide(withBus))
  )

  it.effect("of two runs of one agent are kept apart by the address of each run (CP-13)", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.EventBus
      const addresses = yield* Effect.forEach(["agent/north", "agent/south", "prod/agent/north"], (text) =>
        Effect.fromResult(Address.AgentId.parse(text))
      )
      const first = yield* Effect.forEach(addresses, (address) =>
        Effect.forkChild(Stream.runHead(bus.subscribe(Address.TopicId.stream(address))), { startImmediately: true })
      )
      yield* Effect.forEach(addresses, (address, index) =>
        Kernel.run(agent(), "go", {
          runId: `run-${index}`,
          address,
          provider: Scenario.scripted({ root: [final("ok")] })
        })
      )
      const events = yield* Effect.forEach(first, Fiber.join)
      assert.deepStrictEqual(
        events.map((event) => Option.getOrThrow(event).runId),
        ["run-0", "run-1", "run-2"]
      )
    }).pipe(Effect.provide(withBus))
  )

  it.effect("are all in the namespace of the run's address (CP-13)", () =>
    Effect.gen(function* () {
      const bus = yield* EventBus.EventBus
      const address = EventBus.agentIdOf("north", "prod")
      const following = yield* Effect.forkChild(
        bus.subscribe(new Address.TopicId({ ...progress, namespace: "prod" })).pipe(
          Stream.takeUntil((event) => event.type === "run_completed" && event.depth === 0),
          Stream.runCollect
        ),
        { startImmediately: true }
      )
      const { events } = yield* play(script, { address })
      assert.deepStrictEqual(yield* Fiber.join(following), events)
    }).pipe(Effect.provide(withBus))
  )

  it.effect("of each run are in its own journal, and fold to its state (DR-26)", () =>
    Effect.gen(function* () {
      const { events } = yield* play(script)
      const store = yield* RunStore.RunStore
      const heads = yield* store.list({ rootRunId: "run" })
      assert.deepStrictEqual(heads.map((head) => head.runId).toSorted(), ["run", "run:t1/a", "run:t1/b", "run:t1/c"])
      for (const { revision, runId } of heads) {
        const records = yield* Stream.runCollect(Stream.take(store.read(runId), revision))
        const told = events.filter((event) => event.runId === runId && "revision" in event).map((event) => event.type)
        assert.deepStrictEqual(
          records.flatMap((record) => record.events.map((event) => event.type)),
          told
        )
      }
    }).pipe(Effect.provide(kernel(noop)))
  )

  it.effect("of the whole tree reach the host when the run is only awaited", () => {
    const recorded: Array<RunEvent.RunEvent> = []
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(
        Kernel.run(agent(), "go", { runId: "run", provider: Scenario.scripted(script) })
      )
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* Fiber.join(fiber)).text, "ok")
      assert.strictEqual(of(recorded, "run_completed").length, 4)
    }).pipe(
      Effect.provide(kernel(noop)),
      Effect.provideService(Recorder.Recorder, { record: (event) => void recorded.push(event) })
    )
  })
})
