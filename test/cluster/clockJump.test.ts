/** The wall clock of a runner on PostgreSQL is set back by an hour. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Duration, Effect, Option, Stream } from "effect"
import { Kernel, KernelError, type Provider, RunStore } from "kernai"
import { MockProvider } from "kernai/testing"
import * as Postgres from "../support/postgres.ts"
import { cluster, until } from "./sockets.ts"
import { clerk } from "./support.ts"

/** The clock of this machine, which can be set back. */
const settable = Effect.map(Clock.clockWith(Effect.succeed), (clock) => {
  let back = 0
  const now = () => clock.currentTimeMillisUnsafe() - back
  const own: Clock.Clock = {
    currentTimeMillisUnsafe: now,
    currentTimeMillis: Effect.sync(now),
    currentTimeNanosUnsafe: () => BigInt(now()) * 1_000_000n,
    currentTimeNanos: Effect.sync(() => BigInt(now()) * 1_000_000n),
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration)
  }
  return { clock: own, setBack: (millis: number) => (back += millis) }
})

/** Is busy for two seconds when it is asked first. */
const busyOnce = (): Provider.ProviderShape => {
  let calls = 0
  return {
    name: "p",
    stream: (request) =>
      Stream.unwrap(
        Effect.map(Clock.currentTimeMillis, (now) =>
          calls++ === 0
            ? Stream.fail(
                new KernelError.ProviderError({
                  provider: "p",
                  reason: "rate_limited",
                  detail: "later",
                  retryAt: now + 2_000
                })
              )
            : MockProvider.make("at last").stream(request)
        )
      )
  }
}

describe.skipIf(!Postgres.available)("a clock that is set back by an hour", () => {
  it.live("delays no retry, and no runner that joins", () =>
    Effect.gen(function* () {
      const { clock, setBack } = yield* settable
      const { client, runner } = yield* cluster
      yield* Effect.gen(function* () {
        yield* runner({ provider: busyOnce() }, { joinDelay: "1 second", maxRuns: 1 })
        const here = yield* client
        const statusOf = (runId: string) =>
          Effect.map(
            Context.get(here, RunStore.RunStore).head(runId),
            (head) => Option.getOrUndefined(head)?.status.type
          )
        yield* Effect.provideContext(Kernel.submit(clerk, "go", { runId: "r" }), here)
        yield* until(Effect.map(statusOf("r"), (status) => status === "failed"))
        setBack(3_600_000)
        const [took] = yield* Effect.timed(until(Effect.map(statusOf("r"), (status) => status === "completed")))
        assert.isBelow(Duration.toSeconds(took), 20)
        yield* runner({ provider: MockProvider.make("done") }, { joinDelay: "1 second" })
        const ids = Array.from({ length: 20 }, (_, number) => `after${number}`)
        const all = Effect.forEach(ids, (runId) => Kernel.run(clerk, "go", { runId }), {
          concurrency: 20,
          discard: true
        })
        const [ran] = yield* Effect.timed(Effect.provideContext(all, here))
        assert.isBelow(Duration.toSeconds(ran), 20)
      }).pipe(Effect.provideService(Clock.Clock, clock))
    }).pipe(Effect.scoped)
  )
})
