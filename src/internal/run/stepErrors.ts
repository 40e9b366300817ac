/**
 * Errors of the steps of a run. `RunError` and `ResumeError` are their sums.
 */

import type {
  AgentConfigInvalid,
  BudgetExhaustedError,
  DeadlineExceeded,
  EmptyReplies,
  ExtensionFailed,
  InFlightToolCalls,
  LimitExceeded,
  LoopDetected,
  MaxStepsReached,
  MediaConflict,
  MiddlewareTermination,
  ModelCallError,
  ModelError,
  PromptError,
  RunBusy,
  RunCancelled,
  RunFinished,
  RunPaused,
  StopError,
  StoreError
} from "../../KernelError.ts"
import { isSound } from "../base/foreignCode.ts"
import type { FlushError } from "../store/storeGuard.ts"

/** Asking a hook, and doing what it asks for. */
export type HookError = ExtensionFailed | MiddlewareTermination | FlushError

/** Asking a model, and reading its reply. */
export type ReplyError = ModelCallError | ModelError | LimitExceeded

/** Storing the media of an input. */
export type MediaError = MediaConflict | LimitExceeded | StoreError

/** Finding an agent of the team, and its model. */
export type MemberError = AgentConfigInvalid | ModelError

/** A task, where the error concerns its whole tree: another owner, a store that fails, a tree that may not continue. */
export type TaskError = FlushError | StopError | RunBusy | RunPaused | InFlightToolCalls | BudgetExhaustedError

/** Does an error concern the whole tree rather than the task? */
export const isTaskError = (error: unknown): error is TaskError => isSound(error) && taskErrors.has(error._tag)

const taskErrors: ReadonlySet<string> = new Set<TaskError["_tag"]>([
  "ConcurrentAppendError",
  "AgentCrashError",
  "CancellationError",
  "StoreError",
  "RunExists",
  "RunBusy",
  "RunPaused",
  "InFlightToolCalls",
  "BudgetExhaustedError"
])

/** The calls of a reply. */
export type CallsError = HookError | TaskError

/** Opening a turn, which stores the media of messages that wait for it. */
export type StartError = HookError | MediaError

/** Building the prompt of a turn. */
export type PrepareError = HookError | PromptError | BudgetExhaustedError

/** Asking the model, and deciding what its reply means. */
export type AskError = HookError | ReplyError | MediaError | BudgetExhaustedError | LoopDetected

/** One step of the loop. */
export type StepError = CallsError | PrepareError | AskError | EmptyReplies

/** The loop, within its deadline, and the loop of the agent that a run is handed over to. */
export type DriveError = StepError | StopError | DeadlineExceeded | RunCancelled | MemberError

/** A run that stopped without an answer. */
export type EndError = RunPaused | RunCancelled | RunFinished | MaxStepsReached | MiddlewareTermination
