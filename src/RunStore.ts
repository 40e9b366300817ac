/**
 * Stores runs between turns.
 *
 * A store holds one append-only journal per run and a small head for lists. The
 * state of a run is the fold of its journal. `append` stores records that follow
 * the stored revision, all of them or none, so two workers can never both advance
 * a run:
 *
 * - **Durability.** Records are stored when `append` succeeds, and no crash loses them. A crash during an append leaves
 *   all of its records or none.
 * - **Fencing.** Of two appends at the same revision one succeeds, whatever their lengths. The other fails with
 *   `ConcurrentAppendError`, or with `RunExists` where both create the run.
 * - **Idempotence.** Appending the same records again succeeds. A caller that got no reply repeats the append without
 *   checking first.
 * - **One clock.** Leases begin and expire by the clock of the store: that of the database, of the file system, or of
 *   this process where runs are in memory. The clocks of workers are never compared, so they may be wrong by any
 *   amount. SQLite uses the clock of its machine. Setting the clock of a store forward ends leases early by as much,
 *   and setting it back ends them late. If two workers then hold one run, the revision still lets only one of them
 *   append.
 *
 * @since 0.1.0
 */

import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError } from "./KernelError.ts"
import * as Stored from "./store-kit/StoredRuns.ts"
import * as MemoryRuns from "./store-kit/internal/memoryRuns.ts"
import { headOf, inOrder, isEnded, isPoisoned, matches, refusal, statusOf, unplaced } from "./store-kit/StoreRules.ts"
import {
  type CallInFlight,
  type RunHead,
  type RunStoreShape,
  type StatusWord,
  statuses,
  statusWords
} from "./internal/store/runStoreTypes.ts"
import { MediaStore } from "./MediaStore.ts"
import type { RunRecord } from "./RunState.ts"

export { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError }
export type {
  CallInFlight,
  Changes,
  Claim,
  Lease,
  CountRange,
  ListPlace,
  Note,
  Notes,
  RunCount,
  RunFilter,
  RunHead,
  RunSpending,
  RunStatus,
  RunStoreShape,
  StatusWord,
  Tags
} from "./internal/store/runStoreTypes.ts"

/**
 * The store to which the kernel appends.
 *
 * @category services
 * @since 0.1.0
 */
export class RunStore extends Context.Service<RunStore, RunStoreShape>()("kernai/RunStore") {}

export {
  headOf,
  inOrder,
  isEnded,
  isPoisoned,
  matches,
  refusal,
  statusOf,
  unplaced,
  /**
   * All statuses of runs, as in `RunStatus["type"]`.
   *
   * @category models
   * @since 0.1.0
   */
  statuses,
  /**
   * All statuses that a filter selects: those of runs, and `poisoned`.
   *
   * @category models
   * @since 0.1.0
   */
  statusWords
}

/**
 * Returns the calls that a run and the tasks below it started and that have no result: they are in flight now, or were
 * in flight when the process died. Pass what is known about them as `recover` to `Kernel.resume` or to a `RunWorker`.
 *
 * @example
 * const calls = yield* RunStore.inFlight(runId)
 * const recover: Record<string, Kernel.Recovery> = Object.fromEntries(
 *   calls.map((call) => [call.callId, isPaid(call.idempotencyKey) ? { resolve: { output: [paid] } } : "retry"])
 * )
 *
 * @category running
 * @since 0.1.0
 */
export const inFlight = Effect.fn("RunStore.inFlight")(function* (
  runId: string
): Effect.fn.Return<ReadonlyArray<CallInFlight>, RunNotFound | StoreError, RunStore> {
  return yield* Stored.inFlight(yield* RunStore, runId)
})

/**
 * Returns the records of a run and of all runs below it, oldest run first: what an export holds and a replay compares
 * with.
 *
 * @category running
 * @since 0.1.0
 */
export const recordsOf = Effect.fn("RunStore.recordsOf")(function* (
  runId: string
): Effect.fn.Return<ReadonlyArray<RunRecord>, RunNotFound | StoreError, RunStore> {
  return yield* Stored.recordsOf(yield* RunStore, runId)
})

/**
 * Deletes trees of runs whose root has ended and that were not updated since an instant. Returns the ids of the deleted
 * runs.
 *
 * By default only completed runs count as ended; see `status`. A tree is deleted as a whole or not at all, and its
 * media with it if a `MediaStore` is in context. A tree stays while a fork of it has not ended, because the fork uses
 * its media. If the first record of an unfinished run cannot be read, all older trees stay, since the run may be a fork
 * of one of them. Runs that lists omit, such as those of a newer format, are invisible here, and so are their origins:
 * if several versions share a store, prune with the newest one.
 *
 * @category running
 * @since 0.1.0
 */
export const prune = Effect.fn("RunStore.prune")(function* (options: {
  /** Milliseconds since the epoch. */
  readonly updatedBefore: number
  /** Statuses that count as ended. Default: `completed`. */
  readonly status?: ReadonlyArray<StatusWord> | undefined
  /** Only trees whose root run belongs to this agent. */
  readonly agent?: string | undefined
  /** Only trees of this tenant. */
  readonly tenant?: string | undefined
  /** Only trees whose caller has all of these labels. */
  readonly labels?: { readonly [name: string]: string } | undefined
  /** Only trees whose id begins with this text. */
  readonly prefix?: string | undefined
}): Effect.fn.Return<ReadonlyArray<string>, StoreError, RunStore> {
  const store = yield* RunStore
  const media = yield* Effect.serviceOption(MediaStore)
  const { agent, labels, prefix, status = ["completed"], tenant, updatedBefore } = options
  const removed: Array<string> = []
  const roots = yield* store.list({ status, updatedBefore, roots: true, agent, tenant, labels, prefix })
  const over = yield* treesOf(store, roots)
  for (const [rootRunId, tree] of over) {
    if (!tree.every((head) => head.updatedAt < updatedBefore)) over.delete(rootRunId)
  }
  const needed = over.size === 0 ? new Set() : yield* originsOfOpen(store, over)
  const gone = [...over].filter(([rootRunId]) => !needed.has(rootRunId))
  // Some stores scan everything to find what belongs to a run, so runs are removed in batches.
  for (const trees of Arr.chunksOf(gone, 100)) {
    const runIds = trees.flatMap(([, tree]) => tree.map(({ runId }) => runId))
    yield* store.remove(runIds)
    if (Option.isSome(media)) yield* media.value.release(trees.map(([rootRunId]) => rootRunId))
    removed.push(...runIds)
  }
  return removed
})

/**
 * Returns the trees of root runs. Some stores scan all runs to find one tree, so all heads are read once, page by page.
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

const unfinished = ["queued", "running", "waiting", "interrupted", "cancelled", "no_answer", "failed"] as const

/** The root runs from which unfinished runs were forked. */
const originsOfOpen = Effect.fnUntraced(function* (
  store: RunStoreShape,
  over: ReadonlyMap<string, ReadonlyArray<RunHead>>
): Effect.fn.Return<ReadonlySet<string>, StoreError> {
  const found = new Set<string>()
  for (const head of yield* store.list({ status: unfinished, roots: true })) {
    if (over.has(head.runId)) continue
    const origins = Effect.flatMap(Stored.beginningOf(store, head.runId), (state) =>
      state === undefined ? Effect.succeed([]) : Stored.originsOf(store, state)
    )
    // An unreadable run may be repaired, and may be a fork of any older run.
    const known = Effect.catchIf(
      origins,
      ({ reason }) => reason === "corrupt",
      (error) =>
        Effect.as(
          Effect.logWarning(`no run older than '${head.runId}' is deleted`, error),
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
 * Creates a store that keeps all runs in this process.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory: Effect.Effect<RunStoreShape> = Clock.clockWith((clock) =>
  Effect.sync(() => MemoryRuns.make({ runs: Infinity, bytes: Infinity }, clock).store)
)

/**
 * Limits on the ended runs that a store in memory keeps. Beyond them, the runs that ended first are dropped, each with
 * its tasks. An interrupted run whose lease was released counts as ended until it is resumed. Runs that are in progress,
 * paused or queued stay, with their tasks and the runs they were forked from.
 *
 * @category models
 * @since 0.1.0
 */
export interface MemoryOptions {
  /** Number of ended runs that are kept, tasks included. Default: 1,000. */
  readonly endedRuns?: number | undefined
  /** Approximate bytes of ended runs that are kept. Default: 64 MiB. */
  readonly endedBytes?: number | undefined
}

/**
 * Keeps runs in this process, and a bounded number of those that ended.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemoryWith = (options: MemoryOptions): Layer.Layer<RunStore> => {
  const { endedBytes = 64 * 1024 * 1024, endedRuns = 1_000 } = options
  return Layer.effect(
    RunStore,
    Effect.map(
      Effect.acquireRelease(
        Clock.clockWith((clock) => Effect.sync(() => MemoryRuns.make({ runs: endedRuns, bytes: endedBytes }, clock))),
        ({ end }) => Effect.sync(end)
      ),
      ({ store }) => store
    )
  )
}

/**
 * Keeps runs in this process, and the last 1,000 of those that ended.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<RunStore> = layerMemoryWith({})
