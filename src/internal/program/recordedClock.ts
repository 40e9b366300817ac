/**
 * The clock of a program, whose time is that of its open turn.
 */

import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"

/** Creates a clock that shows a recorded time. Waiting on it never ends. */
export const recordedClock = (now: () => number): Clock.Clock => {
  const nanos = () => BigInt(now()) * 1_000_000n
  return {
    currentTimeMillisUnsafe: now,
    currentTimeMillis: Effect.sync(now),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: () => Effect.never
  }
}
