/** Converts the end of a run of a cluster to its typed result or error in another process. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { jsonObject, plain } from "../../kit/json.ts"
import * as Errors from "../../KernelError.ts"
import type { RunState } from "../../RunState.ts"
import type { TakeUpError } from "../../RunDriver.ts"

const Failed = Schema.Union([
  Errors.AgentConfigInvalid,
  Errors.InvalidModel,
  Errors.UnsupportedProvider,
  Errors.ProviderUnavailable,
  Errors.ProviderError,
  Errors.MediaConflict,
  Errors.LimitExceeded,
  Errors.StoreError,
  Errors.ContextWindowExceeded,
  Errors.TemplateError,
  Errors.SkillPackInvalid,
  Errors.ExtensionFailed,
  Errors.MiddlewareTermination,
  Errors.AgentCrashError,
  Errors.RunPoisoned,
  Errors.EmptyReplies,
  Errors.CutReplies,
  Errors.LoopDetected,
  Errors.MaxStepsReached,
  Errors.BudgetExhaustedError,
  Errors.DeadlineExceeded,
  Errors.InFlightToolCalls
])

/** Errors of a resume that a run rejected. */
const Refused = Schema.Union([
  ...Failed.members,
  Errors.ConcurrentAppendError,
  Errors.RunBusy,
  Errors.QuestionNotFound,
  Errors.AgentMismatch,
  Errors.AnswerRefused,
  Errors.RewindNotAllowed,
  Errors.OutputInvalid
])

const decodeFailed = Schema.decodeUnknownOption(Failed)
const decodeRefused = Schema.decodeUnknownOption(Refused)
const encodeRefused = Schema.encodeUnknownOption(Refused)

/** Encodes the error of a resume for its caller. Undefined for an error that only this runner has. */
export const refusal = (error: TakeUpError): Schema.Json | undefined =>
  Option.getOrUndefined(Option.map(encodeRefused(error), (error) => plain(error)))

/** Fails with the error of a resume that a run rejected. */
export const failRefused = (refused: Schema.Json): Effect.Effect<never, typeof Refused.Type> =>
  Option.match(decodeRefused(refused), {
    onNone: () => Effect.die(new Error("the resume was refused for an unknown reason")),
    onSome: Effect.fail
  })

/** Returns the error of a run at rest without an answer, or undefined for a completed run. */
export const failureOf = ({
  runId,
  status
}: Pick<RunState, "runId" | "status">):
  | Effect.Effect<never, typeof Failed.Type | Errors.RunPaused | Errors.RunCancelled>
  | undefined => {
  switch (status.type) {
    case "completed":
      return undefined
    case "paused":
      return Effect.fail(new Errors.RunPaused({ runId, ...status }))
    case "cancelled": {
      const { type: _, ...facts } = status
      return Effect.fail(new Errors.RunCancelled({ runId, ...facts }))
    }
    case "failed": {
      const { fields, message, tag } = status.error
      return Option.match(decodeFailed({ ...jsonObject(fields), _tag: tag }), {
        onNone: () => Effect.die(new Error(message)),
        onSome: Effect.fail
      })
    }
    case "running":
      return Effect.die(new Error(`run ${runId} is not at rest`))
  }
}
