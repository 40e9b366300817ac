/**
 * Every error of kernai, as one union that can be matched exhaustively.
 *
 * Each module exports the errors it fails with again under their own names. A failure someone can act on carries the
 * facts needed to act, and its message is a sentence. A failing skill is not among them: the model receives it as an
 * error block.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import * as Callables from "./internal/base/callablesErrors.ts"
import * as Files from "./internal/base/filesErrors.ts"
import * as Media from "./internal/base/mediaErrors.ts"
import * as Models from "./internal/base/modelsErrors.ts"
import * as Outside from "./internal/base/outsideErrors.ts"
import * as Provider from "./internal/base/providerErrors.ts"
import * as Run from "./internal/base/runErrors.ts"
import * as Store from "./internal/base/storeErrors.ts"
import * as Words from "./internal/base/wordsErrors.ts"

export * from "./internal/base/wordsErrors.ts"

export * from "./internal/base/mediaErrors.ts"

export * from "./internal/base/modelsErrors.ts"

export * from "./internal/base/providerErrors.ts"

export * from "./internal/base/callablesErrors.ts"

export * from "./internal/base/filesErrors.ts"

export * from "./internal/base/runErrors.ts"

export * from "./internal/base/storeErrors.ts"

export * from "./internal/base/outsideErrors.ts"

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
  Media.MediaConflict,
  Media.MediaNotFound,
  Media.MediaUnreadable,
  Provider.ProviderError,
  Models.InvalidModel,
  Models.UnsupportedProvider,
  Models.ProviderUnavailable,
  Provider.ContextWindowExceeded,
  Callables.ToolNameConflict,
  Callables.ToolNotFound,
  Callables.DefinitionInvalid,
  Callables.CredentialMissing,
  Callables.InvalidArguments,
  Callables.SkillSettingInvalid,
  Callables.SkillResultInvalid,
  Files.SkillFilesInvalid,
  Files.SkillPackInvalid,
  Files.SkillPackNotFound,
  Files.SkillFileNotFound,
  Files.FileTooLarge,
  Files.InvalidSkillPath,
  Files.TemplateError,
  Words.AgentConfigInvalid,
  Outside.McpError,
  Files.ConfigInvalid,
  Run.MaxStepsReached,
  Run.EmptyReplies,
  Run.LoopDetected,
  Run.OutputInvalid,
  Run.BudgetExhaustedError,
  Run.SpawnDenied,
  Run.MiddlewareTermination,
  Run.ExtensionFailed,
  Run.CancellationError,
  Run.RunPaused,
  Run.RunFinished,
  Run.DeadlockError,
  Store.ConcurrentAppendError,
  Store.RunBusy,
  Store.RunNotFound,
  Store.RunExists,
  Store.StoreError,
  Run.InFlightToolCalls,
  Run.RewindNotAllowed,
  Run.ApprovalNotFound,
  Outside.AgentCrashError,
  Run.ReplayDiverged,
  Outside.AgentNotFoundError,
  Outside.HandlerError,
  Outside.AgentIdConflict
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

const recoverable: ReadonlySet<KernelError["_tag"]> = new Set<KernelError["_tag"]>([
  "ProviderError",
  "ProviderUnavailable",
  "BudgetExhaustedError",
  "CancellationError",
  "RunPaused",
  "ConcurrentAppendError",
  "RunBusy",
  "StoreError",
  "InFlightToolCalls",
  "AgentCrashError",
  "ExtensionFailed",
  "EmptyReplies"
])

/**
 * Is this value one of the errors of the union?
 *
 * @category guards
 * @since 0.1.0
 */
export const isKernelError: (value: unknown) => value is KernelError = Schema.is(KernelError)

/**
 * Can resuming the run, or trying again, help?
 *
 * @category guards
 * @since 0.1.0
 */
export const isRecoverable = (error: KernelError): boolean => recoverable.has(error._tag)
