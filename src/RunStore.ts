/**
 * Stores runs between turns.
 *
 * A store holds one append-only journal per run and a small head for lists. The
 * state of a run is the fold of its journal. `append` stores records that follow
 * the stored revision, all of them or none, so two workers can never both advance
 * a run:
 *
 * - **Durability.** Records are stored when `append` succeeds, and no crash loses
 *   them. A crash during an append leaves all of its records or none.
 * - **Fencing.** Of two appends at the same revision one succeeds, whatever their
 *   lengths. The other fails with `ConcurrentAppendError`, or with `RunExists`
 *   where both create the run.
 * - **Idempotence.** The same records once more are a success. A caller that got
 *   no answer repeats the append without asking first.
 * - **One clock.** Leases begin and expire by the clock of the store: that of the
 *   database, of the file system, or of this process where runs are in memory.
 *   The clocks of workers are compared with nothing, so they may be wrong by any
 *   amount. SQLite has the clock of its machine. A store whose clock is set
 *   forward ends leases early by as much, and one set back ends them late; of two
 *   workers that hold one run then, the revision still lets one append.
 *
 * @since 0.1.0
 */

import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError } from "./KernelError.ts"
import type { Call } from "./Call.ts"
import { beginningOf, originsOf } from "./internal/store/family.ts"
import * as Calls from "./internal/store/inFlight.ts"
import * as MemoryRuns from "./internal/store/memoryRuns.ts"
import { headOf, inOrder, matches } from "./internal/store/runHead.ts"
import { refusal } from "./internal/store/journalRules.ts"
import { MediaStore } from "./MediaStore.ts"
import type { RunRecord, RunState, Status } from "./RunState.ts"

export { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError }

/**
 * The hold of a worker on a run, by the clock of the store.
 *
 * @category models
 * @since 0.1.0
 */
export interface Lease {
  readonly workerId: string
  /** Milliseconds since the epoch. */
  readonly expiresAt: number
  /** Whether it had not expired yet when it was read. */
  readonly isLive: boolean
}

/**
 * A worker's request for a lease.
 *
 * @category models
 * @since 0.2.0
 */
export interface Claim {
  readonly workerId: string
  /** How long the worker holds the run from now on. A lease of zero has expired by every clock: it offers the run. */
  readonly lease: Duration.Input
  /** The revision and status that the worker saw: the claim fails when the run has moved since. */
  readonly seen?: Pick<RunHead, "revision" | "status"> | undefined
}

/**
 * What a store tells of a run without reading its journal.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunHead {
  readonly runId: string
  readonly rootRunId: string
  readonly parentRunId: string | undefined
  readonly agent: string
  readonly revision: number
  readonly status: Status
  readonly turns: number
  readonly createdAt: number
  readonly updatedAt: number
  /**
   * Who has the run. A lease that has expired holds nothing: it offers the run to any worker. Runs that were
   * submitted or answered have such a lease, and so do those that a worker had to leave and those whose worker died. A
   * run has none once it was given back, as when the run is paused or has ended, or while somebody runs it without one.
   */
  readonly lease: Lease | undefined
}

/**
 * Which runs to list. Those of the same instant are ordered by id.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunFilter {
  readonly status?: ReadonlyArray<Status["type"]> | undefined
  readonly agent?: string | undefined
  /** Only the runs of one tree. */
  readonly rootRunId?: string | undefined
  /** Only runs that have no parent. */
  readonly roots?: boolean | undefined
  /** Only runs without a live lease. */
  readonly unleased?: boolean | undefined
  /** Only runs whose last commit is older than this time (milliseconds since the epoch). */
  readonly updatedBefore?: number | undefined
  /**
   * Texts, with blanks between them, that all occur in the answer or in what was asked, in any case and order and
   * within words, too. The first 65,536 characters of the answer and, after it, the question are looked at.
   */
  readonly search?: string | undefined
  /** Which come first. Default: the `newest`. */
  readonly order?: "newest" | "oldest" | undefined
  /** Only runs that come after this one in that order, whether it is still there or not: how to read on. */
  readonly after?: Pick<RunHead, "createdAt" | "runId"> | undefined
  /** How many at most; none for less than one. Default: all. */
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
   * Stores records of one run that follow each other, all of them or none. `state` is the state after the last one.
   *
   * Records that begin at revision 1 create the run, and fail with `RunExists` if another run has its id. All others
   * fail with `ConcurrentAppendError` unless the stored revision is the one before the first record. The same records
   * once more are a success, also when others were stored after them.
   *
   * Fails with a `StoreError` of reason `invalid` if the records do not lead to `state` one by one, or hold a value that
   * is not JSON; see `refusal`.
   */
  readonly append: (
    records: Arr.NonEmptyReadonlyArray<RunRecord>,
    state: RunState
  ) => Effect.Effect<void, RunExists | ConcurrentAppendError | StoreError>
  /** Returns the state after the last record, if the run is known. */
  readonly load: (runId: string) => Effect.Effect<Option.Option<RunState>, StoreError>
  /** Returns the head of a run, if the run is known. */
  readonly head: (runId: string) => Effect.Effect<Option.Option<RunHead>, StoreError>
  /** Emits the records after `fromRevision`, in order. One that cannot be read fails the stream after those before it. */
  readonly read: (runId: string, fromRevision?: number) => Stream.Stream<RunRecord, StoreError>
  /**
   * Emits the records after `fromRevision`, then new ones as they are stored, each once and in order. The stream ends
   * with the layer of its store.
   */
  readonly tail: (runId: string, fromRevision?: number) => Stream.Stream<RunRecord, StoreError>
  /** Returns the heads of the runs that pass a filter, in its order. Default: all runs, the newest first. */
  readonly list: (filter?: RunFilter) => Effect.Effect<ReadonlyArray<RunHead>, StoreError>
  /**
   * Takes or renews the lease of a run for a worker. Fails with `RunBusy` while another worker's lease is live, and with
   * `ConcurrentAppendError` when the run is no longer as the worker saw it.
   */
  readonly acquire: (
    runId: string,
    claim: Claim
  ) => Effect.Effect<void, RunBusy | RunNotFound | ConcurrentAppendError | StoreError>
  /** Gives a lease back. Leaves the lease of another worker alone. */
  readonly release: (runId: string, workerId: string) => Effect.Effect<void, StoreError>
  /** Deletes runs with everything stored of them. Ids that are not known are passed over. */
  readonly remove: (runIds: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
}

/**
 * The store to which the kernel appends.
 *
 * @category services
 * @since 0.1.0
 */
export class RunStore extends Context.Service<RunStore, RunStoreShape>()("kernai/RunStore") {}

export { headOf, inOrder, matches, refusal }

/**
 * A call that was begun and has no result: where its process died, nobody knows whether it was made (DR-16).
 *
 * @category models
 * @since 0.1.0
 */
export interface CallInFlight extends Call {
  /** The run that makes it: the one that was asked about, or a task below it. */
  readonly runId: string
  /** What its skill was given as `SkillContext.idempotencyKey`: what to look for where the call may have left a trace. */
  readonly idempotencyKey: string
}

/**
 * The calls that a run and the tasks below it began and have no result of: those that were under way when its process
 * died, or are under way now. What is known of them is told to `Kernel.resume`, or to a `RunWorker`, as `replay` (DR-17).
 *
 * @example
 * const calls = yield* RunStore.inFlight(runId)
 * const replay: Record<string, Kernel.Recovery> = Object.fromEntries(
 *   calls.map((call) => [call.callId, isPaid(call.idempotencyKey) ? { resolve: { output: [paid] } } : "retry"])
 * )
 *
 * @category combinators
 * @since 0.1.0
 */
export const inFlight = (
  runId: string
): Effect.Effect<ReadonlyArray<CallInFlight>, RunNotFound | StoreError, RunStore> =>
  RunStore.use((store) => Calls.inFlight(store, runId))

/**
 * Forgets trees of runs whose root has ended and in which nothing happened since a time, and tells their ids.
 *
 * Completed runs have ended, unless `status` says otherwise; a task goes on no longer than its root. A tree
 * goes as a whole or not at all; its media go with it where a `MediaStore` is provided. A tree from which a run was
 * forked that has not ended stays: the fork sees its media. While the first record of one that has not ended cannot be
 * read, what is older than it stays: it may be a fork of that. Runs that lists leave out, such as those of a newer
 * format, are not seen here, nor what they were forked from: where versions share a store, the newest one prunes.
 *
 * @category combinators
 * @since 0.1.0
 */
export const prune = Effect.fnUntraced(function* (options: {
  /** Milliseconds since the epoch. */
  readonly updatedBefore: number
  /** What counts as ended. Default: `completed`. */
  readonly status?: ReadonlyArray<Status["type"]> | undefined
  /** Only trees whose root is of this agent. */
  readonly agent?: string | undefined
}): Effect.fn.Return<ReadonlyArray<string>, StoreError, RunStore> {
  const store = yield* RunStore
  const media = yield* Effect.serviceOption(MediaStore)
  const { agent, status = ["completed"], updatedBefore } = options
  const removed: Array<string> = []
  const roots = yield* store.list({ status, updatedBefore, roots: true, agent })
  const over = yield* treesOf(store, roots)
  for (const [rootRunId, tree] of over) {
    if (!tree.every((head) => head.updatedAt < updatedBefore)) over.delete(rootRunId)
  }
  const needed = over.size === 0 ? new Set() : yield* originsOfOpen(store, over)
  const gone = [...over].filter(([rootRunId]) => !needed.has(rootRunId))
  // A store may look through all there is for what belongs to a run: it does so for many at once.
  for (const trees of Arr.chunksOf(gone, 100)) {
    const runIds = trees.flatMap(([, tree]) => tree.map(({ runId }) => runId))
    yield* store.remove(runIds)
    if (Option.isSome(media)) yield* media.value.release(trees.map(([rootRunId]) => rootRunId))
    removed.push(...runIds)
  }
  return removed
})

/**
 * The trees of root runs. Many a store looks through all its runs to find one tree, so all are gathered, page by page.
 */
const treesOf = Effect.fnUntraced(function* (
  store: RunStoreShape,
  roots: ReadonlyArray<RunHead>
): Effect.fn.Return<Map<string, Array<RunHead>>, StoreError> {
  const trees = new Map<string, Array<RunHead>>(roots.map(({ runId }) => [runId, []]))
  if (roots.length === 0) return trees
  const limit = 10_000
  let after: RunHead | undefined
  do {
    const heads: ReadonlyArray<RunHead> = yield* store.list({ order: "oldest", limit, after })
    for (const head of heads) trees.get(head.rootRunId)?.push(head)
    after = heads[limit - 1]
  } while (after !== undefined)
  return trees
})

/** The root runs that others were forked from which may go on: all but those that are over. */
const originsOfOpen = Effect.fnUntraced(function* (
  store: RunStoreShape,
  over: ReadonlyMap<string, ReadonlyArray<RunHead>>
): Effect.fn.Return<ReadonlySet<string>, StoreError> {
  const found = new Set<string>()
  for (const head of yield* store.list({ status: ["running", "paused", "failed"], roots: true })) {
    if (over.has(head.runId)) continue
    const origins = Effect.flatMap(beginningOf(store, head.runId), (state) =>
      state === undefined ? Effect.succeed([]) : originsOf(store, state)
    )
    // What cannot be read may be mended, and nobody knows which of those that were there before it was forked from.
    const known = Effect.catchIf(
      origins,
      ({ reason }) => reason === "corrupt",
      (error) =>
        Effect.as(
          Effect.logWarning(`no run older than '${head.runId}' is forgotten`, error),
          [...over].flatMap(([rootRunId, tree]) =>
            tree.some((one) => one.createdAt <= head.createdAt) ? rootRunId : []
          )
        )
    )
    for (const rootRunId of yield* known) found.add(rootRunId)
  }
  return found
})

// ---------------------------------------------------------------- in this process

/**
 * Creates a store that keeps runs in this process.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory: Effect.Effect<RunStoreShape> = Clock.clockWith((clock) =>
  Effect.sync(() => MemoryRuns.make(clock).store)
)

/**
 * Keeps runs in this process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<RunStore> = Layer.effect(
  RunStore,
  Effect.map(
    Effect.acquireRelease(
      Clock.clockWith((clock) => Effect.sync(() => MemoryRuns.make(clock))),
      ({ end }) => Effect.sync(end)
    ),
    ({ store }) => store
  )
)
