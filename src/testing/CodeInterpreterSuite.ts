/**
 * Checks that an interpreter runs programs as required, in any test framework.
 *
 * A check is a sentence and an Effect that dies if the interpreter fails it. Most run one small program; those about
 * limits take as long as the limits that they set.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { CodeInterpreter } from "../CodeInterpreter.ts"
import { codeChecks } from "./internal/codeChecks.ts"

/**
 * One requirement of an interpreter.
 *
 * @category models
 * @since 0.1.0
 */
export interface Check<out E, out R> {
  readonly name: string
  readonly run: Effect.Effect<void, E, R>
}

/**
 * Returns the checks of an interpreter. `open` creates one each time it runs.
 *
 * With vitest: `for (const { name, run } of CodeInterpreterSuite.checks(open)) it.live(name, () => run)`, where `open` is
 * `Effect.map(Layer.build(layer), (services) => Context.get(services, CodeInterpreter.CodeInterpreter))`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const checks = <E, R>(
  open: Effect.Effect<CodeInterpreter["Service"], E, R>
): ReadonlyArray<Check<E, Exclude<R, Scope.Scope>>> =>
  codeChecks.map(({ body, name }) => ({
    name,
    run: Effect.scoped(Effect.flatMap(open, (interpreter) => Effect.orDie(body(interpreter))))
  }))
