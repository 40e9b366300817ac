/**
 * Where effects run that a program waits for and that are no calls.
 */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"

/**
 * Runs an effect that a program waits for by `Program.compute`, such as work in another thread. A simulated process,
 * whose time stands still while it waits, runs it outside of itself. The default runs it as it is.
 *
 * @category services
 * @since 0.1.0
 */
export const Outside = Context.Reference<<A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>>(
  "kernai/Simulation/Outside",
  { defaultValue: () => (effect) => effect }
)
