/**
 * Explains failures of foreign code in words that a model may read.
 */

import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { CallError } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import { Limits } from "../../Limits.ts"
import type { Redactor } from "../../Redaction.ts"
import { logged } from "../base/effects.ts"
import { causeText, failureIn, isA, messageOf, tagOf } from "../base/foreignValue.ts"
import { redact } from "../base/redact.ts"

/** Foreign code took longer than it may. */
export class TimedOut {
  readonly _tag = "TimedOut"
  readonly message: string
  constructor(timeout: Duration.Duration) {
    this.message = `took longer than ${Duration.toMillis(timeout)} ms`
  }
}

/**
 * Returns the sentence of a typed failure, as long as `Limits.resultBytes` allows. A defect gets a fixed text, and its
 * cause goes to the log.
 */
export const explain = (
  { redactor }: { readonly redactor: Redactor | undefined },
  subject: string,
  cause: Cause.Cause<unknown>
): Effect.Effect<CallError> => {
  const clean = (text: string) => redact(redactor === undefined ? text : redactor.text(text))
  if (cause.reasons.some(Cause.isFailReason)) return errorOf(subject, failureIn(cause), clean)
  if (Cause.hasInterruptsOnly(cause)) return Effect.succeed(Calls.error("Interrupted", `${subject} was interrupted`))
  return Effect.as(
    logged(Effect.logError(`${subject} failed unexpectedly`, causeText(cause, clean))),
    Calls.error("Defect", `${subject} failed unexpectedly`)
  )
}

const errorOf = (subject: string, error: unknown, clean: (text: string) => string): Effect.Effect<CallError> =>
  isA(error, TimedOut)
    ? Effect.succeed(Calls.error("Timeout", `${subject} ${error.message}`))
    : Limits.use(({ resultBytes }) =>
        Effect.succeed(Calls.error(clean(tagOf(error)), messageOf(error, clean, resultBytes)))
      )
