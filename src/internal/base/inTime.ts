/**
 * Work of others that is given up when it takes too long.
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/** Begins work at once, in a fiber of its own that nobody's end ends: most of it is done when `next` is given it. */
export const begin = <A, E, B, E2>(
  work: Effect.Effect<A, E>,
  next: (fiber: Fiber.Fiber<A, E>) => Effect.Effect<B, E2>
): Effect.Effect<B, E2> => Effect.withFiber((parent) => next(Effect.runForkWith(parent.context)(work)))

/**
 * Waits so long for work. It has a fiber of its own, which can be interrupted wherever this is run: one that cannot be
 * all the same is left behind.
 */
export const inTime = <A, E, B, E2>(
  work: Effect.Effect<A, E>,
  limit: Duration.Input,
  orElse: () => Effect.Effect<B, E2>
): Effect.Effect<A | B, E | E2> =>
  Effect.uninterruptibleMask((restore) =>
    begin(work, (fiber): Effect.Effect<A | B, E | E2> => {
      // Most is done by now: a clock is set only for what is not.
      const exit = fiber.pollUnsafe()
      if (exit !== undefined) return exit
      const leave = Effect.sync(() => fiber.interruptUnsafe())
      const timed = Effect.timeoutOrElse(Fiber.join(fiber), {
        duration: limit,
        orElse: () => Effect.andThen(leave, orElse())
      })
      return Effect.onInterrupt(restore(timed), () => leave)
    })
  )
