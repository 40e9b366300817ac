/**
 * Every error of kernai, as one union that can be matched exhaustively.
 *
 * Each verb of the kernel fails with a smaller union that holds exactly what can occur there: `RunError`, `StreamError`,
 * `ResumeError`, `ResumeStreamError`, `SubmitError`, `AnswerError`, `CancelError`, `FollowError`, `QuestionsError`,
 * `OfferError`, `ForkError`.
 *
 * Each module also exports the errors it fails with under their own names. An error carries the facts needed to act on
 * it, and its message is a sentence. A skill that fails is not among them: the model receives its error as a block.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import * as Model from "./internal/errors/modelErrors.ts"
import * as Program from "./internal/errors/programErrors.ts"
import * as Run from "./internal/errors/runErrors.ts"
import * as Skill from "./internal/errors/skillErrors.ts"
import * as Store from "./internal/errors/storeErrors.ts"
import * as Words from "./internal/errors/wordsErrors.ts"

export * from "./internal/errors/wordsErrors.ts"

export * from "./internal/errors/storeErrors.ts"

export * from "./internal/errors/modelErrors.ts"

export * from "./internal/errors/skillErrors.ts"

export * from "./internal/errors/programErrors.ts"

export * from "./internal/errors/runErrors.ts"

/**
 * The schema of all errors.
 *
 * @category models
 * @since 0.1.0
 */
export const KernelError = Schema.Union([
  Words.BlockValidationError,
  Words.BlockTypeConflict,
  Words.InvalidAddress,
  Words.UsageInvalid,
  Words.LimitExceeded,
  Store.MediaConflict,
  Store.MediaNotFound,
  Store.MediaUnreadable,
  Model.ProviderError,
  Model.InvalidModel,
  Model.UnsupportedProvider,
  Model.ProviderUnavailable,
  Model.ContextWindowExceeded,
  Skill.ToolNameConflict,
  Skill.ToolNotFound,
  Skill.DefinitionInvalid,
  Skill.CredentialMissing,
  Skill.InvalidArguments,
  Skill.AnswerPending,
  Skill.SamplingRefused,
  Skill.SkillSettingInvalid,
  Skill.SkillResultInvalid,
  Skill.SkillFilesInvalid,
  Skill.SkillPackInvalid,
  Skill.SkillPackNotFound,
  Skill.SkillFileNotFound,
  Skill.FileTooLarge,
  Skill.InvalidSkillPath,
  Skill.TemplateError,
  Words.AgentConfigInvalid,
  Program.ProgramFailed,
  Program.ProgramChanged,
  Program.ProgramImpure,
  Run.McpError,
  Skill.ConfigInvalid,
  Run.MaxStepsReached,
  Run.EmptyReplies,
  Run.CutReplies,
  Run.LoopDetected,
  Run.OutputInvalid,
  Run.BudgetExhaustedError,
  Run.SpawnDenied,
  Run.MiddlewareTermination,
  Run.ExtensionFailed,
  Run.CancellationError,
  Run.DeadlineExceeded,
  Run.RunPaused,
  Run.RunFinished,
  Run.RunCancelled,
  Run.RunAlreadyCompleted,
  Run.NotRootRun,
  Run.QueueFull,
  Run.DeadlockError,
  Store.ConcurrentAppendError,
  Store.RunBusy,
  Store.RunNotFound,
  Store.RunExists,
  Store.ScheduleNotFound,
  Store.ProcessNotFound,
  Store.StoreError,
  Run.InFlightToolCalls,
  Run.AgentMismatch,
  Run.RewindNotAllowed,
  Run.QuestionNotFound,
  Run.AnswerRefused,
  Run.AgentCrashError,
  Run.RunPoisoned,
  Run.ReplayDiverged,
  Run.AgentNotFoundError,
  Run.HandlerError,
  Run.AgentIdConflict
])
/**
 * One of the errors of kernai.
 *
 * @category models
 * @since 0.1.0
 */
export type KernelError = ByTag[keyof ByTag]

// The mapped type keeps the name `KernelError` in compiler messages; a plain union would be listed member by member.
type ByTag = { readonly [E in typeof KernelError.Type as E["_tag"]]: E }

// ---------------------------------------------------------------- by verb

/**
 * Fails when the model of an agent cannot be used.
 *
 * - `InvalidModel`: the model string is not `<provider>/<model>`.
 * - `UnsupportedProvider`: the `ModelRegistry` does not know the provider.
 * - `ProviderUnavailable`: the adapter, the package or the key of the provider is missing.
 * - `ProviderError`: there is no provider at all (`not_configured`).
 *
 * @category errors
 * @since 0.1.0
 */
export type ModelError =
  | Model.InvalidModel
  | Model.UnsupportedProvider
  | Model.ProviderUnavailable
  | Model.ProviderError

/**
 * Fails when a model call, through its middleware, has no whole reply.
 *
 * - `ProviderError`: the call failed, with its `reason`.
 * - `ProgramFailed`, `ProgramChanged`, `ProgramImpure`: the agent is a `Program`, and cannot continue.
 * - `ExtensionFailed`: a middleware failed.
 * - `MiddlewareTermination`: a middleware ends the run on purpose.
 * - `BudgetExhaustedError`: a budget that the run shares with others is used up.
 *
 * @category errors
 * @since 0.1.0
 */
export type ModelCallError =
  | Model.ProviderError
  | ProgramError
  | Run.ExtensionFailed
  | Run.MiddlewareTermination
  | Run.BudgetExhaustedError

/**
 * Fails when a `Program` cannot continue. Its run can be resumed with a corrected program.
 *
 * - `ProgramFailed`: it failed, or could not read its input.
 * - `ProgramChanged`: it does not make the calls that are recorded.
 * - `ProgramImpure`: it waits for something that is not recorded.
 *
 * @category errors
 * @since 0.1.0
 */
export type ProgramError = Program.ProgramFailed | Program.ProgramChanged | Program.ProgramImpure

/**
 * Fails when the driver of a stored run stops it. The run stays at its last stored record.
 *
 * - `CancellationError`: the process is shutting down.
 * - `AgentCrashError`: the process lost its claim on the run (see `RunDriver.Claim`).
 *
 * @category errors
 * @since 0.1.0
 */
export type StopError = Run.CancellationError | Run.AgentCrashError

/**
 * Fails when a `PromptPipeline` cannot build a prompt.
 *
 * - `ContextWindowExceeded`: the prompt does not fit the window.
 * - `TemplateError`: a template does not parse or render.
 * - `SkillPackInvalid`: a skill pack breaks its format.
 * - `ProviderError`, `LimitExceeded`: a model that was asked for a part of the prompt failed, or wrote too much.
 * - `StoreError`: a store that holds a part of the prompt failed.
 * - `ExtensionFailed`: any other failure of a part that the host wrote.
 * - `MiddlewareTermination`: a part ends the run on purpose.
 *
 * @category errors
 * @since 0.1.0
 */
export type PromptError =
  | Model.ContextWindowExceeded
  | Skill.TemplateError
  | Skill.SkillPackInvalid
  | Model.ProviderError
  | Words.LimitExceeded
  | Store.StoreError
  | Run.ExtensionFailed
  | Run.MiddlewareTermination

/**
 * Fails when a run cannot be stored.
 *
 * - `AgentConfigInvalid`: the agent has an invalid value.
 * - `InvalidModel`, `UnsupportedProvider`, `ProviderUnavailable`, `ProviderError`: its model cannot be used here.
 * - `MediaConflict`, `LimitExceeded`: the media of the input cannot be stored.
 * - `RunExists`: a run of this id exists already.
 * - `QueueFull`: too many runs of its caller wait for a worker.
 * - `ConcurrentAppendError`: another worker continued the run before its store acknowledged it.
 * - `StoreError`: a store of runs or media failed.
 *
 * @category errors
 * @since 0.1.0
 */
export type SubmitError =
  | Words.AgentConfigInvalid
  | Run.QueueFull
  | ModelError
  | Store.MediaConflict
  | Words.LimitExceeded
  | Store.RunExists
  | Store.ConcurrentAppendError
  | Store.StoreError

/**
 * Fails when a new run has no answer.
 *
 * Before the first turn:
 * - `AgentConfigInvalid`, `InvalidModel`, `UnsupportedProvider`, `ProviderUnavailable`: the agent or its model cannot be
 *   used.
 * - `RunExists`: a run of this id exists already.
 *
 * In a turn:
 * - `ProviderError`: the model call failed, or there is no provider.
 * - `LimitExceeded`: a reply, or media of the input, are larger than their limit.
 * - `MediaConflict`: a medium of the input, or of a message sent during the run, has the id of another.
 * - `ContextWindowExceeded`, `TemplateError`, `SkillPackInvalid`: the prompt cannot be built.
 * - `ExtensionFailed`: a hook, a middleware or a part of the prompt failed.
 * - `EmptyReplies`, `CutReplies`, `LoopDetected`: the model replied nothing, a part, or the same, too often.
 * - `ProgramFailed`, `ProgramChanged`, `ProgramImpure`: the agent is a `Program`, and cannot continue.
 *
 * At its limits:
 * - `MaxStepsReached`: the last allowed turn had no answer.
 * - `BudgetExhaustedError`: tokens or money of the budget are used up.
 * - `DeadlineExceeded`: its time is over.
 *
 * Stopped by its host:
 * - `RunPaused`: it waits for a person, or for a resume.
 * - `RunFinished`: a hook finished it without an answer.
 * - `MiddlewareTermination`: a hook or a middleware ended it on purpose.
 * - `RunCancelled`: `Kernel.cancel`, or `RunOptions.signal`, cancelled it.
 * - `CancellationError`, `AgentCrashError`: its `RunDriver` stopped it.
 * - `RunPoisoned`: its `RunDriver` gave it up, because processes died of it.
 *
 * By its store:
 * - `StoreError`: a store of runs or media failed; resume the run. In a cluster also: too many runs of its caller wait.
 * - `ConcurrentAppendError`: another worker continued the run.
 * - `RunBusy`, `InFlightToolCalls`: a task of a plan that a worker began before is held by another worker, or has calls
 *   with an unknown outcome.
 *
 * @category errors
 * @since 0.1.0
 */
export type RunError =
  | Exclude<SubmitError, Run.QueueFull>
  | PromptError
  | StopError
  | ProgramError
  | Run.EmptyReplies
  | Run.CutReplies
  | Run.LoopDetected
  | Run.MaxStepsReached
  | Run.BudgetExhaustedError
  | Run.DeadlineExceeded
  | Run.RunPaused
  | Run.RunFinished
  | Run.RunCancelled
  | Run.RunPoisoned
  | Store.RunBusy
  | Run.InFlightToolCalls

/**
 * Fails when a new run that is streamed has no answer (see `RunError`). A pause or a cancellation is the last event of a
 * stream, and no failure.
 *
 * @category errors
 * @since 0.1.0
 */
export type StreamError = Exclude<RunError, Run.RunPaused | Run.RunCancelled>

/**
 * Fails when a stored run cannot be resumed, or when the resumed run has no answer (see `RunError`).
 *
 * - `RunNotFound`: no run has this id.
 * - `RunBusy`: another worker holds the run.
 * - `ConcurrentAppendError`: the run is at another revision than `ResumeOptions.revision`, or another worker was faster.
 * - `QuestionNotFound`: an answer fits no open question.
 * - `AnswerRefused`: the caller may not answer a question, or values do not fit its form.
 * - `InFlightToolCalls`: the outcome of calls that were in flight is unknown, and `ResumeOptions.recover` does not decide.
 * - `AgentMismatch`: the run belongs to another agent, and `ResumeOptions.as` gives no reason.
 * - `RewindNotAllowed`: the open turn is past its prompt.
 * - `OutputInvalid`: the stored answer does not fit the output schema of the agent.
 *
 * @category errors
 * @since 0.1.0
 */
export type ResumeError =
  | RunError
  | Store.RunNotFound
  | Run.AgentMismatch
  | Run.QuestionNotFound
  | Run.AnswerRefused
  | Run.RewindNotAllowed
  | Run.OutputInvalid

/**
 * Fails when a resumed run that is streamed has no answer (see `ResumeError`). A pause or a cancellation is the last
 * event of a stream, and no failure.
 *
 * @category errors
 * @since 0.1.0
 */
export type ResumeStreamError = Exclude<ResumeError, Run.RunPaused | Run.RunCancelled>

/**
 * Fails when the questions of a run cannot be read.
 *
 * - `RunNotFound`: no run has this id.
 * - `StoreError`: the store failed.
 *
 * @category errors
 * @since 0.1.0
 */
export type QuestionsError = Store.RunNotFound | Store.StoreError

/**
 * Fails when answers cannot be recorded.
 *
 * - `RunNotFound`: no run has this id.
 * - `QuestionNotFound`: an answer fits no open question. Nothing is recorded.
 * - `AnswerRefused`: the caller may not answer a question, or values do not fit its form. Nothing is recorded.
 * - `ConcurrentAppendError`: the run is at another revision than `AnswerOptions.revision`, or another worker was faster.
 * - `RunBusy`: another worker holds the run.
 * - `RunCancelled`: the run was cancelled. Nothing is recorded.
 * - `StoreError`: the store failed.
 *
 * @category errors
 * @since 0.1.0
 */
export type AnswerError =
  | QuestionsError
  | Run.QuestionNotFound
  | Run.AnswerRefused
  | Store.ConcurrentAppendError
  | Store.RunBusy
  | Run.RunCancelled

/**
 * Fails when a run cannot be offered to workers.
 *
 * - `RunNotFound`: no run has this id.
 * - `RunBusy`: a worker holds the run.
 * - `ConcurrentAppendError`: the run has changed.
 * - `StoreError`: the store failed.
 *
 * @category errors
 * @since 0.1.0
 */
export type OfferError = QuestionsError | Store.ConcurrentAppendError | Store.RunBusy

/**
 * Fails when a run cannot be cancelled.
 *
 * - `RunNotFound`: no run has this id.
 * - `RunAlreadyCompleted`: the run has completed.
 * - `NotRootRun`: the run is part of another run's tree.
 * - `ConcurrentAppendError`: the run stored records faster than a cancellation could be put between them.
 * - `StoreError`: the store failed.
 *
 * @category errors
 * @since 0.1.0
 */
export type CancelError = QuestionsError | Run.RunAlreadyCompleted | Run.NotRootRun | Store.ConcurrentAppendError

/**
 * Fails when a run cannot be followed.
 *
 * - `RunNotFound`: no run has this id, or the run was removed.
 * - `StoreError`: the store failed.
 *
 * @category errors
 * @since 0.1.0
 */
export type FollowError = QuestionsError

/**
 * Fails when a fork cannot be stored. Then nothing of it is stored.
 *
 * - `RunNotFound`: no run has this id.
 * - `RunExists`: a run with the id of the fork exists already.
 * - `ConcurrentAppendError`: another worker continued the fork before its store acknowledged it.
 * - `StoreError`: the store failed.
 *
 * @category errors
 * @since 0.1.0
 */
export type ForkError = Store.RunNotFound | Store.RunExists | Store.ConcurrentAppendError | Store.StoreError

const recoverable: ReadonlySet<KernelError["_tag"]> = new Set<KernelError["_tag"]>([
  "ProviderError",
  "ProviderUnavailable",
  "BudgetExhaustedError",
  "CancellationError",
  "DeadlineExceeded",
  "RunPaused",
  "RunCancelled",
  "ConcurrentAppendError",
  "RunBusy",
  "QueueFull",
  "StoreError",
  "InFlightToolCalls",
  "AgentCrashError",
  "ExtensionFailed",
  "EmptyReplies",
  "CutReplies"
])

/**
 * Returns true for an error of the union.
 *
 * @category guards
 * @since 0.1.0
 */
export const isKernelError: (value: unknown) => value is KernelError = Schema.is(KernelError)

/**
 * Returns true if resuming the run, or trying again, may help.
 *
 * @category guards
 * @since 0.1.0
 */
export const isRecoverable = (error: KernelError): boolean => recoverable.has(error._tag)
