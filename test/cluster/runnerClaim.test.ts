/** The claim of a runner on its runs, when its process is stopped and continues. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Queue } from "effect"
import { make } from "../../src/cluster/internal/runnerClaim.ts"

/** A clock of a process that can be stopped: its timers fire when the test says so. */
const stoppable = Effect.gen(function* () {
  const real = yield* Clock.clockWith(Effect.succeed)
  const timers = yield* Queue.unbounded<void>()
  const fired = yield* Queue.unbounded<void>()
  let now = 0
  const clock: Clock.Clock = {
    ...real,
    currentTimeMillisUnsafe: () => now,
    currentTimeMillis: Effect.sync(() => now),
    monotonicTimeNanosUnsafe: () => BigInt(now) * 1_000_000n,
    sleep: () => Effect.andThen(Queue.offer(fired, undefined), Queue.take(timers))
  }
  return {
    clock,
    pass: (millis: number) => Effect.sync(() => void (now += millis)),
    // Returns when the next timer has been set.
    fire: Effect.andThen(Queue.offer(timers, undefined), Queue.take(fired)),
    set: Queue.take(fired)
  }
})

describe("the claim of a runner", () => {
  it.effect("is lost after a stop, also when the timer that notes the time is first to continue", () =>
    Effect.gen(function* () {
      const { clock, fire, pass, set } = yield* stoppable
      const { isLost } = yield* Effect.provideService(make(10_000), Clock.Clock, clock)
      yield* set
      yield* pass(500)
      yield* fire
      assert.isFalse(isLost())
      yield* pass(20_000)
      yield* fire
      assert.isTrue(isLost())
      yield* pass(500)
      yield* fire
      assert.isTrue(isLost())
      yield* pass(600)
      yield* fire
      assert.isFalse(isLost())
    }).pipe(Effect.scoped)
  )

  it.effect("is lost before locks of a second can have expired", () =>
    Effect.gen(function* () {
      const { clock, pass } = yield* stoppable
      const { isLost } = yield* Effect.provideService(make(1_000), Clock.Clock, clock)
      yield* pass(700)
      assert.isTrue(isLost())
    }).pipe(Effect.scoped)
  )
})
