/**
 * A clock that is never set back, for deliveries, idle entities, joins of runners, and the runs of a node.
 *
 * It follows the wall clock forwards. When the wall clock is set back, it goes on by the monotonic clock, so a message for
 * the next minute is delivered in the next minute, and not an hour later.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { monotonic } from "../../kit/time.ts"

/** Wraps a clock. */
export const make = (clock: Clock.Clock): Clock.Clock => {
  let ahead = -Infinity
  const currentTimeMillisUnsafe = () => {
    const steady = monotonic(clock)
    ahead = Math.max(ahead, clock.currentTimeMillisUnsafe() - steady)
    return Math.floor(steady + ahead)
  }
  const currentTimeNanosUnsafe = () => BigInt(currentTimeMillisUnsafe()) * nanosPerMilli
  return {
    currentTimeMillisUnsafe,
    currentTimeMillis: Effect.sync(currentTimeMillisUnsafe),
    currentTimeNanosUnsafe,
    currentTimeNanos: Effect.sync(currentTimeNanosUnsafe),
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration)
  }
}

const nanosPerMilli = 1_000_000n

/** Replaces the clock of what it is provided to. */
export const layer: Layer.Layer<never> = Layer.effect(
  Clock.Clock,
  Clock.clockWith((clock) => Effect.succeed(make(clock)))
)
