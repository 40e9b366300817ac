/**
 * The claim of a runner on its runs. It is lost while the process was stopped: frozen, swapped out, or busy for seconds.
 * Other runners may have taken over its runs in the meantime.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { monotonic } from "../../kit/time.ts"
import type { Claim } from "../../RunDriver.ts"

/** Notes the time twice a second for the lifetime of a scope. */
export const make: Effect.Effect<Claim, never, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Clock.clockWith(Effect.succeed)
  let last = monotonic(clock)
  const note = Effect.andThen(
    Effect.sleep("500 millis"),
    Effect.sync(() => void (last = monotonic(clock)))
  )
  yield* Effect.forkScoped(Effect.forever(note))
  return { isLost: () => monotonic(clock) - last > longest }
})

/** Milliseconds without a note after which the process counts as stopped. */
const longest = 3_000
