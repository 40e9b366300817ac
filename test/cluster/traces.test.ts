/** The trace of a client of a cluster, whose runs are executed by runners. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { TestRunner } from "effect/cluster"
import { TestClock } from "effect/testing"
import { Kernel, RunStore } from "kernai"
import { agentsIn, caller, parentOf, spanId, traceId, tracer } from "../support/tracer.ts"
import { clerk, client, runner, soon } from "./support.ts"

describe("the trace of a client of a cluster", () => {
  it.effect("holds the runs that it submits, which a runner traces", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const { layer, spans } = tracer()
      yield* Effect.provide(runner(store), layer)
      const here = yield* client(store)
      const runId = yield* Kernel.submit(clerk, "pay eva").pipe(
        Effect.withSpan("a request", { parent: caller }),
        Effect.provideContext(here)
      )
      yield* TestClock.adjust("10 seconds")
      const head = Option.getOrThrow(yield* store.head(runId))
      assert.strictEqual(head.status.type, "completed")
      assert.deepStrictEqual(
        agentsIn(spans).map((span) => [span.traceId, parentOf(span)]),
        [[traceId, spanId]]
      )
    }).pipe(Effect.scoped, Effect.provide(TestRunner.layer))
  )

  it.effect("holds the runs that it waits for", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const { layer, spans } = tracer()
      yield* Effect.provide(runner(store), layer)
      const here = yield* client(store)
      const running = Kernel.run(clerk, "pay eva").pipe(
        Effect.withSpan("a request", { parent: caller }),
        Effect.provideContext(here)
      )
      yield* soon(yield* Effect.forkChild(running))
      assert.deepStrictEqual(
        agentsIn(spans).map((span) => span.traceId),
        [traceId]
      )
    }).pipe(Effect.scoped, Effect.provide(TestRunner.layer))
  )
})
