/** Converts errors of the kernel to problems for a client. Causes and internals are only logged. */

import * as Effect from "effect/Effect"
import type { KernelError } from "../../KernelError.ts"
import { flat, logText } from "../../kit/text.ts"
import { Conflict, type HttpProblem, Invalid, NotFound, TooLarge, Unavailable } from "../HttpProblem.ts"

/** Returns the problem for an error about a run. */
export const problemOf = (error: KernelError, id: string): HttpProblem => {
  switch (error._tag) {
    case "RunNotFound":
      return new NotFound({ what: "run", id })
    case "AgentNotFoundError":
      return new NotFound({ what: "agent", id })
    case "QuestionNotFound":
      return new NotFound({ what: "question", id: error.callId })
    case "MediaNotFound":
    case "MediaUnreadable":
      return new NotFound({ what: "medium", id })
    case "RunExists":
      return new Conflict({ reason: "exists", id })
    case "ConcurrentAppendError":
      return new Conflict({ reason: "moved", id })
    case "RunBusy":
      return new Conflict({ reason: "busy", id })
    case "RunAlreadyCompleted":
      return new Conflict({ reason: "completed", id })
    case "RunCancelled":
      return new Conflict({ reason: "cancelled", id })
    case "NotRootRun":
      return new Conflict({ reason: "not_root", id })
    case "MediaConflict":
      return new Conflict({ reason: "medium", id: error.id })
    case "LimitExceeded":
      return new TooLarge()
    case "AgentConfigInvalid":
      return new Invalid({ detail: error.message })
    default:
      return new Unavailable()
  }
}

/** Fails with the problem of an error, and logs the details that the problem omits. */
export const asProblem =
  (id: string) =>
  <A, E extends KernelError, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, HttpProblem, R> =>
    Effect.catch(effect, (error): Effect.Effect<never, HttpProblem> => {
      const problem = problemOf(error, id)
      return problem._tag === "Unavailable"
        ? Effect.andThen(Effect.logWarning(`run ${flat(id)}`, logText(error.message)), Effect.fail(problem))
        : Effect.fail(problem)
    })
