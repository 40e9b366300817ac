/**
 * Checks that a memory, and a knowledge base in it, behave as required, in any test framework.
 *
 * A check is a sentence and an Effect that dies if the memory fails it. Each check first removes everything from the
 * memory, so give it one of its own.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Memory from "../Memory.ts"
import { documentChecks } from "./internal/documentChecks.ts"
import { memoryChecks } from "./internal/memoryChecks.ts"

/**
 * One requirement of a memory.
 *
 * @category models
 * @since 0.1.0
 */
export interface Check<out E, out R> {
  readonly name: string
  readonly run: Effect.Effect<void, E, R>
}

/**
 * Returns the checks of a memory.
 *
 * With vitest: `for (const { name, run } of MemorySuite.checks(open)) it.effect(name, () => run)`. Checks of meaning
 * provide an `Embedder`, which the memory takes from the running fiber (`Memory.embedding`).
 *
 * @category constructors
 * @since 0.1.0
 */
export const checks = <E, R>(
  open: Effect.Effect<Memory.MemoryShape, E, R>
): ReadonlyArray<Check<E, Exclude<R, Scope.Scope>>> =>
  [...memoryChecks, ...documentChecks].map(({ body, embed, name }) => ({
    name,
    run: Effect.scoped(
      Effect.flatMap(open, (memory) =>
        memory
          .prune({ filter: {} })
          .pipe(Effect.andThen(body(memory)), Effect.provideService(Memory.Embedder, embed), Effect.orDie)
      )
    )
  }))
