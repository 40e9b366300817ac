/**
 * The claim of a runner on its runs. It is lost while the process was stopped: frozen, swapped out, or busy for seconds.
 * Other runners may have taken over its runs in the meantime.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { monotonic } from "../../kit/time.ts"
import type { Claim } from "../../RunDriver.ts"

/** Notes the time twice a second for the lifetime of a scope. Locks expire after some milliseconds. */
export const make = Effect.fnUntraced(function* (lockExpiration: number): Effect.fn.Return<Claim, never, Scope.Scope> {
  const clock = yield* Clock.clockWith(Effect.succeed)
  // Locks are renewed at intervals of 0.3 of their time. The rest is for a renewal on its way.
  const longest = Math.min(3_000, 0.6 * lockExpiration)
  let last = monotonic(clock)
  let lostUntil = -Infinity
  const isLost = () => {
    const now = monotonic(clock)
    if (now - last > longest) lostUntil = now + settling
    return now < lostUntil
  }
  const note = Effect.andThen(
    Effect.sleep("500 millis"),
    Effect.sync(() => {
      isLost()
      last = monotonic(clock)
    })
  )
  yield* Effect.forkScoped(Effect.forever(note))
  return { isLost }
})

/**
 * Milliseconds for which a claim stays lost after a stop. Answers of the store that arrived meanwhile are read after the
 * timer that notes the time, and say what was true before.
 */
const settling = 1_000
