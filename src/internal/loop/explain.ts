/**
 * Explains failures of foreign code in words that a model may read.
 */

import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { CallError } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Redactor } from "../../Redaction.ts"
import { redact } from "../base/redact.ts"

/** Foreign code took longer than it may. */
export class TimedOut {
  readonly _tag = "TimedOut"
  readonly message: string
  constructor(timeout: Duration.Duration) {
    this.message = `took longer than ${Duration.toMillis(timeout)} ms`
  }
}

/** The first typed failure of a cause. */
export const failureIn = (cause: Cause.Cause<unknown>): unknown => cause.reasons.find(Cause.isFailReason)?.error

/** Returns the sentence of a typed failure. A defect gets a fixed text, and its cause goes to the log. */
export const explain = (
  { redactor }: { readonly redactor: Redactor | undefined },
  subject: string,
  cause: Cause.Cause<unknown>
): Effect.Effect<CallError> => {
  const clean = (text: string) => redact(redactor === undefined ? text : redactor.text(text))
  for (const reason of cause.reasons) {
    if (Cause.isFailReason(reason)) return Effect.succeed(errorOf(subject, reason.error, clean))
  }
  if (Cause.hasInterruptsOnly(cause)) return Effect.succeed(Calls.error("Interrupted", `${subject} was interrupted`))
  return Effect.as(
    Effect.logError(`${subject} failed unexpectedly`, clean(Cause.pretty(cause))),
    Calls.error("Defect", `${subject} failed unexpectedly`)
  )
}

const errorOf = (subject: string, error: unknown, clean: (text: string) => string): CallError => {
  if (error instanceof TimedOut) return Calls.error("Timeout", `${subject} ${error.message}`)
  return Calls.error(clean(tagOf(error)), clean(messageOf(error)))
}

const tagOf = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return "Error"
  if ("_tag" in error && typeof error._tag === "string") return error._tag
  return error instanceof Error ? error.name : "Error"
}

const messageOf = (error: unknown): string => {
  if (typeof error === "string") return error
  if (typeof error !== "object" || error === null || !("message" in error) || typeof error.message !== "string") {
    return tagOf(error)
  }
  // A tagged error without a sentence of its own has an empty message: its tag says more.
  const tag = tagOf(error)
  return error.message.trim() === "" && tag !== "Error" ? tag : error.message
}
