/**
 * Why a run ended without an answer, waits, or cannot go on as it was asked to.
 *
 * `KernelError.isRecoverable` tells for which of them resuming can help.
 */

import * as Duration from "effect/Duration"
import * as Schema from "effect/Schema"

/** The turn limit was reached without an answer (BP-40). */
export class MaxStepsReached extends Schema.TaggedError<MaxStepsReached>()("MaxStepsReached", {
  limit: Schema.Int,
  runId: Schema.String
}) {
  override get message() {
    return `Agent reached maximum steps (${this.limit})`
  }
}

/** The model answered with nothing too often in a row. */
export class EmptyReplies extends Schema.TaggedError<EmptyReplies>()("EmptyReplies", {
  runId: Schema.String,
  count: Schema.Int
}) {
  override get message() {
    return `the model gave ${this.count} empty replies in a row`
  }
}

/** The model kept doing the same thing after it was told to stop. */
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
 */
export class OutputInvalid extends Schema.TaggedError<OutputInvalid>()("OutputInvalid", {
  runId: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `the answer does not fit the output schema: ${this.detail}`
  }
}

/** A token or cost limit was reached (CP-15). The run can go on with a larger budget. */
export class BudgetExhaustedError extends Schema.TaggedError<BudgetExhaustedError>()("BudgetExhaustedError", {
  dimension: Schema.Literals(["tokens", "cost"]),
  used: Schema.Finite,
  limit: Schema.Finite
}) {
  override get message() {
    return `budget exhausted: ${this.used} of ${this.limit} ${this.dimension === "tokens" ? "tokens" : "USD"} used`
  }
}

/** The tree of runs is as large or as deep as it may be (CP-15). */
export class SpawnDenied extends Schema.TaggedError<SpawnDenied>()("SpawnDenied", {
  parentRun: Schema.String,
  limit: Schema.Int
}) {
  override get message() {
    return `run '${this.parentRun}' may not spawn another: the limit is ${this.limit}`
  }
}

/** Middleware ended the run on purpose (CP-16). Never retried. */
export class MiddlewareTermination extends Schema.TaggedError<MiddlewareTermination>()("MiddlewareTermination", {
  reason: Schema.String
}) {
  override get message() {
    return `the run was stopped: ${this.reason}`
  }
}

/** A hook, a middleware or a part of the prompt that the host wrote failed (DR-8, DR-14). */
export class ExtensionFailed extends Schema.TaggedError<ExtensionFailed>()("ExtensionFailed", {
  /** The hook's name, `callModel`, `callTool`, or the name of the part. */
  extension: Schema.String,
  detail: Schema.String
}) {
  override get message() {
    return `${this.extension} failed: ${this.detail}`
  }
}

/** The host cancelled the run (DR-21). The run stays where it is. */
export class CancellationError extends Schema.TaggedError<CancellationError>()("CancellationError", {
  runId: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' was cancelled`
  }
}

/**
 * The run was at work for longer than the deadline of its budget, pauses left out (DR-21). It stays where it is, and can
 * be resumed with an agent that has more time.
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
 * The run waits: for a decision about a call (DR-22), given with `Kernel.answer` or `Kernel.resume`, or for whoever
 * resumes it (DR-9).
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

/** A run was finished by its host without an answer of the model (DR-10). */
export class RunFinished extends Schema.TaggedError<RunFinished>()("RunFinished", {
  runId: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' was finished: ${this.reason}`
  }
}

/** A deadlock among hand-built tasks (BP-59). */
export class DeadlockError extends Schema.TaggedError<DeadlockError>()("DeadlockError", {
  tasks: Schema.Array(Schema.String)
}) {
  override get message() {
    return `Tasks could not complete: ${this.tasks.join(", ")}`
  }
}

/**
 * Calls were in flight when the run stopped and nobody said what became of them (DR-16). `resume` says it with `replay`,
 * by these ids; `RunStore.inFlight` tells which skills they are of, and with which input.
 */
export class InFlightToolCalls extends Schema.TaggedError<InFlightToolCalls>()("InFlightToolCalls", {
  runId: Schema.String,
  callIds: Schema.Array(Schema.String)
}) {
  override get message() {
    return `calls in flight with an unknown outcome: ${this.callIds.join(", ")}`
  }
}

/** The run is past the point where its prompt could be prepared again (DR-19). */
export class RewindNotAllowed extends Schema.TaggedError<RewindNotAllowed>()("RewindNotAllowed", {
  runId: Schema.String,
  phase: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' cannot rewind from ${this.phase}`
  }
}

/** An answer to a question nobody asked (DR-22, R-25). `Kernel.questions` tells what is asked. */
export class ApprovalNotFound extends Schema.TaggedError<ApprovalNotFound>()("ApprovalNotFound", {
  runId: Schema.String,
  callId: Schema.String
}) {
  override get message() {
    return `run '${this.runId}' does not wait for an approval of '${this.callId}'`
  }
}

/** A replayed run took another turn than the recorded one. */
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
