/**
 * Where runs are kept between turns.
 *
 * A store is an append-only journal per run with one small head. `commit`
 * accepts only the record that follows the stored revision, so two workers can
 * never both advance a run; what it accepted is there after any crash. State is
 * the fold of the journal, a snapshot only a shortcut to it (DR-5, DR-6).
 *
 * @since 0.1.0
 */

import * as Arr from "effect/Array"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Stream from "effect/Stream"
import { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError } from "./KernelError.ts"
import type { Call } from "./Call.ts"
import { beginningOf, originsOf } from "./internal/loop/fork.ts"
import * as Calls from "./internal/store/inFlight.ts"
import * as MemoryRuns from "./internal/store/memoryRuns.ts"
import { headOf, inOrder, matches } from "./internal/store/runHead.ts"
import { notFirst, notOfOne, notTogether } from "./internal/store/journalRules.ts"
import { MediaStore } from "./MediaStore.ts"
import type { RunRecord, RunState, Status } from "./RunState.ts"

export { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError }

/**
 * A worker's claim on a run (DR-6). Times are milliseconds since the epoch.
 *
 * @category models
 * @since 0.1.0
 */
export interface Lease {
  readonly workerId: string
  readonly expiresAt: number
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
   * Who has the run. A lease that has ended (`expiresAt`) holds nothing: it offers the run to any worker. Runs that were
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
  /** Only runs nobody holds at this time (milliseconds since the epoch). */
  readonly unleasedAt?: number | undefined
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
 * The verbs of a store.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunStoreShape {
  /** Stores the first record of a run, whose revision is 1. The same record once more is a success. */
  readonly create: (record: RunRecord, state: RunState) => Effect.Effect<void, RunExists | StoreError>
  /**
   * Stores `record` when its revision follows the stored one; `state` is the state it leads to.
   * The same record once more is a success: its acknowledgement was lost.
   */
  readonly commit: (record: RunRecord, state: RunState) => Effect.Effect<void, ConcurrentAppendError | StoreError>
  /**
   * Stores records that follow one another, on the terms of `commit`: in one transaction, or, where every revision is
   * to have one of its own, in order up to the first that is not taken. `states` are those the records lead to, one
   * each. A list with a gap fails with `ConcurrentAppendError`; one of several runs, or with a state too few or too
   * many, is `invalid`, and nothing of it is stored (`notTogether`).
   *
   * A store that has this is given what happened between two effects at once; one that has not is given each
   * revision by itself. Where they share a transaction, a crash sets a run back to before its last effect, else to
   * one of the revisions after it: nothing that others could see is ever taken back. Whoever wraps `commit` wraps
   * this too, or leaves it out.
   */
  readonly commitAll?: (
    records: Arr.NonEmptyReadonlyArray<RunRecord>,
    states: Arr.NonEmptyReadonlyArray<RunState>
  ) => Effect.Effect<void, ConcurrentAppendError | StoreError>
  /** The state at the last commit, if the run is known. */
  readonly load: (runId: string) => Effect.Effect<Option.Option<RunState>, StoreError>
  /** What is told of a run without its journal, if the run is known. */
  readonly head: (runId: string) => Effect.Effect<Option.Option<RunHead>, StoreError>
  /** The records after `fromRevision`, in order. One that cannot be read fails it after those before it. */
  readonly read: (runId: string, fromRevision?: number) => Stream.Stream<RunRecord, StoreError>
  /**
   * The records after `fromRevision`, then those to come: no gap, no repeat. It does not end by itself, but with the
   * layer of its store.
   */
  readonly tail: (runId: string, fromRevision?: number) => Stream.Stream<RunRecord, StoreError>
  /** The runs that pass a filter, in its order: all of them, the newest first, without one. */
  readonly list: (filter?: RunFilter) => Effect.Effect<ReadonlyArray<RunHead>, StoreError>
  /** Takes or renews the lease of a run for its worker; fails while another's is live at `now`. */
  readonly acquire: (
    runId: string,
    lease: Lease,
    now: number
  ) => Effect.Effect<void, RunBusy | RunNotFound | StoreError>
  /** Gives a lease back. Another's is left alone. */
  readonly release: (runId: string, workerId: string) => Effect.Effect<void, StoreError>
  /** Forgets runs: those named, with everything stored of them. */
  readonly remove: (runIds: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
}

/**
 * The store the kernel commits to.
 *
 * @category services
 * @since 0.1.0
 */
export class RunStore extends Context.Service<RunStore, RunStoreShape>()("kernai/RunStore") {}

export { headOf, inOrder, matches }

export { notFirst, notOfOne, notTogether }

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
 * Keeps runs in this process, each revision by itself: a store to wrap and to watch.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory: Effect.Effect<RunStoreShape> = Effect.sync(() => eachRevision(MemoryRuns.make().store))

/**
 * A store that is given each revision by itself, whatever else it can.
 *
 * @category combinators
 * @since 0.1.0
 */
export const eachRevision = (store: RunStoreShape): RunStoreShape => {
  const { commitAll: _, ...strict } = store
  return strict
}

/**
 * Keeps runs in this process, what happened between two effects at once.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<RunStore> = Layer.effect(
  RunStore,
  Effect.map(
    Effect.acquireRelease(Effect.sync(MemoryRuns.make), ({ end }) => Effect.sync(end)),
    ({ store }) => store
  )
)
