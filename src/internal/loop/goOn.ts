/**
 * Going on without an effect in between.
 */

import * as Effect from "effect/Effect"

/** Goes on after a step: at once where it is done when it returns, which is `Effect.void`, as most commits are. */
export const goOn = <E, A, E2>(
  step: Effect.Effect<void, E>,
  next: () => Effect.Effect<A, E2>
): Effect.Effect<A, E | E2> => (step === Effect.void ? next() : Effect.flatMap(step, next))
