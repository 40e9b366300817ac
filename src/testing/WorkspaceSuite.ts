/**
 * Checks that a workspace behaves as required, in any test framework.
 *
 * A check is a sentence and an Effect that dies if the workspace fails it. `open` provides an empty workspace of its own
 * for each check.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { commands, environment } from "./internal/commandChecks.ts"
import { files } from "./internal/workspaceChecks.ts"
import type { Check as Body, Subject } from "./internal/workspaceSubject.ts"
import { escapes } from "./internal/pathEscapes.ts"

export type { Subject }

/**
 * One requirement of a workspace.
 *
 * @category models
 * @since 0.1.0
 */
export interface Check<out E, out R> {
  readonly name: string
  readonly run: Effect.Effect<void, E, R>
}

/**
 * Returns the checks of a workspace. Without commands, only those of files.
 *
 * With vitest: `for (const { name, run } of WorkspaceSuite.checks(open, { commands: true })) it.live(name, () => run)`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const checks = <E, R>(
  open: Effect.Effect<Subject, E, R>,
  options: {
    /** Whether it runs commands. */
    readonly commands: boolean
    /** Whether commands are programs of a system, with processes and an environment. */
    readonly processes: boolean
  }
): ReadonlyArray<Check<E, Exclude<R, Scope.Scope>>> =>
  [...files, ...(options.commands ? commands : []), ...(options.processes ? environment : [])].map(
    ({ body, name }: Body) => ({
      name,
      run: Effect.scoped(Effect.flatMap(open, (workspace) => Effect.orDie(body(workspace))))
    })
  )

export {
  /**
   * Paths that lead out of every workspace, or that are none.
   *
   * @category fixtures
   * @since 0.1.0
   */
  escapes
}
