/** How long a run stays on its runner. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { TestRunner } from "effect/cluster"
import { TestClock } from "effect/testing"
import { Kernel, KernelError, Policy, RunStore } from "kernai"
import { client, clerk, entities, runner } from "./support.ts"

describe("the places of a runner", () => {
  it.effect("are free of a run that waits for a person within ten seconds, and its answer continues it", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      yield* Effect.provideContext(runner(store), yield* Layer.build(asks))
      const here = yield* client(store)
      yield* Effect.provideContext(Kernel.submit(clerk, "pay eva", { runId: "r" }), here)
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* entities, 1)
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* entities, 0)
      const [question] = yield* Effect.provideContext(Kernel.questions("r"), here)
      const answer = { callId: question?.callId ?? "", approved: true }
      yield* Effect.provideContext(Kernel.answer("r", [answer]), here)
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(
        (yield* store.list({ status: ["completed"] })).map(({ runId }) => runId),
        ["r"]
      )
    }).pipe(Effect.scoped, Effect.provide(TestRunner.layer))
  )

  it.effect("are free of a run whose journal the runner cannot read, until it can", () =>
    Effect.gen(function* () {
      const memory = yield* RunStore.makeMemory
      let canRead = false
      const newer = new RunStore.StoreError({ operation: "read", reason: "format", detail: "format 9 is newer" })
      const store: RunStore.RunStoreShape = {
        ...memory,
        read: (runId, from) => (canRead ? memory.read(runId, from) : Stream.fail(newer)),
        load: (runId) => (canRead ? memory.load(runId) : Effect.fail(newer))
      }
      yield* runner(store)
      const here = yield* client(memory)
      yield* Effect.provideContext(Kernel.submit(clerk, "pay eva", { runId: "r" }), here)
      yield* waits
      canRead = true
      yield* continues(memory)
    }).pipe(Effect.scoped, Effect.provide(TestRunner.layer))
  )

  it.effect("are free of a run for which the runner has not the skill, until it has", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let hasSkill = false
      const resume = () => (hasSkill ? {} : Effect.fail(new KernelError.ToolNotFound({ name: "pay" })))
      yield* runner(store, {}, { resume })
      const here = yield* client(store)
      yield* Effect.provideContext(Kernel.submit(clerk, "pay eva", { runId: "r" }), here)
      yield* waits
      hasSkill = true
      yield* continues(store)
    }).pipe(Effect.scoped, Effect.provide(TestRunner.layer))
  )
})

/** Lets ten minutes pass, in most of which the run has no entity. */
const waits = Effect.gen(function* () {
  let held = 0
  for (let seconds = 0; seconds < 600; seconds += 5) {
    yield* TestClock.adjust("5 seconds")
    held += yield* entities
  }
  assert.isBelow(held, 60)
})

const continues = (store: RunStore.RunStoreShape) =>
  Effect.gen(function* () {
    yield* TestClock.adjust("6 minutes")
    assert.deepStrictEqual(
      (yield* store.list({ status: ["completed"] })).map(({ runId }) => runId),
      ["r"]
    )
  })
