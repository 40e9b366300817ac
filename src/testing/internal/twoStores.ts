/** Runs a check on two stores of the same data, like two processes. */

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Opens a store twice and runs a check on both, which dies if they fail it. */
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
