/**
 * Errors of runs that ended without an answer, wait, or cannot continue as requested, and errors of MCP servers,
 * workers and addressed agents.
 *
 * `KernelError.isRecoverable` tells for which of them resuming can help.
 */

import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"

/** The last correction that the model was sent, if its last reply was not usable. */
const corrective = Schema.optionalKey(Schema.String)

/** The run took `maxSteps` turns without an answer. */
export class MaxStepsReached extends Schema.TaggedError<MaxStepsReached>()("MaxStepsReached", {
  limit: Schema.Int,
  runId: Schema.String,
  /** The text of the newest reply that had any. */
  text: Schema.optionalKey(Schema.String),
  corrective
}) {
  override get message() {
    return `Agent reached maximum steps (${this.limit})`
  }
}

/** The model sent too many empty replies in a row. */
export class EmptyReplies extends Schema.TaggedError<EmptyReplies>()("EmptyReplies", {
  runId: Schema.String,
  count: Schema.Int,
  corrective
}) {
  override get message() {
    return `the model sent ${this.count} empty replies in a row`
  }
}

/** The model's replies ended too early too many times in a row. */
export class CutReplies extends Schema.TaggedError<CutReplies>()("CutReplies", {
  runId: Schema.String,
  count: Schema.Int,
  /** Why the last reply ended, such as `length`. */
  finishReason: Schema.String,
  /** The text of the newest reply that had any. Nothing in it was run. */
  text: Schema.String,
  corrective
}) {
  override get message() {
    const advice = this.finishReason === "length" ? ": raise `maxTokens`, or ask for less" : ""
    return `${this.count} replies in a row ended too early (${this.finishReason})${advice}`
  }
}

/** The model repeated itself after a corrective. */
export class LoopDetected extends Schema.TaggedError<LoopDetected>()("LoopDetected", {
  runId: Schema.String,
  repeats: Schema.Int,
  corrective
}) {
  override get message() {
    return `the model repeated the same turn ${this.repeats} times`
  }
}

/**
 * The stored answer of a run does not fit the output schema of the agent that resumes it.
 *
 * A completed run stays completed, a running one fails. Both can be resumed by an agent whose schema the answer fits.
 * During a run, an answer that does not fit goes back to the model instead.
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
 * The run reached its limit of tokens or cost, or a budget that it shares by `key` is used up. It can continue with a
 * larger budget, or once the shared one is renewed.
 */
export class BudgetExhaustedError extends Schema.TaggedError<BudgetExhaustedError>()("BudgetExhaustedError", {
  dimension: Schema.Literals(["tokens", "cost"]),
  used: Schema.Finite,
  limit: Schema.Finite,
  /** The key of a shared budget. */
  key: Schema.optionalKey(Schema.String),
  /** When the shared budget is renewed, in milliseconds since the epoch. Absent: never. */
  renewsAt: Schema.optionalKey(Schema.Finite)
}) {
  override get message() {
    const { dimension, key, limit, renewsAt, used } = this
    const whose = key === undefined ? "budget" : `budget '${key}'`
    const until = renewsAt === undefined ? "" : `; it is renewed at ${new Date(renewsAt).toISOString()}`
    return `${whose} exhausted: ${used} of ${limit} ${dimension === "tokens" ? "tokens" : "USD"} used${until}`
  }
}

/** The tree of runs is as large or as deep as allowed. */
export class SpawnDenied extends Schema.TaggedError<SpawnDenied>()("SpawnDenied", {
  parentRun: Schema.String,
  limit: Schema.Int
}) {
  override get message() {
    return `run '${this.parentRun}' may not spawn another: the limit is ${this.limit}`
  }
}

/** Middleware ended the run on purpose. Never retried. */
export class MiddlewareTermination extends Schema.TaggedError<MiddlewareTermination>()("MiddlewareTermination", {
  reason: Schema.String
}) {
  override get message() {
    return `the run was stopped: ${this.reason}`
  }
}

/** A hook, a middleware or a part of the prompt that belongs to the host failed. */
export class ExtensionFailed extends Schema.TaggedError<ExtensionFailed>()("ExtensionFailed", {
  /** The hook's name, `callModel`, `callTool`, or the name of the part. */
  extension: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.extension} failed: ${this.detail}`
  }
}

/** The host stopped the run with its `stop` option. The run stays where it is. */
export class CancellationError extends Schema.TaggedError<CancellationError>()("CancellationError", {
  runId: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' was cancelled`
  }
}

/**
 * The run exceeded the deadline of its budget, pauses not counted. It stays where it is, and can be resumed with an
 * agent that has more time.
 */
export class DeadlineExceeded extends Schema.TaggedError<DeadlineExceeded>()("DeadlineExceeded", {
  runId: Schema.String,
  /** In milliseconds on the wire. */
  deadline: Schema.DurationFromMillis
}) {
  override get message() {
    return `run '${this.runId}' exceeded its deadline of ${Duration.format(this.deadline)}`
  }
}

/**
 * The run waits: for a decision about a call, given to `Kernel.answer` or `Kernel.resume`, or to be resumed after a
 * hook paused it.
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

/** The run was cancelled. It is at rest, and can be resumed on purpose. */
export class RunCancelled extends Schema.TaggedError<RunCancelled>()("RunCancelled", {
  runId: Schema.String,
  reason: Schema.optionalKey(Schema.String),
  by: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    const by = this.by === undefined ? "" : ` by ${this.by}`
    return `run '${this.runId}' was cancelled${by}${this.reason === undefined ? "" : `: ${this.reason}`}`
  }
}

/** The run has completed, so there is nothing to cancel. */
export class RunAlreadyCompleted extends Schema.TaggedError<RunAlreadyCompleted>()("RunAlreadyCompleted", {
  runId: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' has completed already`
  }
}

/** The run belongs to the tree of another run. Only the whole tree can be cancelled: cancel `rootRunId`. */
export class NotRootRun extends Schema.TaggedError<NotRootRun>()("NotRootRun", {
  runId: Schema.String,
  rootRunId: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' is part of run '${this.rootRunId}': cancel that one`
  }
}

/** The host finished the run without an answer from the model. */
export class RunFinished extends Schema.TaggedError<RunFinished>()("RunFinished", {
  runId: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' was finished: ${this.reason}`
  }
}

/** Tasks of a workflow wait for each other. */
export class DeadlockError extends Schema.TaggedError<DeadlockError>()("DeadlockError", {
  tasks: Schema.Array(Schema.String)
}) {
  override get message() {
    return `Tasks could not complete: ${this.tasks.join(", ")}`
  }
}

/**
 * Calls were in flight when the run stopped, and their outcome is unknown.
 *
 * Decide about them by id with the `recover` option of `Kernel.resume`. `RunStore.inFlight` returns their names and
 * inputs.
 */
export class InFlightToolCalls extends Schema.TaggedError<InFlightToolCalls>()("InFlightToolCalls", {
  runId: Schema.String,
  callIds: Schema.Array(Schema.String),
  /** The reason why a call that was to be retried cannot run here, such as a skill that is not available. */
  detail: Schema.optionalKey(Schema.String)
}) {
  override get message() {
    const detail = this.detail === undefined ? "" : ` (${this.detail})`
    return `calls in flight with an unknown outcome: ${this.callIds.join(", ")}${detail}`
  }
}

/**
 * The run belongs to another agent, which has other skills and instructions. Resume it with its own agent, or with the
 * option `as`, which says why this one continues it.
 */
export class AgentMismatch extends Schema.TaggedError<AgentMismatch>()("AgentMismatch", {
  runId: Schema.String,
  /** The agent of the run. */
  agent: Schema.String,
  /** The agent that was to resume it. */
  given: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' belongs to the agent '${this.agent}', so '${this.given}' does not resume it without a reason`
  }
}

/** The run is past the phase at which its prompt can be prepared again. */
export class RewindNotAllowed extends Schema.TaggedError<RewindNotAllowed>()("RewindNotAllowed", {
  runId: Schema.String,
  phase: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' cannot rewind from ${this.phase}`
  }
}

/** As many runs of the caller wait for a worker as `Limits.waitingRuns` allows. Nothing was stored. */
export class QueueFull extends Schema.TaggedError<QueueFull>()("QueueFull", {
  /** The id of the caller. */
  caller: Schema.String,
  limit: Schema.Int,
  /** When its runs are counted again, in milliseconds since the epoch. */
  retryAt: Schema.Finite
}) {
  override get message() {
    return `${this.limit} runs of '${this.caller}' wait already: submit this one when some of them have started`
  }
}

/** The run asks no question about this call. `Kernel.questions` returns the open ones. */
export class QuestionNotFound extends Schema.TaggedError<QuestionNotFound>()("QuestionNotFound", {
  runId: Schema.String,
  callId: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' has no open question about call '${this.callId}'`
  }
}

/**
 * An answer was not recorded: its caller may not answer the question (`not_allowed`), or its values do not fit the form
 * (`invalid`).
 */
export class AnswerRefused extends Schema.TaggedError<AnswerRefused>()("AnswerRefused", {
  runId: Schema.String,
  callId: Schema.String,
  reason: Schema.Literals(["not_allowed", "invalid"]),
  detail: Schema.String
}) {
  override get message() {
    return `the answer to call '${this.callId}' of run '${this.runId}' was refused: ${this.detail}`
  }
}

/** A replay took a different turn than the recorded run. */
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

/** An MCP server cannot be reached, understood or used. */
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
    "input_required",
    "invalid_request"
  ]),
  detail: Schema.String
}) {
  override get message() {
    return this.detail
  }
}

/** The worker of a run died or lost its lease. The run can be resumed from its last commit. */
export class AgentCrashError extends Schema.TaggedError<AgentCrashError>()("AgentCrashError", {
  runId: Schema.String,
  agentId: Schema.String
}) {
  override get message() {
    return `the worker of run '${this.runId}' crashed or lost its lease`
  }
}

/**
 * Workers gave up a run, because their processes died of it or lost it again and again. No worker attempts it until a
 * person retries it, with `Kernel.retry` or `kernai runs retry`.
 */
export class RunPoisoned extends Schema.TaggedError<RunPoisoned>()("RunPoisoned", {
  runId: Schema.String,
  /** The attempts without progress. */
  attempts: Schema.Int,
  /** The turn of its last record, and the phase that this record completed. */
  turn: Schema.Int,
  phase: Schema.String,
  /** The calls that were in flight, in the run or in its tasks. */
  calls: Schema.Array(
    Schema.Struct({ runId: Schema.String, callId: Schema.String, name: Schema.NullOr(Schema.String) })
  )
}) {
  override get message() {
    const calls = this.calls.slice(0, 5).map(({ callId, name }) => (name === null ? callId : `${name} (${callId})`))
    const more = this.calls.length > calls.length ? ` and ${this.calls.length - calls.length} more` : ""
    const during = calls.length === 0 ? "" : `, during ${calls.join(", ")}${more}`
    const place = `in turn ${this.turn} after ${this.phase}${during}`
    return `its worker crashed or lost it ${this.attempts} times without progress, ${place}; no worker tries it again`
  }
}

/** No agent is registered under this id. */
export class AgentNotFoundError extends Schema.TaggedError<AgentNotFoundError>()("AgentNotFoundError", {
  agentId: Schema.String
}) {
  override get message() {
    return `no agent '${this.agentId}'`
  }
}

/** The message handler of an agent failed, died or was interrupted. */
export class HandlerError extends Schema.TaggedError<HandlerError>()("HandlerError", {
  agentId: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the handler of '${this.agentId}' failed: ${this.detail}`
  }
}

/** The id of an agent is taken. It is free again when the scope that registered it closes. */
export class AgentIdConflict extends Schema.TaggedError<AgentIdConflict>()("AgentIdConflict", {
  agentId: Schema.String
}) {
  override get message() {
    return `agent '${this.agentId}' is already registered`
  }
}
