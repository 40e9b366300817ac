/**
 * Errors of run stores and media stores.
 */

import * as Schema from "effect/Schema"

/** Another worker appended first. Load the run again and decide anew before the next append. */
export class ConcurrentAppendError extends Schema.TaggedError<ConcurrentAppendError>()("ConcurrentAppendError", {
  runId: Schema.String,
  expected: Schema.Int,
  actual: Schema.Int
}) {
  override get message() {
    return `run '${this.runId}' is at revision ${this.actual}, expected ${this.expected}`
  }
}

/** Another worker holds the run's lease. */
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

/** The store has no run with this id. */
export class RunNotFound extends Schema.TaggedError<RunNotFound>()("RunNotFound", { runId: Schema.String }) {
  override get message() {
    return `no run '${this.runId}'`
  }
}

/** The store already has a run with this id. */
export class RunExists extends Schema.TaggedError<RunExists>()("RunExists", { runId: Schema.String }) {
  override get message() {
    return `run '${this.runId}' already exists`
  }
}

/** The store has no schedule with this name, or none of its runs. */
export class ScheduleNotFound extends Schema.TaggedError<ScheduleNotFound>()("ScheduleNotFound", {
  name: Schema.String,
  reason: Schema.Literals(["unknown", "never_ran"])
}) {
  override get message() {
    return this.reason === "unknown"
      ? `no schedule '${this.name}': none with that name was started on this store`
      : `schedule '${this.name}' has no run yet, and a run now begins as its last one did`
  }
}

/** No process with this name runs stored runs of the store. */
export class ProcessNotFound extends Schema.TaggedError<ProcessNotFound>()("ProcessNotFound", { name: Schema.String }) {
  override get message() {
    return `no process '${this.name}' runs the runs of this store`
  }
}

/** The store failed. Nothing is known to be lost, so the run can be resumed. */
export class StoreError extends Schema.TaggedError<StoreError>()("StoreError", {
  operation: Schema.String,
  /**
   * `corrupt`: stored data cannot be read. `format`: another version of kernai wrote it. `invalid`: the given data cannot be
   * stored.
   */
  reason: Schema.Literals(["unavailable", "timeout", "corrupt", "format", "limit_exceeded", "invalid"]),
  detail: Schema.String
}) {
  override get message() {
    return `the store failed to ${this.operation}: ${this.detail}`
  }
}

/** The media id already names different data. */
export class MediaConflict extends Schema.TaggedError<MediaConflict>()("MediaConflict", { id: Schema.String }) {
  override get message() {
    return `media id '${this.id}' already names other data`
  }
}

/** The store has no media with this id. */
export class MediaNotFound extends Schema.TaggedError<MediaNotFound>()("MediaNotFound", { id: Schema.String }) {
  override get message() {
    return `no media with id '${this.id}'`
  }
}

/** The store knows the media but cannot read its bytes. */
export class MediaUnreadable extends Schema.TaggedError<MediaUnreadable>()("MediaUnreadable", {
  id: Schema.String,
  reason: Schema.String
}) {
  override get message() {
    return `media '${this.id}' cannot be read: ${this.reason}`
  }
}
