/**
 * Checks that a media store behaves as required, in any test framework.
 *
 * A check is a sentence and an Effect that dies if the store fails it. `open` creates a store each time it runs; all
 * stores of a durable implementation share the same media, like processes on one database. Each check uses its own runs
 * and media, and releases the runs at its end, so all checks may share a database or folder, and may run again on it.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as MediaStore from "../MediaStore.ts"
import { basics, lasting } from "./internal/mediaStoreChecks.ts"
import { onTwo } from "./internal/twoStores.ts"

/**
 * One requirement of a store.
 *
 * @category models
 * @since 0.1.0
 */
export interface Check<out E, out R> {
  readonly name: string
  readonly run: Effect.Effect<void, E, R>
}

/**
 * Returns the checks of a store. A durable store has more.
 *
 * With vitest: `for (const { name, run } of MediaStoreSuite.checks(open, { durable: true })) it.effect(name, () =>
 * run)`. Open the store of a layer as for `RunStoreSuite`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const checks = <E, R>(
  open: Effect.Effect<MediaStore.MediaStoreShape, E, R>,
  options: { readonly durable: boolean }
): ReadonlyArray<Check<E, Exclude<R, Scope.Scope>>> => [
  ...basics.map(({ body, name }) => ({
    name,
    run: Effect.scoped(Effect.flatMap(Effect.flatMap(open, tidy), (store) => Effect.orDie(body(store))))
  })),
  ...(options.durable ? lasting : []).map(({ body, name }) => ({
    name,
    run: onTwo(Effect.flatMap(open, tidy), body)
  }))
]

/** Releases the runs of a check when it ends, so that it can be run again on the same database. */
const tidy = (store: MediaStore.MediaStoreShape): Effect.Effect<MediaStore.MediaStoreShape, never, Scope.Scope> => {
  const used = new Set<string>()
  return Effect.as(
    Effect.addFinalizer(() => store.release([...used]).pipe(Effect.exit)),
    {
      ...store,
      run: (runId, origins) => {
        used.add(runId)
        return store.run(runId, origins)
      }
    }
  )
}
