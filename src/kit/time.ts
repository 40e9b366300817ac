/**
 * Durations from a host, and a monotonic clock.
 */

import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"

/**
 * Parses a duration of zero or more. None for a negative duration, and for an input that is not a duration, such as
 * NaN.
 */
export const timeSpan = (input: Duration.Input): Option.Option<Duration.Duration> =>
  Number.isNaN(input)
    ? Option.none()
    : Option.filter(Duration.fromInput(input), (duration) => !Duration.isNegative(duration))

/** Returns milliseconds since an arbitrary moment, by the monotonic clock. */
export const monotonic = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
