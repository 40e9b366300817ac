/**
 * Why a store of runs did not do what it was asked to.
 */

import * as Schema from "effect/Schema"

/** Another worker committed first (DR-6). Reload, decide again, then try again. */
export class ConcurrentAppendError extends Schema.TaggedError<ConcurrentAppendError>()("ConcurrentAppendError", {
  runId: Schema.String,
  expectedSeq: Schema.Int,
  actualSeq: Schema.Int
}) {
  override get message() {
    return `run '${this.runId}' is at revision ${this.actualSeq}, expected ${this.expectedSeq}`
  }
}

/** Another worker holds the run's lease (DR-6). */
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

/** No run of this id. */
export class RunNotFound extends Schema.TaggedError<RunNotFound>()("RunNotFound", { runId: Schema.String }) {
  override get message() {
    return `no run '${this.runId}'`
  }
}

/** A run of this id exists already. */
export class RunExists extends Schema.TaggedError<RunExists>()("RunExists", { runId: Schema.String }) {
  override get message() {
    return `run '${this.runId}' exists already`
  }
}

/** The store could not do what was asked. Nothing is known to be lost: resume the run. */
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
