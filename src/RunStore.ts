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
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError } from "./KernelError.ts"
import type { RunRecord, RunState, Status } from "./RunState.ts"

export {
  /**
   * @category errors
   * @since 0.1.0
   */
  ConcurrentAppendError,
  /**
   * @category errors
   * @since 0.1.0
   */
  RunBusy,
  /**
   * @category errors
   * @since 0.1.0
   */
  RunExists,
  /**
   * @category errors
   * @since 0.1.0
   */
  RunNotFound,
  /**
   * @category errors
   * @since 0.1.0
   */
  StoreError
}

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
  readonly lease: Lease | undefined
}

/**
 * Which runs to list. Newest first.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunFilter {
  readonly status?: ReadonlyArray<Status["type"]>
  readonly agent?: string
  /** Only the runs of one tree. */
  readonly rootRunId?: string
  /** Only runs that have no parent. */
  readonly roots?: boolean
  /** Only runs nobody holds at this time (milliseconds since the epoch). */
  readonly unleasedAt?: number
  /** Words to find in what was asked and answered, where the store can search. */
  readonly search?: string
  readonly limit?: number
}

/**
 * The verbs of a store.
 *
 * @category models
 * @since 0.1.0
 */
export interface Shape {
  /** Stores the first record of a run. */
  readonly create: (record: RunRecord, state: RunState) => Effect.Effect<void, RunExists | StoreError>
  /**
   * Stores `record` when its revision follows the stored one; `state` is the state it leads to.
   * The same record once more is a success: its acknowledgement was lost.
   */
  readonly commit: (record: RunRecord, state: RunState) => Effect.Effect<void, ConcurrentAppendError | StoreError>
  /** The state at the last commit, if the run is known. */
  readonly load: (runId: string) => Effect.Effect<Option.Option<RunState>, StoreError>
  readonly head: (runId: string) => Effect.Effect<Option.Option<RunHead>, StoreError>
  /** The records after `fromRevision`, in order. */
  readonly read: (runId: string, fromRevision?: number) => Stream.Stream<RunRecord, StoreError>
  /** The records after `fromRevision`, then those to come: no gap, no repeat. Ends never. */
  readonly tail: (runId: string, fromRevision?: number) => Stream.Stream<RunRecord, StoreError>
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
export class RunStore extends Context.Service<RunStore, Shape>()("kernai/RunStore") {}

/**
 * The head of a state.
 *
 * @category getters
 * @since 0.1.0
 */
export const headOf = (state: RunState, lease?: Lease | undefined): RunHead => ({
  runId: state.runId,
  rootRunId: state.rootRunId,
  parentRunId: state.parentRunId,
  agent: state.agent,
  revision: state.revision,
  status: state.status,
  turns: state.turns.length,
  createdAt: state.createdAt,
  updatedAt: state.updatedAt,
  lease
})

/**
 * Tells whether a head passes a filter; `search` is the store's own affair.
 *
 * @category guards
 * @since 0.1.0
 */
export const matches = (head: RunHead, filter: RunFilter): boolean =>
  (filter.status === undefined || filter.status.includes(head.status.type)) &&
  (filter.agent === undefined || filter.agent === head.agent) &&
  (filter.rootRunId === undefined || filter.rootRunId === head.rootRunId) &&
  (filter.roots !== true || head.parentRunId === undefined) &&
  (filter.unleasedAt === undefined || head.lease === undefined || head.lease.expiresAt <= filter.unleasedAt)

// ---------------------------------------------------------------- memory

interface Kept {
  readonly journal: Array<RunRecord>
  state: RunState
  lease: Lease | undefined
}

/**
 * Keeps runs in this process.
 *
 * @category constructors
 * @since 0.1.0
 */
export const makeMemory: Effect.Effect<Shape> = /*#__PURE__*/ Effect.sync(() => {
  const runs = new Map<string, Kept>()
  const followers = new Set<(record: RunRecord) => void>()

  const tell = (record: RunRecord) => {
    for (const follow of followers) follow(record)
  }

  const create = (record: RunRecord, state: RunState) =>
    Effect.suspend(() => {
      const kept = runs.get(record.runId)
      if (kept !== undefined) {
        return kept.journal[0] === record ? Effect.void : Effect.fail(new RunExists({ runId: record.runId }))
      }
      runs.set(record.runId, { journal: [record], state, lease: undefined })
      tell(record)
      return Effect.void
    })

  const commit = (record: RunRecord, state: RunState) =>
    Effect.suspend(() => {
      const kept = runs.get(record.runId)
      const actualSeq = kept?.journal.length ?? 0
      const expectedSeq = record.revision - 1
      if (kept === undefined || actualSeq !== expectedSeq) {
        if (kept !== undefined && kept.journal[expectedSeq] === record) return Effect.void
        return Effect.fail(new ConcurrentAppendError({ runId: record.runId, expectedSeq, actualSeq }))
      }
      kept.journal.push(record)
      kept.state = state
      tell(record)
      return Effect.void
    })

  const load = (runId: string) => Effect.sync(() => Option.fromUndefinedOr(runs.get(runId)?.state))

  const head = (runId: string) =>
    Effect.sync(() => Option.map(Option.fromUndefinedOr(runs.get(runId)), (kept) => headOf(kept.state, kept.lease)))

  const read = (runId: string, fromRevision = 0) =>
    Stream.suspend(() => Stream.fromIterable(runs.get(runId)?.journal.slice(fromRevision) ?? []))

  const tail = (runId: string, fromRevision = 0) =>
    Stream.callback<RunRecord>((queue) =>
      Effect.acquireRelease(
        Effect.sync(() => {
          for (const record of runs.get(runId)?.journal.slice(fromRevision) ?? []) Queue.offerUnsafe(queue, record)
          const follow = (record: RunRecord) => {
            if (record.runId === runId && record.revision > fromRevision) Queue.offerUnsafe(queue, record)
          }
          followers.add(follow)
          return follow
        }),
        (follow) => Effect.sync(() => followers.delete(follow))
      )
    )

  const list = (filter: RunFilter = {}) =>
    Effect.sync(() => {
      const found: Array<RunHead> = []
      for (const kept of runs.values()) {
        const head = headOf(kept.state, kept.lease)
        if (matches(head, filter) && mentions(kept.state, filter.search)) found.push(head)
      }
      found.sort((a, b) => b.createdAt - a.createdAt)
      return filter.limit === undefined ? found : found.slice(0, filter.limit)
    })

  const acquire = (runId: string, lease: Lease, now: number) =>
    Effect.suspend((): Effect.Effect<void, RunBusy | RunNotFound> => {
      const kept = runs.get(runId)
      if (kept === undefined) return Effect.fail(new RunNotFound({ runId }))
      const held = kept.lease
      if (held !== undefined && held.workerId !== lease.workerId && held.expiresAt > now) {
        return Effect.fail(new RunBusy({ runId, ...held }))
      }
      kept.lease = lease
      return Effect.void
    })

  const release = (runId: string, workerId: string) =>
    Effect.sync(() => {
      const kept = runs.get(runId)
      if (kept?.lease?.workerId === workerId) kept.lease = undefined
    })

  const remove = (runIds: ReadonlyArray<string>) =>
    Effect.sync(() => {
      for (const runId of runIds) runs.delete(runId)
    })

  return { create, commit, load, head, read, tail, list, acquire, release, remove }
})

/**
 * Keeps runs in this process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<RunStore> = /*#__PURE__*/ Layer.effect(RunStore, makeMemory)

const mentions = (state: RunState, search: string | undefined): boolean => {
  if (search === undefined || search.trim() === "") return true
  const text = state.prompt
    .flatMap((message) => message.content)
    .map((content) => (content.type === "text" ? content.text : ""))
    .join("\n")
    .toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}
