/**
 * A run store of your own: runs as texts in a key-value database, made with `RunCodec` and `kernai/store-kit`.
 *
 * The database here is a map that several stores share, as workers share a server. What matters is what it must do:
 * append a text only if the run is at the expected revision, and keep one lease per run. `12-own-store.ts` checks it.
 */
import { Clock, Duration, Effect, Layer, Option, Result, Stream } from "effect"
import type { RunState } from "kernai"
import { RunCodec, RunStore } from "kernai"
import { Polling, StoreRules } from "kernai/store-kit"

/** A run in the database: the text of each append, its last revision, and a lease. */
interface Row {
  readonly appends: Array<string>
  revision: number
  isCancelled: boolean
  lease: { readonly workerId: string; readonly since?: number; readonly expiresAt: number } | undefined
}

/** The database that all stores of it share. */
export type Database = Map<string, Row>

// Leases follow the clock of the database, never that of the worker that asks.
const make = (database: Database, clock: Clock.Clock) => {
  const codec = RunCodec.make()
  const followers = Polling.followers()
  // One query for all runs that somebody waits for.
  const cancellations = Polling.cancellations({
    findCancelled: (runIds) => Effect.sync(() => runIds.filter((runId) => database.get(runId)?.isCancelled === true))
  })

  /** The records after a revision, and the error of the first one that cannot be read. */
  const recordsAfter = (runId: string, revision: number) =>
    StoreRules.readAfter(runId, revision, database.get(runId)?.appends ?? [], codec.decodeRecords)

  const load = (runId: string): Effect.Effect<RunState.RunState | undefined, RunStore.StoreError> =>
    Effect.suspend(() => {
      const { fault, records } = recordsAfter(runId, 0)
      return fault === undefined ? StoreRules.foldFrom(undefined, records) : Effect.fail(fault)
    })

  const headOf = (state: RunState.RunState, now: number): RunStore.RunHead => {
    const lease = database.get(state.runId)?.lease
    return RunStore.headOf(state, lease && { ...lease, isLive: lease.expiresAt > now })
  }

  const append: RunStore.RunStoreShape["append"] = Effect.fnUntraced(function* (records, state) {
    const refused = RunStore.refusal(records, state)
    if (refused !== undefined) return yield* refused
    const text = yield* Effect.fromResult(RunCodec.encodeRecords(records))
    const { runId } = state
    const row = database.get(runId) ?? { appends: [], revision: 0, isCancelled: false, lease: undefined }
    const expected = records[0].revision - 1
    // From here to the write nothing else may write: a transaction, or `update … where revision = …`.
    if (row.revision !== expected) {
      // A caller that got no response appends the same records again.
      if (StoreRules.areStored(records, recordsAfter(runId, expected).records)) return
      if (expected === 0) return yield* new RunStore.RunExists({ runId })
      return yield* new RunStore.ConcurrentAppendError({ runId, expected, actual: row.revision })
    }
    database.set(runId, row)
    row.appends.push(text)
    row.revision = state.revision
    row.isCancelled = state.status.type === "cancelled"
    followers.wake(runId)
    if (row.isCancelled) cancellations.complete(runId)
  })

  const acquire: RunStore.RunStoreShape["acquire"] = Effect.fnUntraced(function* (runId, claim) {
    const millis = yield* Effect.fromResult(StoreRules.leaseOf(claim))
    const state = yield* load(runId)
    const row = database.get(runId)
    if (state === undefined || row === undefined) return yield* new RunStore.RunNotFound({ runId })
    const now = clock.currentTimeMillisUnsafe()
    const { workerId } = claim
    const before = row.lease !== undefined && row.lease.expiresAt > now ? row.lease : undefined
    if (before !== undefined && before.workerId !== workerId) return yield* new RunStore.RunBusy({ runId, ...before })
    const moved = StoreRules.movedSince(claim, headOf(state, now))
    if (moved !== undefined) return yield* moved
    // A lease of zero offers the run to any worker.
    row.lease =
      millis === 0 ? { workerId, expiresAt: 0 } : { workerId, since: before?.since ?? now, expiresAt: now + millis }
  })

  const list = Effect.fnUntraced(function* (filter: RunStore.RunFilter = {}) {
    const now = clock.currentTimeMillisUnsafe()
    const words = StoreRules.searchWords(filter.search)
    const heads: Array<RunStore.RunHead> = []
    for (const runId of database.keys()) {
      const state = yield* load(runId)
      if (state === undefined) continue
      const head = headOf(state, now)
      if (RunStore.matches(head, filter) && StoreRules.mentions(state, words)) heads.push(head)
    }
    return heads.sort(RunStore.inOrder(filter)).slice(0, StoreRules.atMost(filter))
  })

  const store: RunStore.RunStoreShape = {
    append,
    load: (runId) => Effect.map(load(runId), Option.fromUndefinedOr),
    head: (runId) =>
      Effect.map(load(runId), (state) =>
        Option.fromUndefinedOr(state && headOf(state, clock.currentTimeMillisUnsafe()))
      ),
    read: (runId, revision = 0) =>
      Stream.suspend(() => {
        const { fault, records } = recordsAfter(runId, revision)
        const readable = Stream.fromIterable(records)
        return fault === undefined ? readable : Stream.concat(readable, Stream.fail(fault))
      }),
    // Records of other stores on the database are found at an interval.
    tail: (runId, from = 0) =>
      followers.follow({
        runId,
        from,
        interval: Duration.millis(50),
        page: (after) => Effect.suspend(() => Effect.fromResult(pageOf(recordsAfter(runId, after))))
      }),
    list,
    acquire,
    release: (runId, workerId) =>
      Effect.sync(() => {
        const row = database.get(runId)
        if (row?.lease?.workerId === workerId) row.lease = undefined
      }),
    cancelled: (runId) =>
      Effect.suspend(() => (database.get(runId)?.isCancelled === true ? Effect.void : cancellations.of(runId))),
    remove: (runIds) => Effect.sync(() => runIds.forEach((runId) => database.delete(runId)))
  }
  return { store, end: followers.end }
}

/** Fails at a record that cannot be read, once those before it are emitted. */
const pageOf = ({ fault, records }: RunCodec.Decoded) =>
  fault === undefined || records.length > 0 ? Result.succeed(records) : Result.fail(fault)

/** Keeps runs in a database. Its followers end with the layer. */
export const layer = (database: Database): Layer.Layer<RunStore.RunStore> =>
  Layer.effect(
    RunStore.RunStore,
    Effect.map(
      Effect.acquireRelease(
        Clock.clockWith((clock) => Effect.sync(() => make(database, clock))),
        ({ end }) => end
      ),
      ({ store }) => store
    )
  )
