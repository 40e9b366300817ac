/**
 * Detects that this process was stopped: frozen, swapped out, or busy for seconds. Other runners may have taken over
 * its runs in the meantime.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { monotonic } from "../../kit/time.ts"

/** The pulse of a process. */
export interface Pulse {
  /** Returns true if the process was stopped for so long that another runner may have taken over its runs. */
  readonly isStale: () => boolean
}

/** Beats twice a second for the lifetime of a scope. */
export const make: Effect.Effect<Pulse, never, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Clock.clockWith(Effect.succeed)
  let last = monotonic(clock)
  const beat = Effect.andThen(
    Effect.sleep("500 millis"),
    Effect.sync(() => void (last = monotonic(clock)))
  )
  yield* Effect.forkScoped(Effect.forever(beat))
  return { isStale: () => monotonic(clock) - last > longest }
})

/** Milliseconds between two beats after which a process counts as stopped. */
const longest = 3_000
