/** How long a run stays on its runner. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestRunner } from "effect/cluster"
import { TestClock } from "effect/testing"
import { Kernel, Policy, RunStore } from "kernai"
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
})
