/**
 * Time that passes, whatever is done to the clock on the wall.
 */

import type * as Clock from "effect/Clock"

/** Returns milliseconds since some moment in the past, by a clock that is never set. */
export const monotonic = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
