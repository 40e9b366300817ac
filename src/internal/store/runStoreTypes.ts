/**
 * The types of a store of runs.
 */

import type * as Arr from "effect/Array"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import type { Call } from "../../Call.ts"
import type { Caller, Selection } from "../../Caller.ts"
import type { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError } from "../../KernelError.ts"
import type { Phase, RunRecord, RunState, Status } from "../../RunState.ts"

/**
 * The lease of a worker on a run, by the clock of the store.
 *
 * @category models
 * @since 0.1.0
 */
export interface Lease {
  readonly workerId: string
  /** The end of the lease, in milliseconds since the epoch. */
  readonly expiresAt: number
  /** Whether the lease had not expired when it was read. */
  readonly isLive: boolean
  /**
   * When the worker claimed the run, in milliseconds since the epoch. Renewing a lease does not change it. Absent for an
   * offer.
   *
   * @since 0.1.0
   */
  readonly since?: number
}

/**
 * A worker's request for the lease of a run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Claim {
  readonly workerId: string
  /** How long the worker holds the run from now on. A lease of zero has expired by every clock: it offers the run. */
  readonly lease: Duration.Input
  /** The revision and status that the worker read. The claim fails if the run has changed since. */
  readonly seen?: Pick<RunHead, "revision" | "status"> | undefined
}

/**
 * The status of a run, as lists, commands and events name it.
 *
 * - `queued`: the run waits for a worker. `reason` says that no runner of a cluster has its agent.
 * - `running`: the worker `by` has held the run `since` an instant (milliseconds since the epoch). Without `by`, a
 *   process executes the run without a lease, as every process does at first that runs it without a worker.
 * - `waiting`: the run waits for a person or for its host, as `reason` and `metadata` describe.
 * - `interrupted`: the worker `by` stopped without releasing the run. Another worker claims it.
 * - `cancelled`, `completed`, `failed`: the run is at rest. A failed or cancelled run can be resumed.
 * - `no_answer`: the run is at rest, and its model gave no answer: it took all its turns, was refused by a filter, or sent
 *   only empty, cut or repeated replies. `reason` is the last correction that the model was sent, or the message of
 *   `error`. It can be resumed, after `MaxStepsReached` with a higher `maxSteps`.
 *
 * @category models
 * @since 0.1.0
 */
export type RunStatus =
  | { readonly type: "queued"; readonly phase: Phase; readonly reason?: string }
  | { readonly type: "running"; readonly phase: Phase; readonly by?: string; readonly since?: number }
  | (Omit<Extract<Status, { readonly type: "paused" }>, "type"> & { readonly type: "waiting" })
  | { readonly type: "interrupted"; readonly phase: Phase; readonly by: string }
  | Extract<Status, { readonly type: "cancelled" | "completed" | "failed" }>
  | (Omit<Extract<Status, { readonly type: "failed" }>, "type"> & {
      readonly type: "no_answer"
      readonly reason: string
    })

/** All values of `RunStatus["type"]`. */
export const statuses = [
  "queued",
  "running",
  "waiting",
  "interrupted",
  "cancelled",
  "completed",
  "no_answer",
  "failed"
] as const satisfies ReadonlyArray<RunStatus["type"]>

/**
 * A status that a filter selects. `poisoned` are the failed runs that workers gave up, because their processes died of
 * them.
 *
 * @category models
 * @since 0.1.0
 */
export type StatusWord = (typeof statusWords)[number]

/** All statuses that a filter selects. */
export const statusWords = [...statuses, "poisoned"] as const

/**
 * The summary of a run that a store returns without reading the run's journal. Instants are milliseconds since the epoch.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunHead {
  readonly runId: string
  readonly rootRunId: string
  readonly parentRunId: string | undefined
  readonly agent: string
  /** The version of the agent with which the run was started. */
  readonly version: string | undefined
  /** The caller who started the tree of the run. */
  readonly caller: Caller | undefined
  readonly revision: number
  readonly status: RunStatus
  readonly turns: number
  /** The model of the last reply. Only a root run that has ended has one. */
  readonly model?: string | undefined
  readonly createdAt: number
  readonly updatedAt: number
  /**
   * The lease of the worker that holds the run. An expired lease offers the run to any worker. Submitted and answered
   * runs have an expired lease, and so do runs whose worker shut down or died. A run has no lease while it is paused,
   * after it has ended, and for the first moments while it runs without a worker.
   */
  readonly lease: Lease | undefined
  /** The tags of the run, sorted. Absent if it has none. */
  readonly tags?: ReadonlyArray<string> | undefined
}

/**
 * The place of a run in a list.
 *
 * @category models
 * @since 0.1.0
 */
export type ListPlace = Pick<RunHead, "createdAt" | "runId"> & Partial<Pick<RunHead, "status">>

/**
 * Selects runs to list. Runs of the same instant are ordered by id.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunFilter extends Selection {
  readonly status?: ReadonlyArray<StatusWord> | undefined
  readonly agent?: string | undefined
  /** Only runs that the caller with this id started. */
  readonly caller?: string | undefined
  /** Only root runs that have ended, and whose last reply is from this model. */
  readonly model?: string | undefined
  /** Only runs that have this tag. */
  readonly tag?: string | undefined
  /**
   * Only runs whose id begins with this text, as the ids of one caller or conversation do. A store finds them without
   * reading the other runs.
   *
   * @since 0.1.0
   */
  readonly prefix?: string | undefined
  /** Only the runs of one tree. */
  readonly rootRunId?: string | undefined
  /** Only runs that have no parent. */
  readonly roots?: boolean | undefined
  /** Only runs without a live lease. */
  readonly unleased?: boolean | undefined
  /** Only runs whose last record is older than this time (milliseconds since the epoch). */
  readonly updatedBefore?: number | undefined
  /**
   * At most 32 words, separated by blanks, that must all occur in the question, the answer or the results of calls, in any
   * case and order, also inside other words. The search covers 65,536 characters: the answer, the question, then the first
   * 1,024 of each result of the last 64 turns. Results are found once the run waits or has ended, at the latest.
   */
  readonly search?: string | undefined
  /**
   * The order of the list. Default: `newest` first. `due` selects the waiting runs whose questions have a deadline, the
   * earliest first.
   */
  readonly order?: "newest" | "oldest" | "due" | undefined
  /**
   * Only runs that follow this one in that order, whether or not it still exists: pass the last head of a page. The order
   * `due` follows its status, too.
   */
  readonly after?: ListPlace | undefined
  /** The largest number of runs to return; less than one returns none. Default: all. */
  readonly limit?: number | undefined
}

/**
 * The operations of a store.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunStoreShape {
  /**
   * Stores consecutive records of one run, all of them or none. `state` is the state after the last one.
   *
   * Records that begin at revision 1 create the run, and fail with `RunExists` if another run has its id. All others
   * fail with `ConcurrentAppendError` unless the stored revision is the one before the first record. Appending the same
   * records again succeeds, even after others were stored behind them.
   *
   * Fails with a `StoreError` of reason `invalid` if the records do not lead to `state` one by one, or hold a value that
   * is not JSON; see `refusal`.
   */
  readonly append: (
    records: Arr.NonEmptyReadonlyArray<RunRecord>,
    state: RunState
  ) => Effect.Effect<void, RunExists | ConcurrentAppendError | StoreError>
  /** Returns the state after the last record, if the run exists. */
  readonly load: (runId: string) => Effect.Effect<Option.Option<RunState>, StoreError>
  /** Returns the head of a run, if the run exists. */
  readonly head: (runId: string) => Effect.Effect<Option.Option<RunHead>, StoreError>
  /** Emits the records after `fromRevision`, in order. A record that cannot be read fails the stream at its place. */
  readonly read: (runId: string, fromRevision?: number) => Stream.Stream<RunRecord, StoreError>
  /**
   * Emits the records after `fromRevision`, then new ones as they are stored, each once and in order. The stream ends
   * with the layer of its store.
   */
  readonly tail: (runId: string, fromRevision?: number) => Stream.Stream<RunRecord, StoreError>
  /** Returns the heads of the runs that pass a filter, in its order. Default: all runs, the newest first. */
  readonly list: (filter?: RunFilter) => Effect.Effect<ReadonlyArray<RunHead>, StoreError>
  /**
   * Acquires or renews the lease of a run for a worker. Fails with `RunBusy` while another worker's lease is live, and
   * with `ConcurrentAppendError` if the run has changed since the worker read it.
   */
  readonly acquire: (
    runId: string,
    claim: Claim
  ) => Effect.Effect<void, RunBusy | RunNotFound | ConcurrentAppendError | StoreError>
  /** Releases the lease of a worker. Does nothing if another worker holds the run. */
  readonly release: (runId: string, workerId: string) => Effect.Effect<void, StoreError>
  /**
   * Waits until the run is cancelled, by any process. Failed queries are repeated.
   *
   * The kernel waits for this while it drives the run, so a store should notice a cancellation within 100 milliseconds.
   */
  readonly cancelled: (runId: string) => Effect.Effect<void>
  /**
   * Emits the ids of runs as other processes offer them with an `acquire` with a lease of zero. An id may be emitted
   * twice or get lost, because workers also poll. Without it, workers find the runs of other processes by polling.
   *
   * @since 0.1.0
   */
  readonly offers?: Stream.Stream<string> | undefined
  /**
   * Announces changes by all processes, so that workers rest while nothing happens. Without it, they poll.
   *
   * @since 0.1.0
   */
  readonly changes?: Changes | undefined
  /**
   * Small texts beside the runs. Without them, schedules cannot be listed or paused, and
   * processes cannot be drained.
   *
   * @since 0.1.0
   */
  readonly notes?: Notes | undefined
  /**
   * The tags of runs. Without it, no run has any.
   *
   * @since 0.1.0
   */
  readonly tags?: Tags | undefined
  /**
   * Counts root runs by the time of their start, with one query. Without it, they are counted from their lists.
   *
   * @since 0.1.0
   */
  readonly counts?: ((range: CountRange) => Effect.Effect<ReadonlyArray<RunCount>, StoreError>) | undefined
  /**
   * Sums what root runs used that have ended, with one query. Without it, this is unknown.
   *
   * @since 0.1.0
   */
  readonly spending?: ((range: CountRange) => Effect.Effect<ReadonlyArray<RunSpending>, StoreError>) | undefined
  /** Deletes runs with everything stored for them. Ignores unknown ids. */
  readonly remove: (runIds: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
}

/**
 * The announcements of a store that something has changed.
 *
 * @category models
 * @since 0.1.0
 */
export interface Changes {
  /** Waits until any process, this one included, stores records or offers a run, or has just done so. */
  readonly next: Effect.Effect<void>
  /**
   * How often a worker that waits for the next change polls nevertheless, because announcements may be lost. Infinite if
   * none can be.
   */
  readonly recheck: Duration.Input
}

/**
 * Which runs are counted: those that started from an instant on and before another (milliseconds since the epoch), in
 * slots of equal length.
 *
 * @category models
 * @since 0.1.0
 */
export interface CountRange {
  readonly from: number
  readonly to: number
  readonly slots: number
}

/**
 * How many root runs of an agent started in a slot of the range, and have a status. Runs that are queued or interrupted
 * count as running.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunCount {
  /** The index of the slot. */
  readonly slot: number
  readonly agent: string
  readonly status: StatusWord
  readonly count: number
}

/**
 * The usage of an agent's root runs that started in one slot of the range, have ended, and took about equally long. Runs
 * that ended without a reply are left out.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunSpending {
  /** The index of the slot. */
  readonly slot: number
  readonly agent: string
  /** The model of their last replies. */
  readonly model: string
  /** Milliseconds from the start of the runs to their end, within a tenth. */
  readonly took: number
  readonly runs: number
  /** Tokens of their prompts and replies, with those of the runs below them. */
  readonly tokens: number
  /** US dollars. Absent where no price is known. */
  readonly costUsd?: number
}

/**
 * A small text beside the runs, which all processes of a store share.
 *
 * @category models
 * @since 0.1.0
 */
export interface Note {
  /** At most 512 characters. */
  readonly key: string
  readonly text: string
}

/**
 * The notes of a store.
 *
 * @category models
 * @since 0.1.0
 */
export interface Notes {
  /** Returns the notes whose keys begin with a text, in the order of their keys. */
  readonly list: (prefix: string) => Effect.Effect<ReadonlyArray<Note>, StoreError>
  /** Stores the text of a note as a whole, or removes the note if there is none. */
  readonly set: (key: string, text: string | undefined) => Effect.Effect<void, StoreError>
  /** Announces notes that any process changes. Without it, processes that wait for one poll. */
  readonly changes?: Changes | undefined
}

/**
 * Gives tags to runs and takes them away, for people who sort runs. A tag changes neither the journal nor the revision
 * of a run. Runs that do not exist are ignored.
 *
 * @category models
 * @since 0.1.0
 */
export interface Tags {
  /** Adds a tag to runs. Fails with a `StoreError` for a tag of more than 64 characters. */
  readonly add: (tag: string, runIds: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
  readonly remove: (tag: string, runIds: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
}

/**
 * A call that was started and has no result yet. If its process died, it is unknown whether the call took effect.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallInFlight extends Call {
  /** The run that makes the call: the run asked about, or a task below it. */
  readonly runId: string
  /** The `SkillContext.idempotencyKey` of the call. Use it to find out whether the call left a trace outside. */
  readonly idempotencyKey: string
}
