/**
 * Every way a run, or what a run stands on, can fail.
 *
 * All classes live here so that `KernelError` is one union a caller can match
 * exhaustively; the modules that raise them export them again under their own
 * name. A failure someone can act on carries the facts needed to act and reads
 * as a sentence. What a skill does wrong is not here: it goes to the model as
 * an error block.
 *
 * @since 0.1.0
 */
import * as Schema from "effect/Schema"

// ---------------------------------------------------------------- words

/**
 * A content payload that does not have the shape its type asks for (CP-2).
 *
 * `path` is a JSON pointer from the block to the innermost fault.
 *
 * @category errors
 * @since 0.1.0
 */
export class BlockValidationError extends Schema.TaggedError<BlockValidationError>()("BlockValidationError", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `invalid content at '${this.path}': ${this.reason}`
  }
}

/**
 * A content type is built in, or registered with another schema (CP-8).
 *
 * @category errors
 * @since 0.1.0
 */
export class BlockTypeConflict extends Schema.TaggedError<BlockTypeConflict>()("BlockTypeConflict", {
  type: Schema.String
}) {
  override get message() {
    return `content type '${this.type}' is already taken`
  }
}

/**
 * Text that is no address (CP-12).
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidAddress extends Schema.TaggedError<InvalidAddress>()("InvalidAddress", {
  input: Schema.String
}) {
  override get message() {
    return `'${this.input}' is not an address: expected [namespace/]type/key`
  }
}

/**
 * Token counts that contradict each other (CP-14).
 *
 * @category errors
 * @since 0.1.0
 */
export class UsageInvalid extends Schema.TaggedError<UsageInvalid>()("UsageInvalid", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `invalid usage at '${this.path}': ${this.reason}`
  }
}

/**
 * Something from outside is larger than its limit allows.
 *
 * @category errors
 * @since 0.1.0
 */
export class LimitExceeded extends Schema.TaggedError<LimitExceeded>()("LimitExceeded", {
  limit: Schema.String,
  value: Schema.Finite
}) {
  override get message() {
    return `${this.limit} exceeds its limit of ${this.value}`
  }
}

/**
 * Two different media with one id (S-20).
 *
 * @category errors
 * @since 0.1.0
 */
export class MediaConflict extends Schema.TaggedError<MediaConflict>()("MediaConflict", { id: Schema.String }) {
  override get message() {
    return `media id '${this.id}' already names other data`
  }
}

/**
 * No media of this id in the store.
 *
 * @category errors
 * @since 0.1.0
 */
export class MediaNotFound extends Schema.TaggedError<MediaNotFound>()("MediaNotFound", { id: Schema.String }) {
  override get message() {
    return `no media with id '${this.id}'`
  }
}

/**
 * The media is known but its bytes cannot be read here.
 *
 * @category errors
 * @since 0.1.0
 */
export class MediaUnreadable extends Schema.TaggedError<MediaUnreadable>()("MediaUnreadable", {
  id: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `media '${this.id}' cannot be read: ${this.reason}`
  }
}

// ---------------------------------------------------------------- provider

/**
 * Why a model call failed.
 *
 * `rate_limited`, `overloaded`, `server_error`, `disconnected`, `timeout` and `incomplete` may pass;
 * the rest needs a change of request, key or model.
 *
 * @category errors
 * @since 0.1.0
 */
export const ProviderReason = /*#__PURE__*/ Schema.Literals([
  "not_configured",
  "authentication",
  "permission",
  "invalid_request",
  "not_found",
  "rate_limited",
  "quota_exhausted",
  "overloaded",
  "server_error",
  "disconnected",
  "timeout",
  "incomplete",
  "invalid_response",
  "content_filter",
  "refusal",
  "context_length",
  "redirect",
  "limit_exceeded",
  "unknown"
])
/**
 * @category errors
 * @since 0.1.0
 */
export type ProviderReason = typeof ProviderReason.Type

/**
 * A model call failed (BP-44, AC-3). The texts never hold a key or a vendor's body.
 *
 * @category errors
 * @since 0.1.0
 */
export class ProviderError extends Schema.TaggedError<ProviderError>()("ProviderError", {
  provider: Schema.String,
  reason: ProviderReason,
  detail: Schema.String,
  status: Schema.optionalKey(Schema.Int),
  /** Milliseconds since the epoch before which trying again is useless. */
  retryAt: Schema.optionalKey(Schema.Finite),
  /** How many calls were made before giving up. */
  attempts: Schema.optionalKey(Schema.Int)
}) {
  override get message() {
    return `${this.provider}: ${this.detail}`
  }
}

/**
 * A model string without a provider or a model (DR-25).
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidModel extends Schema.TaggedError<InvalidModel>()("InvalidModel", { input: Schema.String }) {
  override get message() {
    return `'${this.input}' is not a model: expected <provider>/<model>`
  }
}

/**
 * A provider key nobody registered (DR-25).
 *
 * @category errors
 * @since 0.1.0
 */
export class UnsupportedProvider extends Schema.TaggedError<UnsupportedProvider>()("UnsupportedProvider", {
  provider: Schema.String,
  supported: Schema.Array(Schema.String)
}) {
  override get message() {
    return `unknown provider '${this.provider}'; known: ${this.supported.join(", ")}`
  }
}

/**
 * A known provider whose package or key is missing (DR-25).
 *
 * @category errors
 * @since 0.1.0
 */
export class ProviderUnavailable extends Schema.TaggedError<ProviderUnavailable>()("ProviderUnavailable", {
  provider: Schema.String,
  /** The npm package that would bring it, if any. */
  package: Schema.optionalKey(Schema.String),
  /** The environment variable that is not set, if any. */
  variable: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    const needs = [
      this.package === undefined ? undefined : `install ${this.package}`,
      this.variable === undefined ? undefined : `set ${this.variable}`
    ].filter((need) => need !== undefined)
    return `provider '${this.provider}' is not available: ${needs.join(" and ")}`
  }
}

/**
 * The prompt does not fit the model's window (AC-9). No call was made.
 *
 * @category errors
 * @since 0.1.0
 */
export class ContextWindowExceeded extends Schema.TaggedError<ContextWindowExceeded>()("ContextWindowExceeded", {
  estimated: Schema.Int,
  limit: Schema.Int
}) {
  override get message() {
    return `the prompt needs about ${this.estimated} tokens, ${this.limit} fit`
  }
}

// ---------------------------------------------------------------- callables

/**
 * A callable's name is taken (AC-12). Nothing was registered.
 *
 * @category errors
 * @since 0.1.0
 */
export class ToolNameConflict extends Schema.TaggedError<ToolNameConflict>()("ToolNameConflict", {
  name: Schema.String,
  existing: Schema.String,
  incoming: Schema.String
}) {
  override get message() {
    return `'${this.name}' (${this.incoming}) is already registered (${this.existing})`
  }
}

/**
 * No callable of this name (AC-14). The model is told so in the result of its call, and the run goes on.
 *
 * @category errors
 * @since 0.1.0
 */
export class ToolNotFound extends Schema.TaggedError<ToolNotFound>()("ToolNotFound", { name: Schema.String }) {
  override get message() {
    return `Skill '${this.name}' not found`
  }
}

/**
 * A protocol or skill that cannot be registered (BP-81, AC-12).
 *
 * @category errors
 * @since 0.1.0
 */
export class DefinitionInvalid extends Schema.TaggedError<DefinitionInvalid>()("DefinitionInvalid", {
  name: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `'${this.name}' cannot be registered: ${this.reason}`
  }
}

/**
 * A credential a skill requires is not set (BP-92).
 *
 * @category errors
 * @since 0.1.0
 */
export class CredentialMissing extends Schema.TaggedError<CredentialMissing>()("CredentialMissing", {
  skill: Schema.String,
  key: Schema.String,
  variable: Schema.String
}) {
  override get message() {
    return `credential '${this.key}' of skill '${this.skill}' is missing: set ${this.variable}`
  }
}

/**
 * Arguments that do not fit a skill's input (AC-14). The text is for the model.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidArguments extends Schema.TaggedError<InvalidArguments>()("InvalidArguments", {
  skill: Schema.String,
  path: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return this.detail
  }
}

/**
 * A setting a skill asked for is not declared, or its value does not fit (BP-92).
 *
 * @category errors
 * @since 0.1.0
 */
export class SkillSettingInvalid extends Schema.TaggedError<SkillSettingInvalid>()("SkillSettingInvalid", {
  skill: Schema.String,
  key: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `setting '${this.key}' of skill '${this.skill}': ${this.reason}`
  }
}

/**
 * A skill returned something that is no JSON, text or media.
 *
 * `path` is a JSON pointer from the returned value to the innermost fault.
 *
 * @category errors
 * @since 0.1.0
 */
export class SkillResultInvalid extends Schema.TaggedError<SkillResultInvalid>()("SkillResultInvalid", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    // A model that is only told of a failure would make the call again.
    return `the skill ran, but its result cannot be told: at '${this.path}', ${this.reason}`
  }
}

/**
 * Code files that could not be loaded. The skills of before stay registered.
 *
 * @category errors
 * @since 0.1.0
 */
export class SkillFilesInvalid extends Schema.TaggedError<SkillFilesInvalid>()("SkillFilesInvalid", {
  problems: Schema.Array(Schema.Struct({ file: Schema.String, reason: Schema.String }))
}) {
  override get message() {
    return this.problems.map((problem) => `${problem.file}: ${problem.reason}`).join("; ")
  }
}

/**
 * A skill pack that breaks the format, in a strict store (AC-16).
 *
 * @category errors
 * @since 0.1.0
 */
export class SkillPackInvalid extends Schema.TaggedError<SkillPackInvalid>()("SkillPackInvalid", {
  name: Schema.String,
  problems: Schema.Array(Schema.String)
}) {
  override get message() {
    return `skill pack '${this.name}' is invalid: ${this.problems.join("; ")}`
  }
}

/**
 * No skill pack of this name (AC-16).
 *
 * @category errors
 * @since 0.1.0
 */
export class SkillPackNotFound extends Schema.TaggedError<SkillPackNotFound>()("SkillPackNotFound", {
  name: Schema.String
}) {
  override get message() {
    return `no skill pack '${this.name}'`
  }
}

/**
 * No such file in the skill pack (AC-16).
 *
 * @category errors
 * @since 0.1.0
 */
export class SkillFileNotFound extends Schema.TaggedError<SkillFileNotFound>()("SkillFileNotFound", {
  name: Schema.String,
  path: Schema.String
}) {
  override get message() {
    return `skill pack '${this.name}' has no file '${this.path}'`
  }
}

/**
 * A file over the limit (AC-16).
 *
 * @category errors
 * @since 0.1.0
 */
export class FileTooLarge extends Schema.TaggedError<FileTooLarge>()("FileTooLarge", {
  path: Schema.String,
  bytes: Schema.Finite,
  limit: Schema.Finite
}) {
  override get message() {
    return `'${this.path}' holds ${this.bytes} bytes, ${this.limit} are allowed`
  }
}

/**
 * A path that leaves the skill pack or is no plain file (AC-17). Nothing was opened.
 *
 * @category errors
 * @since 0.1.0
 */
export class InvalidSkillPath extends Schema.TaggedError<InvalidSkillPath>()("InvalidSkillPath", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `'${this.path}' is not allowed: ${this.reason}`
  }
}

/**
 * A prompt template that does not parse or render (AC-11).
 *
 * @category errors
 * @since 0.1.0
 */
export class TemplateError extends Schema.TaggedError<TemplateError>()("TemplateError", {
  line: Schema.Int,
  detail: Schema.String
}) {
  override get message() {
    return `template, line ${this.line}: ${this.detail}`
  }
}

/**
 * A value an agent cannot have (AC-22).
 *
 * @category errors
 * @since 0.1.0
 */
export class AgentConfigInvalid extends Schema.TaggedError<AgentConfigInvalid>()("AgentConfigInvalid", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `invalid agent at '${this.path}': ${this.reason}`
  }
}

/**
 * An MCP server cannot be reached, understood or used.
 *
 * @category errors
 * @since 0.1.0
 */
export class McpError extends Schema.TaggedError<McpError>()("McpError", {
  server: Schema.String,
  reason: Schema.Literals([
    "config",
    "connect",
    "version",
    "needs_sign_in",
    "timeout",
    "disconnected",
    "outcome_unknown",
    "protocol",
    "remote",
    "limit_exceeded",
    "not_found",
    "not_allowed",
    "invalid_request"
  ]),
  detail: Schema.String
}) {
  override get message() {
    return this.detail
  }
}

/**
 * A configuration that cannot be used (BP-171).
 *
 * @category errors
 * @since 0.1.0
 */
export class ConfigInvalid extends Schema.TaggedError<ConfigInvalid>()("ConfigInvalid", {
  path: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return this.reason
  }
}

// ---------------------------------------------------------------- the run

/**
 * The turn limit was reached without an answer (BP-40).
 *
 * @category errors
 * @since 0.1.0
 */
export class MaxStepsReached extends Schema.TaggedError<MaxStepsReached>()("MaxStepsReached", {
  limit: Schema.Int,
  runId: Schema.String
}) {
  override get message() {
    return `Agent reached maximum steps (${this.limit})`
  }
}

/**
 * The model answered with nothing too often in a row.
 *
 * @category errors
 * @since 0.1.0
 */
export class EmptyReplies extends Schema.TaggedError<EmptyReplies>()("EmptyReplies", {
  runId: Schema.String,
  count: Schema.Int
}) {
  override get message() {
    return `the model gave ${this.count} empty replies in a row`
  }
}

/**
 * The model kept doing the same thing after it was told to stop.
 *
 * @category errors
 * @since 0.1.0
 */
export class LoopDetected extends Schema.TaggedError<LoopDetected>()("LoopDetected", {
  runId: Schema.String,
  repeats: Schema.Int
}) {
  override get message() {
    return `the model repeated the same turn ${this.repeats} times`
  }
}

/**
 * The stored answer of a run does not fit the output schema of the agent it is resumed with.
 *
 * A run that has ended stays as it is, one that has not fails; both can be
 * resumed with an agent whose schema the answer fits. While a run goes on, an
 * answer that does not fit goes back to the model instead.
 *
 * @category errors
 * @since 0.1.0
 */
export class OutputInvalid extends Schema.TaggedError<OutputInvalid>()("OutputInvalid", {
  runId: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the answer does not fit the output schema: ${this.detail}`
  }
}

/**
 * A token or cost limit was reached (CP-15). The run can go on with a larger budget.
 *
 * @category errors
 * @since 0.1.0
 */
export class BudgetExhaustedError extends Schema.TaggedError<BudgetExhaustedError>()("BudgetExhaustedError", {
  dimension: Schema.Literals(["tokens", "cost"]),
  used: Schema.Finite,
  limit: Schema.Finite
}) {
  override get message() {
    return `budget exhausted: ${this.used} of ${this.limit} ${this.dimension === "tokens" ? "tokens" : "USD"} used`
  }
}

/**
 * The tree of runs is as large or as deep as it may be (CP-15).
 *
 * @category errors
 * @since 0.1.0
 */
export class SpawnDenied extends Schema.TaggedError<SpawnDenied>()("SpawnDenied", {
  parentRun: Schema.String,
  limit: Schema.Int
}) {
  override get message() {
    return `run '${this.parentRun}' may not spawn another: the limit is ${this.limit}`
  }
}

/**
 * Middleware ended the run on purpose (CP-16). Never retried.
 *
 * @category errors
 * @since 0.1.0
 */
export class MiddlewareTermination extends Schema.TaggedError<MiddlewareTermination>()("MiddlewareTermination", {
  reason: Schema.String
}) {
  override get message() {
    return `the run was stopped: ${this.reason}`
  }
}

/**
 * A hook or middleware of the host failed (DR-8, DR-14).
 *
 * @category errors
 * @since 0.1.0
 */
export class ExtensionFailed extends Schema.TaggedError<ExtensionFailed>()("ExtensionFailed", {
  /** The hook's name, or `callModel` or `callTool`. */
  extension: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.extension} failed: ${this.detail}`
  }
}

/**
 * The run was cancelled, or its deadline passed (DR-21).
 *
 * @category errors
 * @since 0.1.0
 */
export class CancellationError extends Schema.TaggedError<CancellationError>()("CancellationError", {
  reason: Schema.Literals(["cancelled", "deadline"])
}) {
  override get message() {
    return this.reason === "deadline" ? "the run's deadline passed" : "the run was cancelled"
  }
}

/**
 * The run waits for a decision (DR-9, DR-22). Answer it with `Kernel.resume`.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunPaused extends Schema.TaggedError<RunPaused>()("RunPaused", {
  runId: Schema.String,
  reason: Schema.String,
  metadata: Schema.Json
}) {
  override get message() {
    return `run '${this.runId}' is paused: ${this.reason}`
  }
}

/**
 * A run was finished by its host without an answer of the model (DR-10).
 *
 * @category errors
 * @since 0.1.0
 */
export class RunFinished extends Schema.TaggedError<RunFinished>()("RunFinished", {
  runId: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' was finished: ${this.reason}`
  }
}

/**
 * A deadlock among hand-built tasks (BP-59).
 *
 * @category errors
 * @since 0.1.0
 */
export class DeadlockError extends Schema.TaggedError<DeadlockError>()("DeadlockError", {
  tasks: Schema.Array(Schema.String)
}) {
  override get message() {
    return `Tasks could not complete: ${this.tasks.join(", ")}`
  }
}

// ---------------------------------------------------------------- the store

/**
 * Another worker committed first (DR-6). Reload, decide again, then try again.
 *
 * @category errors
 * @since 0.1.0
 */
export class ConcurrentAppendError extends Schema.TaggedError<ConcurrentAppendError>()("ConcurrentAppendError", {
  runId: Schema.String,
  expectedSeq: Schema.Int,
  actualSeq: Schema.Int
}) {
  override get message() {
    return `run '${this.runId}' is at revision ${this.actualSeq}, expected ${this.expectedSeq}`
  }
}

/**
 * Another worker holds the run's lease (DR-6).
 *
 * @category errors
 * @since 0.1.0
 */
export class RunBusy extends Schema.TaggedError<RunBusy>()("RunBusy", {
  runId: Schema.String,
  workerId: Schema.String,
  /** Milliseconds since the epoch. */
  expiresAt: Schema.Finite
}) {
  override get message() {
    return `run '${this.runId}' is held by worker '${this.workerId}'`
  }
}

/**
 * No run of this id.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunNotFound extends Schema.TaggedError<RunNotFound>()("RunNotFound", { runId: Schema.String }) {
  override get message() {
    return `no run '${this.runId}'`
  }
}

/**
 * A run of this id exists already.
 *
 * @category errors
 * @since 0.1.0
 */
export class RunExists extends Schema.TaggedError<RunExists>()("RunExists", { runId: Schema.String }) {
  override get message() {
    return `run '${this.runId}' exists already`
  }
}

/**
 * The store could not do what was asked. Nothing is known to be lost: resume the run.
 *
 * @category errors
 * @since 0.1.0
 */
export class StoreError extends Schema.TaggedError<StoreError>()("StoreError", {
  operation: Schema.String,
  /** `corrupt`: what is stored cannot be read. `format`: a newer version wrote it. `invalid`: what was given cannot be stored. */
  reason: Schema.Literals(["unavailable", "timeout", "corrupt", "format", "limit_exceeded", "invalid"]),
  detail: Schema.String
}) {
  override get message() {
    return `the store failed to ${this.operation}: ${this.detail}`
  }
}

/**
 * Calls were in flight when the run stopped and nobody said what became of them (DR-16).
 *
 * @category errors
 * @since 0.1.0
 */
export class InFlightToolCalls extends Schema.TaggedError<InFlightToolCalls>()("InFlightToolCalls", {
  runId: Schema.String,
  toolCallIds: Schema.Array(Schema.String)
}) {
  override get message() {
    return `calls in flight with an unknown outcome: ${this.toolCallIds.join(", ")}`
  }
}

/**
 * The run is past the point where its prompt could be prepared again (DR-19).
 *
 * @category errors
 * @since 0.1.0
 */
export class RewindNotAllowed extends Schema.TaggedError<RewindNotAllowed>()("RewindNotAllowed", {
  runId: Schema.String,
  phase: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' cannot rewind from ${this.phase}`
  }
}

/**
 * An answer to a question nobody asked (DR-22, R-25).
 *
 * @category errors
 * @since 0.1.0
 */
export class ApprovalNotFound extends Schema.TaggedError<ApprovalNotFound>()("ApprovalNotFound", {
  runId: Schema.String,
  toolCallId: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' does not wait for an approval of '${this.toolCallId}'`
  }
}

/**
 * The worker died or lost its lease; the run goes on elsewhere from its last commit.
 *
 * @category errors
 * @since 0.1.0
 */
export class AgentCrashError extends Schema.TaggedError<AgentCrashError>()("AgentCrashError", {
  runId: Schema.String,
  agentId: Schema.String
}) {
  override get message() {
    return `the worker of run '${this.runId}' lost it`
  }
}

/**
 * A replayed run took another turn than the recorded one.
 *
 * @category errors
 * @since 0.1.0
 */
export class ReplayDiverged extends Schema.TaggedError<ReplayDiverged>()("ReplayDiverged", {
  runId: Schema.String,
  /** Index of the first event that differs. */
  index: Schema.Int,
  expected: Schema.String,
  actual: Schema.String
}) {
  override get message() {
    return `replay diverged at event ${this.index}: expected ${this.expected}, got ${this.actual}`
  }
}

// ---------------------------------------------------------------- addresses

/**
 * A message to an agent nobody registered (CP-16).
 *
 * @category errors
 * @since 0.1.0
 */
export class AgentNotFoundError extends Schema.TaggedError<AgentNotFoundError>()("AgentNotFoundError", {
  agentId: Schema.String
}) {
  override get message() {
    return `no agent '${this.agentId}'`
  }
}

/**
 * An agent's message handler failed or died (CP-16).
 *
 * @category errors
 * @since 0.1.0
 */
export class HandlerError extends Schema.TaggedError<HandlerError>()("HandlerError", {
  agentId: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the handler of '${this.agentId}' failed: ${this.detail}`
  }
}

/**
 * An agent's address is taken. It is free again when the scope that registered it closes.
 *
 * @category errors
 * @since 0.1.0
 */
export class AgentIdConflict extends Schema.TaggedError<AgentIdConflict>()("AgentIdConflict", {
  agentId: Schema.String
}) {
  override get message() {
    return `agent '${this.agentId}' is already registered`
  }
}

// ---------------------------------------------------------------- the union

/**
 * Everything a run can fail with.
 *
 * @category models
 * @since 0.1.0
 */
export const KernelError = /*#__PURE__*/ Schema.Union([
  BlockValidationError,
  BlockTypeConflict,
  InvalidAddress,
  UsageInvalid,
  LimitExceeded,
  MediaConflict,
  MediaNotFound,
  MediaUnreadable,
  ProviderError,
  InvalidModel,
  UnsupportedProvider,
  ProviderUnavailable,
  ContextWindowExceeded,
  ToolNameConflict,
  ToolNotFound,
  DefinitionInvalid,
  CredentialMissing,
  InvalidArguments,
  SkillSettingInvalid,
  SkillResultInvalid,
  SkillFilesInvalid,
  SkillPackInvalid,
  SkillPackNotFound,
  SkillFileNotFound,
  FileTooLarge,
  InvalidSkillPath,
  TemplateError,
  AgentConfigInvalid,
  McpError,
  ConfigInvalid,
  MaxStepsReached,
  EmptyReplies,
  LoopDetected,
  OutputInvalid,
  BudgetExhaustedError,
  SpawnDenied,
  MiddlewareTermination,
  ExtensionFailed,
  CancellationError,
  RunPaused,
  RunFinished,
  DeadlockError,
  ConcurrentAppendError,
  RunBusy,
  RunNotFound,
  RunExists,
  StoreError,
  InFlightToolCalls,
  RewindNotAllowed,
  ApprovalNotFound,
  AgentCrashError,
  ReplayDiverged,
  AgentNotFoundError,
  HandlerError,
  AgentIdConflict
])
/**
 * @category models
 * @since 0.1.0
 */
export type KernelError = typeof KernelError.Type

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
 * Tells whether a value is one of the errors of the union (CP-16).
 *
 * @category guards
 * @since 0.1.0
 */
export const isKernelError: (value: unknown) => value is KernelError = /*#__PURE__*/ Schema.is(KernelError)

/**
 * Tells whether resuming or trying again can help (CP-16).
 *
 * @category guards
 * @since 0.1.0
 */
export const isRecoverable = (error: KernelError): boolean => recoverable.has(error._tag)
