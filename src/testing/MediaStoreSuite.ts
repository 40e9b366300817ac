/**
 * What every media store must do, as checks to run in any test framework.
 *
 * A check is a sentence and an Effect that dies where the store falls short.
 * `open` gives a store each time it is run. Those of a durable store are all on
 * the same media, as the processes of one database are. Each check uses runs
 * and media of its own, so all may share a place.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as MediaStore from "../MediaStore.ts"
import { basics } from "./internal/mediaStore/basics.ts"
import { lasting } from "./internal/mediaStore/lasting.ts"
import { onTwo } from "./internal/twoStores.ts"

/**
 * One thing a store must do.
 *
 * @category models
 * @since 0.1.0
 */
export interface Check<out E, out R> {
  readonly name: string
  readonly run: Effect.Effect<void, E, R>
}

/**
 * The checks of a store; those of a durable one are more.
 *
 * With vitest: `for (const { name, run } of MediaStoreSuite.checks(open, { durable: true })) it.effect(name, () => run)`.
 * A store of a layer is opened as for `RunStoreSuite`.
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
    run: Effect.scoped(Effect.flatMap(open, (store) => Effect.orDie(body(store))))
  })),
  ...(options.durable ? lasting : []).map(({ body, name }) => ({
    name,
    run: onTwo(open, body)
  }))
]
