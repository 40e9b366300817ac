/**
 * The clock of a program, whose time is that of its open turn.
 */

import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** Creates a clock that shows a recorded time, and waits by a call of the program. */
export const recordedClock = (now: () => number, sleepUntil: (until: number) => Effect.Effect<void>): Clock.Clock => {
  const nanos = () => BigInt(now()) * 1_000_000n
  return {
    currentTimeMillisUnsafe: now,
    currentTimeMillis: Effect.sync(now),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Effect.suspend(() => {
        const millis = Math.ceil(Duration.toMillis(duration))
        return millis > 0 ? sleepUntil(now() + millis) : Effect.yieldNow
      })
  }
}
