/**
 * A check of two stores in one place, as two processes have them.
 */

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Opens a store twice and runs the check on both; it dies where they fall short. */
export const onTwo = <Store, E, R>(
  open: Effect.Effect<Store, E, R>,
  body: (one: Store, two: Store) => Effect.Effect<void, unknown, Scope.Scope>
): Effect.Effect<void, E, Exclude<R, Scope.Scope>> =>
  Effect.scoped(
    Effect.gen(function* () {
      const one = yield* open
      const two = yield* open
      yield* Effect.orDie(body(one, two))
    })
  )
