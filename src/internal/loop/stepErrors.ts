/**
 * Errors of the steps of a run. `RunError` and `ResumeError` are their sums.
 */

import type {
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
  PromptError,
  RunBusy,
  RunFinished,
  RunPaused,
  StopError,
  StoreError
} from "../../KernelError.ts"
import type { FlushError } from "./commit.ts"

/** Asking a hook, and doing what it asks for. */
export type HookError = ExtensionFailed | MiddlewareTermination | FlushError

/** Asking a model, and reading its reply. */
export type ReplyError = ModelCallError | LimitExceeded

/** Storing the media of an input. */
export type MediaError = MediaConflict | LimitExceeded | StoreError

/** A task, where the error concerns its whole tree: another owner, a store that fails, a tree that may not continue. */
export type TaskError = FlushError | StopError | RunBusy | RunPaused | InFlightToolCalls | BudgetExhaustedError

/** The calls of a reply. */
export type CallsError = HookError | TaskError

/** One step of the loop. */
export type StepError =
  | CallsError
  | PromptError
  | ReplyError
  | MediaError
  | BudgetExhaustedError
  | EmptyReplies
  | LoopDetected

/** The loop, within its deadline. */
export type DriveError = StepError | StopError | DeadlineExceeded

/** A run that stopped without an answer. */
export type EndError = RunPaused | RunFinished | MaxStepsReached | MiddlewareTermination
