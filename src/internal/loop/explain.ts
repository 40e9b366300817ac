/**
 * What went wrong in foreign code, in words the model may read.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { CallError } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import { TimedOut } from "./timeLimit.ts"
import { redact } from "../base/redact.ts"
import type { Run } from "./run.ts"

/**
 * What the model may read of a failure: the sentence of a typed one, a fixed
 * text for a bug, whose cause goes to the log (W-14).
 */
export const explain = (
  { redactor }: Pick<Run, "redactor">,
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
  // A tagged error of which nobody wrote a sentence has an empty one: its tag says more, if it says anything (BP-67).
  const tag = tagOf(error)
  return error.message.trim() === "" && tag !== "Error" ? tag : error.message
}
