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
import { causeText, failureIn, isA, logged, tagOf } from "../base/foreignCode.ts"
import { redact } from "../base/redact.ts"
import { clip } from "../base/text.ts"
import { type Encode, failureText } from "../skill/failureText.ts"

/** Foreign code took longer than it may. */
export class TimedOut {
  readonly _tag = "TimedOut"
  readonly message: string
  constructor(timeout: Duration.Duration) {
    this.message = `took longer than ${Duration.toMillis(timeout)} ms`
  }
}

/**
 * Returns a typed failure in words: its sentence and, if it has a schema, its fields, as long as `Limits.resultBytes`
 * allows. `encode` is the schema that a skill declared. A defect gets a fixed text, and its cause goes to the log.
 */
export const explain = (
  { redactor }: { readonly redactor: Redactor | undefined },
  subject: string,
  cause: Cause.Cause<unknown>,
  encode?: Encode
): Effect.Effect<CallError> => {
  const clean = (text: string) => redact(redactor === undefined ? text : redactor.text(text))
  if (cause.reasons.some(Cause.isFailReason)) return errorOf(subject, failureIn(cause), clean, encode)
  if (Cause.hasInterruptsOnly(cause)) return Effect.succeed(Calls.error("Interrupted", `${subject} was interrupted`))
  return Effect.as(
    logged(Effect.logError(`${subject} failed unexpectedly`, causeText(cause, clean))),
    Calls.error("Defect", `${subject} failed unexpectedly`)
  )
}

const errorOf = (
  subject: string,
  error: unknown,
  clean: (text: string) => string,
  encode: Encode | undefined
): Effect.Effect<CallError> =>
  isA(error, TimedOut)
    ? Effect.succeed(Calls.error("Timeout", `${subject} ${error.message}`))
    : Limits.use(({ resultBytes }) =>
        Effect.map(failureText(error, encode, clean, resultBytes), (text) => Calls.error(clean(tagOf(error)), text))
      )

/** An error no longer than a result may be: the head and the tail of its text. */
export const short = (error: CallError, { resultBytes }: Limits): CallError => {
  const message = clip(error.message, resultBytes)
  return message === error.message ? error : { ...error, message }
}
