/**
 * Durations a host passes in, and a clock that is never set back.
 */

import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"

/** Reads a duration of zero or more; none for a negative one and for an input that is no duration, such as NaN. */
export const timeSpan = (input: Duration.Input): Option.Option<Duration.Duration> =>
  Number.isNaN(input)
    ? Option.none()
    : Option.filter(Duration.fromInput(input), (duration) => !Duration.isNegative(duration))

/** Returns milliseconds since some moment in the past, by a clock that is never set. */
export const monotonic = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
