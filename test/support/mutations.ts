/**
 * Stores that do one thing wrong, and the proof that a suite of checks sees each of them.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, type Scope } from "effect"

/** What a store does otherwise than one that is right. */
export type Mutation<Store> = (store: Store) => Partial<Store>

interface Check {
  readonly name: string
  readonly run: Effect.Effect<void, unknown, Scope.Scope>
}

/** One test for the store that is right, and one for each mutation. */
export const sees = <Store>(
  suite: string,
  checksOf: (mutate: Mutation<Store>) => Effect.Effect<ReadonlyArray<Check>, unknown, Scope.Scope>,
  mutations: { readonly [name: string]: Mutation<Store> }
): void => {
  /** The first check that fails. */
  const failure = Effect.fnUntraced(function* (mutate: Mutation<Store>) {
    for (const { name, run } of yield* checksOf(mutate)) if (Exit.isFailure(yield* Effect.exit(run))) return name
    return undefined
  })

  describe(suite, () => {
    it.effect("finds nothing wrong with a store that is right", () =>
      Effect.gen(function* () {
        assert.isUndefined(yield* failure(() => ({})))
      })
    )

    for (const [name, mutate] of Object.entries(mutations)) {
      it.effect(`sees a store that ${name}`, () =>
        Effect.gen(function* () {
          assert.isDefined(yield* failure(mutate))
        })
      )
    }
  })
}
