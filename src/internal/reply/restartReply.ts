/**
 * Asks middleware whether a model is asked again after its reply broke off.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { ProviderError } from "../../KernelError.ts"
import { type Run, openTurn } from "../run/run.ts"

/** Returns whether a middleware wants a new reply in place of this one. The first that does decides, after its wait. */
export const wantsRestart = (run: Run, cause: Cause.Cause<unknown>): Effect.Effect<boolean> => {
  const error = cause.reasons.find(Cause.isFailReason)?.error
  const asked = run.middleware.flatMap(({ restartReply }) => (restartReply === undefined ? [] : [restartReply]))
  if (asked.length === 0 || !(error instanceof ProviderError)) return Effect.succeed(false)
  const failure = { error, attempt: openTurn(run).attempt }
  return run.restore(firstOf(asked.map((restart) => restart(failure))))
}

const firstOf = (answers: ReadonlyArray<Effect.Effect<boolean>>): Effect.Effect<boolean> =>
  answers.reduceRight<Effect.Effect<boolean>>(
    (rest, answer) => Effect.flatMap(answer, (isWanted) => (isWanted ? Effect.succeed(true) : rest)),
    Effect.succeed(false)
  )
