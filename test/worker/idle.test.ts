/** A worker on a store in memory, while there is nothing to do. */
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, MediaStore, Policy, ProtocolRegistry, RunStore, RunWorker, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"

const agent = Agent.make({ instructions: "", model: "m", skills: "all" })

const pay = Skill.dynamic("pay", {
  description: "pays",
  inputSchema: { type: "object" },
  execute: () => Effect.succeed("paid")
})

/** A process on a store, whose calls wait a day for a person. */
const process = (store: RunStore.RunStoreShape) =>
  Kernel.layer.pipe(
    Layer.provide([
      SkillRegistry.layer(pay),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      MockProvider.layer(command("pay"), final("done")),
      Policy.layer(() => Effect.succeed(Policy.confirm("it costs", { within: "1 day" })))
    ]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )

/** A store that counts its lists and the runs in those of waiting runs, with a worker. */
const working = Effect.gen(function* () {
  const memory = yield* RunStore.makeMemory
  const lists = { count: 0, waiting: new Array<number>() }
  const store: RunStore.RunStoreShape = {
    ...memory,
    list: (filter) => {
      lists.count++
      const isOfWaiting = filter?.status?.includes("waiting") === true
      return Effect.tap(memory.list(filter), (heads) =>
        Effect.sync(() => (isOfWaiting ? lists.waiting.push(heads.length) : undefined))
      )
    }
  }
  yield* Effect.forkScoped(Effect.provide(RunWorker.run({ agents: [agent] }), process(store)), {
    startImmediately: true
  })
  return { lists, store: memory }
})

const statusOf = (store: RunStore.RunStoreShape, runId: string) =>
  Effect.map(store.head(runId), (head) => Option.getOrThrow(head).status.type)

describe("an idle worker on a store in memory", () => {
  it.effect("asks it nothing while no run is unfinished, and claims the next one at once", () =>
    Effect.gen(function* () {
      const { lists, store } = yield* working
      yield* TestClock.adjust("1 minute")
      const { count } = lists
      assert.isBelow(count, 10)
      yield* TestClock.adjust("3 days")
      assert.strictEqual(lists.count, count)
      yield* Effect.provide(Kernel.submit(agent, "go", { runId: "r" }), process(store))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
    })
  )

  it.effect("asks it nothing for a run that waits", () =>
    Effect.gen(function* () {
      const { lists, store } = yield* working
      yield* Effect.provide(Kernel.submit(agent, "go", { runId: "r" }), process(store))
      yield* TestClock.adjust("1 minute")
      const { count } = lists
      yield* TestClock.adjust("23 hours")
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
      assert.strictEqual(lists.count, count)
    })
  )

  it.effect("reads a page of the runs that wait after a change, and wakes all of them on time", () =>
    Effect.gen(function* () {
      const { lists, store } = yield* working
      // Those of an agent that no worker has come first, and stay.
      const foreign = Agent.make({ name: "foreign", instructions: "", model: "m", skills: "all" })
      const theirs = Array.from({ length: 60 }, (_, index) => ({ of: foreign, runId: `foreign${index}` }))
      const mine = Array.from({ length: 60 }, (_, index) => ({ of: agent, runId: `r${index}` }))
      yield* TestClock.adjust("1 minute")
      for (const { of, runId } of [...theirs, ...mine]) {
        yield* Effect.provide(Effect.exit(Kernel.run(of, "go", { runId })), process(store))
      }
      yield* TestClock.adjust("1 minute")
      lists.waiting.length = 0
      yield* Effect.provide(Effect.exit(Kernel.run(agent, "go", { runId: "last" })), process(store))
      yield* TestClock.adjust("1 minute")
      // One page for its records, and one for those that were stored in the meantime.
      assert.deepStrictEqual(lists.waiting, [100, 100])
      yield* TestClock.adjust("23 hours")
      assert.deepStrictEqual(lists.waiting, [100, 100])
      yield* TestClock.adjust("1 hour")
      yield* Effect.repeat(TestClock.adjust(1), { times: 300 })
      for (const { of, runId } of [...theirs, ...mine]) {
        const [asked] = Option.getOrThrow(yield* store.load(runId)).questions
        assert.strictEqual(asked?.callId === `${runId}:t1.0`, of === foreign, runId)
      }
    })
  )

  it.effect("takes over a run whose worker claimed it and died in the meantime", () =>
    Effect.gen(function* () {
      const { store } = yield* working
      yield* TestClock.adjust("1 hour")
      const acquire = (runId: string) => store.acquire(runId, { workerId: "dead", lease: "30 seconds" })
      yield* Effect.provide(Kernel.submit(agent, "go", { runId: "r" }), process({ ...store, acquire }))
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "running")
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
    })
  )

  it.effect("hears the question of another process, and declines it at its deadline", () =>
    Effect.gen(function* () {
      const { store } = yield* working
      yield* TestClock.adjust("1 hour")
      yield* Effect.provide(Effect.exit(Kernel.run(agent, "go", { runId: "r" })), process(store))
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
      yield* TestClock.adjust("23 hours")
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
      yield* TestClock.adjust("1 hour")
      // It was declined on time, so the model asks again then.
      const [asked] = Option.getOrThrow(yield* store.load("r")).questions
      assert.deepInclude(asked, { callId: "r:t2.0", answerBy: Duration.toMillis("49 hours") })
    })
  )
})
