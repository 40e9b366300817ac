/**
 * Checks that a run store behaves as required, in any test framework.
 *
 * A check is a sentence and an Effect that dies if the store fails it. `open` creates a store each time it runs, all of
 * them on the same runs, like workers on one database. Each check uses its own runs and removes them at its end, so all
 * checks may share a database, and may run again on it. Checks run in real time.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as RunStore from "../RunStore.ts"
import { onTwo } from "./internal/twoStores.ts"
import { claims } from "./internal/runStore/claims.ts"
import { counts } from "./internal/runStore/counts.ts"
import { groups, journals } from "./internal/runStore/journals.ts"
import { heads } from "./internal/runStore/headChecks.ts"
import { selections } from "./internal/runStore/selections.ts"
import { histories } from "./internal/runStore/histories.ts"
import { notes } from "./internal/runStore/notes.ts"
import { values } from "./internal/runStore/values.ts"

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
 * Returns the checks of a store.
 *
 * With vitest: `for (const { name, run } of RunStoreSuite.checks(open)) it.effect(name, () => run)`.
 *
 * The store must live as long as its check. Open the store of a layer in the scope of the check with `Layer.build`;
 * `Effect.provide` would close the layer before the check runs.
 *
 * @example
 * const open = Effect.map(Layer.build(MyRunStore.layer), Context.get(RunStore.RunStore))
 *
 * @category constructors
 * @since 0.1.0
 */
export const checks = <E, R>(
  open: Effect.Effect<RunStore.RunStoreShape, E, R>
): ReadonlyArray<Check<E, Exclude<R, Scope.Scope>>> =>
  [...journals, ...groups, ...claims, ...heads, ...selections, ...values, ...histories, ...notes, ...counts].map(
    ({ body, name }) => ({
      name,
      run: Effect.provideService(onTwo(Effect.flatMap(open, tidy), body), Clock.Clock, Clock.Clock.defaultValue())
    })
  )

/** Removes the runs of a check when it ends, so that it can be run again on the same database. */
const tidy = (store: RunStore.RunStoreShape): Effect.Effect<RunStore.RunStoreShape, never, Scope.Scope> => {
  const used = new Set<string>()
  return Effect.as(
    Effect.addFinalizer(() => Effect.ignore(store.remove([...used]))),
    {
      ...store,
      append: (records, state) => {
        used.add(state.runId)
        return store.append(records, state)
      }
    }
  )
}
