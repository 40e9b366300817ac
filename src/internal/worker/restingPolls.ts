/**
 * Polls a store again and again, and rests while nothing happens in it.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Changes } from "../store/runStoreTypes.ts"

/** What is polled, and how often. */
export interface Polls {
  /** Begins a pass over the whole store with the next poll. Synchronous. Default: each poll is a pass. */
  readonly restart?: (() => void) | undefined
  /** Polls once. Returns whether it ended a pass in which nothing failed. */
  readonly poll: Effect.Effect<boolean>
  /** Returns whether something may need a poll that no change of the store announces. Default: nothing does. */
  readonly isBusy?: Effect.Effect<boolean> | undefined
  /** The time between two polls. */
  readonly often: Duration.Input
  /** Returns the milliseconds until a poll is needed, even if nothing changes. Default: it is not. */
  readonly left?: Effect.Effect<number> | undefined
}

/**
 * Polls until it is interrupted. After a pass over a store that is not busy it waits for the next change, and polls only
 * now and then for changes that were not announced. Without `changes` it never rests.
 */
export const repeat = Effect.fnUntraced(function* (
  { isBusy = Effect.succeed(false), left = Effect.succeed(Infinity), often, poll, restart }: Polls,
  changes: Changes | undefined
): Effect.fn.Return<never> {
  const sleep = (longest: Duration.Input) =>
    Effect.flatMap(left, (left) => Effect.sleep(Math.min(left, Duration.toMillis(longest))))
  if (changes === undefined) return yield* Effect.forever(Effect.andThen(poll, sleep(often)))
  for (;;) {
    // Waits from before the pass, so that no change during the pass is missed.
    const changed = yield* Effect.forkChild(changes.next, { startImmediately: true })
    restart?.()
    for (let isWhole = false; !isWhole || (yield* isBusy);) {
      isWhole = yield* poll
      yield* sleep(often)
    }
    const silence = Effect.as(sleep(changes.recheck), true)
    while (yield* Effect.raceFirst(Effect.as(Fiber.await(changed), false), silence)) {
      if (yield* isBusy) break
      yield* poll
    }
    yield* Fiber.interrupt(changed)
  }
})
