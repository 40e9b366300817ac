/**
 * A run store of your own: runs as texts in a key-value database, made with `RunCodec` and `kernai/store-kit`.
 *
 * `Database` is all that it needs of a database. `memoryDatabase` is one that several stores share, as workers share a
 * server; `durableObjectRunStore.ts` has one in SQLite. `12-own-store.ts` checks the store.
 */
import { Clock, Duration, Effect, Layer, Option, Result, Stream } from "effect"
import type { RunState } from "kernai"
import { RunCodec, RunStore } from "kernai"
import { Polling, StoreRules, StoreSearch } from "kernai/store-kit"

/** Who has a run, and until when. */
export interface Lease {
  readonly workerId: string
  readonly since?: number
  readonly expiresAt: number
}

/** The row of a run. */
export interface Row {
  readonly revision: number
  readonly isCancelled: boolean
  readonly lease: Lease | undefined
}

/**
 * A database of rows, and of texts behind each row. `append` and `lease` follow a `find` without a wait between them,
 * which is a transaction of the databases here. One that answers later needs a condition instead, such as `update …
 * where revision = …`.
 */
export interface Database {
  readonly find: (runId: string) => Row | undefined
  readonly runIds: () => Iterable<string>
  /** Adds a text that holds the records up to a revision, and creates the row if there is none. */
  readonly append: (runId: string, text: string, row: Omit<Row, "lease">) => void
  /** Returns the texts with records after a revision, oldest first. */
  readonly texts: (runId: string, revision: number) => ReadonlyArray<string>
  readonly lease: (runId: string, lease: Lease | undefined) => void
  readonly remove: (runId: string) => void
}

/** Creates a database in the memory of this process. */
export const memoryDatabase = (): Database => {
  const rows = new Map<
    string,
    Row & { readonly texts: ReadonlyArray<{ readonly revision: number; readonly text: string }> }
  >()
  return {
    find: (runId) => rows.get(runId),
    runIds: () => rows.keys(),
    append: (runId, text, { isCancelled, revision }) => {
      const { lease, texts = [] } = rows.get(runId) ?? { lease: undefined }
      rows.set(runId, { revision, isCancelled, lease, texts: [...texts, { revision, text }] })
    },
    texts: (runId, revision) =>
      (rows.get(runId)?.texts ?? []).filter((append) => append.revision > revision).map(({ text }) => text),
    lease: (runId, lease) => {
      const row = rows.get(runId)
      if (row !== undefined) rows.set(runId, { ...row, lease })
    },
    remove: (runId) => void rows.delete(runId)
  }
}

// Leases follow the clock of the database, never that of the worker that asks.
const make = (database: Database, clock: Clock.Clock) => {
  const codec = RunCodec.make()
  const followers = Polling.followers()
  // One query for all runs that somebody waits for.
  const cancellations = Polling.cancellations({
    findCancelled: (runIds) => Effect.sync(() => runIds.filter((runId) => database.find(runId)?.isCancelled === true))
  })

  /** The records after a revision, and the error of the first one that cannot be read. */
  const recordsAfter = (runId: string, revision: number) =>
    StoreRules.readAfter(runId, revision, database.texts(runId, revision), codec.decodeRecords)

  const load = (runId: string): Effect.Effect<RunState.RunState | undefined, RunStore.StoreError> =>
    Effect.suspend(() => {
      const { fault, records } = recordsAfter(runId, 0)
      return fault === undefined ? StoreRules.foldFrom(undefined, records) : Effect.fail(fault)
    })

  const headOf = (state: RunState.RunState): RunStore.RunHead => {
    const lease = database.find(state.runId)?.lease
    return RunStore.headOf(state, lease && { ...lease, isLive: lease.expiresAt > clock.currentTimeMillisUnsafe() })
  }

  const append: RunStore.RunStoreShape["append"] = Effect.fnUntraced(function* (records, state) {
    const refused = RunStore.refusal(records, state)
    if (refused !== undefined) return yield* refused
    const text = yield* Effect.fromResult(RunCodec.encodeRecords(records))
    const { revision, runId } = state
    const expected = records[0].revision - 1
    const actual = database.find(runId)?.revision ?? 0
    if (actual !== expected) {
      // A caller that got no response appends the same records again.
      if (StoreRules.areStored(records, recordsAfter(runId, expected).records)) return
      if (expected === 0) return yield* new RunStore.RunExists({ runId })
      return yield* new RunStore.ConcurrentAppendError({ runId, expected, actual })
    }
    const isCancelled = state.status.type === "cancelled"
    database.append(runId, text, { revision, isCancelled })
    followers.wake(runId)
    if (isCancelled) cancellations.complete(runId)
  })

  const acquire: RunStore.RunStoreShape["acquire"] = Effect.fnUntraced(function* (runId, claim) {
    const millis = yield* Effect.fromResult(StoreRules.leaseOf(claim))
    const state = yield* load(runId)
    if (state === undefined) return yield* new RunStore.RunNotFound({ runId })
    const now = clock.currentTimeMillisUnsafe()
    const { workerId } = claim
    const stored = database.find(runId)?.lease
    const before = stored !== undefined && stored.expiresAt > now ? stored : undefined
    if (before !== undefined && before.workerId !== workerId) return yield* new RunStore.RunBusy({ runId, ...before })
    const moved = StoreRules.movedSince(claim, headOf(state))
    if (moved !== undefined) return yield* moved
    // A lease of zero offers the run to any worker.
    const since = before?.since ?? now
    database.lease(runId, millis === 0 ? { workerId, expiresAt: 0 } : { workerId, since, expiresAt: now + millis })
  })

  const list = Effect.fnUntraced(function* (filter: RunStore.RunFilter = {}) {
    const words = StoreSearch.wordsOf(filter.search)
    const heads: Array<RunStore.RunHead> = []
    for (const runId of database.runIds()) {
      const state = yield* load(runId)
      if (state === undefined) continue
      const head = headOf(state)
      if (RunStore.matches(head, filter) && StoreSearch.mentions(state, words)) heads.push(head)
    }
    return heads.sort(RunStore.inOrder(filter)).slice(0, StoreRules.atMost(filter))
  })

  const store: RunStore.RunStoreShape = {
    append,
    load: (runId) => Effect.map(load(runId), Option.fromUndefinedOr),
    head: (runId) => Effect.map(load(runId), (state) => Option.fromUndefinedOr(state && headOf(state))),
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
        if (database.find(runId)?.lease?.workerId === workerId) database.lease(runId, undefined)
      }),
    cancelled: (runId) =>
      Effect.suspend(() => (database.find(runId)?.isCancelled === true ? Effect.void : cancellations.of(runId))),
    remove: (runIds) => Effect.sync(() => runIds.forEach(database.remove))
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
