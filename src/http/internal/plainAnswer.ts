/** Reads plain text as the answer to a question. */

import { onlyText } from "../../kit/formValues.ts"
import type { OpenQuestion } from "../../RunState.ts"
import type { Decision } from "./conversations.ts"

/**
 * Returns the decision that a text stands for: the value of a form with one text, and otherwise yes or no. Undefined
 * for any other text.
 */
export const decisionOf = (
  { asking, callId }: Pick<OpenQuestion, "asking" | "callId">,
  text: string
): Decision | undefined => {
  const field = asking?.form === undefined ? undefined : onlyText(asking.form)
  if (field !== undefined) return { callId, approved: true, values: { [field]: text } }
  const word = text.trim().toLowerCase().replace(/[.!]$/, "")
  return word === "yes" || word === "no" ? { callId, approved: word === "yes" } : undefined
}
