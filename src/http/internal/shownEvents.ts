/**
 * Strips events for a caller. Instructions, prompts and the error texts of vendors belong to the application; the run
 * and the results of its skills belong to the caller. An operator sees everything.
 */

import type { ErrorInfo } from "../../RunModel.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { Caller } from "../Access.ts"

/** Returns the function that strips events for a caller, or undefined if the caller sees them unchanged. */
export const shownTo = ({ isOperator = false }: Caller): ((event: RunEvent) => RunEvent | undefined) | undefined =>
  isOperator ? undefined : forCaller

/** Returns the event for a caller, or undefined for one that the caller may not see. */
const forCaller = (event: RunEvent): RunEvent | undefined => {
  switch (event.type) {
    case "messages_sent":
    case "model_call_failed":
      return undefined
    case "run_started":
      return { ...event, messages: event.messages.slice(event.history), history: 0, context: {} }
    case "turn_prepared": {
      const { args: _, ...rest } = event
      return { ...rest, prompt: hidden }
    }
    case "run_failed":
      return { ...event, error: outward(event.error) }
    default:
      return "prompt" in event ? { ...event, prompt: hidden } : event
  }
}

/** The prompt of every event that has one. */
const hidden = { base: 0, append: [] }

/** Returns a failure without details for the developers of the server. */
export const outward = ({ tag }: ErrorInfo): ErrorInfo => ({ tag, message: reasons.get(tag) ?? "The run failed." })

const reasons: ReadonlyMap<string, string> = new Map([
  ["MaxStepsReached", "The run reached its maximum number of turns."],
  ["BudgetExhaustedError", "The budget of the run is used up."],
  ["DeadlineExceeded", "The run exceeded its time limit."],
  ["ContextWindowExceeded", "The conversation is too long for the model."],
  ["LimitExceeded", "A part of the conversation is too large."],
  ["RunPoisoned", "The run ended its process too often."],
  ["ProviderError", "The model is not available now."],
  ["EmptyReplies", "The model gave no answer."],
  ["CutReplies", "The replies of the model ended too early."],
  ["LoopDetected", "The model repeated itself."]
])
