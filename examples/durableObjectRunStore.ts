/**
 * A run store in the SQLite of a Cloudflare Durable Object, over `RunCodec` and `kernai/store-kit`.
 *
 * One object keeps the runs of one customer or conversation, and is the only process that appends to them. Statements
 * between two awaits are one transaction there, so an append is checked and written together. `durableObject.ts` is the
 * Worker around it.
 */
import { Clock, Duration, Effect, Layer, Option, Result, Stream } from "effect"
import type { RunState } from "kernai"
import { RunCodec, RunStore } from "kernai"
import { Polling, StoreRules } from "kernai/store-kit"

/** What the store needs of the storage of an object, as `state.storage.sql` has it. */
export interface Sql {
  readonly exec: (
    query: string,
    ...bindings: ReadonlyArray<string | number | null>
  ) => { readonly toArray: () => ReadonlyArray<{ readonly [column: string]: unknown }> }
}

const tables = `
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY, revision INTEGER NOT NULL, cancelled INTEGER NOT NULL, worker TEXT, since INTEGER, expires INTEGER
);
CREATE TABLE IF NOT EXISTS appends (
  id TEXT NOT NULL, revision INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (id, revision)
);`

interface Row {
  readonly revision: number
  readonly isCancelled: boolean
  readonly lease: { readonly workerId: string; readonly since?: number; readonly expiresAt: number } | undefined
}

// As JSON, since SQLite keeps no half of a surrogate pair.
const encode = (id: string): string => JSON.stringify(id)
const decode = (id: unknown): string => String(JSON.parse(String(id)))

/** The statements of the store, typed. */
const statements = (sql: Sql) => {
  for (const statement of tables.split(";").filter((text) => text.trim() !== "")) sql.exec(statement)
  const read = (query: string, ...bindings: ReadonlyArray<string | number>) => sql.exec(query, ...bindings).toArray()
  return {
    find: (runId: string): Row | undefined => {
      const [row] = read("SELECT * FROM runs WHERE id = ?", encode(runId))
      if (row === undefined) return undefined
      const { cancelled, expires, revision, since, worker } = row
      const lease =
        typeof worker === "string"
          ? {
              workerId: decode(worker),
              ...(since === null ? {} : { since: Number(since) }),
              expiresAt: Number(expires)
            }
          : undefined
      return { revision: Number(revision), isCancelled: cancelled === 1, lease }
    },
    ids: (): ReadonlyArray<string> => read("SELECT id FROM runs").map(({ id }) => decode(id)),
    // An append is found by its last revision, so one that began before `revision` is read, too.
    texts: (runId: string, revision: number): ReadonlyArray<string> =>
      read("SELECT text FROM appends WHERE id = ? AND revision > ? ORDER BY revision", encode(runId), revision).map(
        ({ text }) => String(text)
      ),
    write: (runId: string, revision: number, text: string, isCancelled: boolean): void => {
      const cancelled = isCancelled ? 1 : 0
      sql.exec(
        "INSERT INTO runs VALUES (?1, ?2, ?3, NULL, NULL, NULL) ON CONFLICT DO UPDATE SET revision = ?2, cancelled = ?3",
        encode(runId),
        revision,
        cancelled
      )
      sql.exec("INSERT INTO appends VALUES (?, ?, ?)", encode(runId), revision, text)
    },
    lease: (runId: string, lease: Row["lease"]): void => {
      const { expiresAt = null, since = null, workerId } = lease ?? {}
      const worker = workerId === undefined ? null : encode(workerId)
      sql.exec(
        "UPDATE runs SET worker = ?, since = ?, expires = ? WHERE id = ?",
        worker,
        since,
        expiresAt,
        encode(runId)
      )
    },
    remove: (runId: string): void => {
      sql.exec("DELETE FROM appends WHERE id = ?", encode(runId))
      sql.exec("DELETE FROM runs WHERE id = ?", encode(runId))
    }
  }
}

const make = (sql: Sql, clock: Clock.Clock) => {
  const runs = statements(sql)
  const codec = RunCodec.make()
  const followers = Polling.followers()
  const cancellations = Polling.cancellations({
    findCancelled: (runIds) => Effect.sync(() => runIds.filter((runId) => runs.find(runId)?.isCancelled === true))
  })

  const recordsAfter = (runId: string, revision: number) =>
    StoreRules.readAfter(runId, revision, runs.texts(runId, revision), codec.decodeRecords)

  const load = (runId: string): Effect.Effect<RunState.RunState | undefined, RunStore.StoreError> =>
    Effect.suspend(() => {
      const { fault, records } = recordsAfter(runId, 0)
      return fault === undefined ? StoreRules.foldFrom(undefined, records) : Effect.fail(fault)
    })

  const headOf = (state: RunState.RunState): RunStore.RunHead => {
    const lease = runs.find(state.runId)?.lease
    return RunStore.headOf(state, lease && { ...lease, isLive: lease.expiresAt > clock.currentTimeMillisUnsafe() })
  }

  const append: RunStore.RunStoreShape["append"] = Effect.fnUntraced(function* (records, state) {
    const refused = RunStore.refusal(records, state)
    if (refused !== undefined) return yield* refused
    const text = yield* Effect.fromResult(RunCodec.encodeRecords(records))
    const { revision, runId } = state
    const expected = records[0].revision - 1
    const actual = runs.find(runId)?.revision ?? 0
    if (actual !== expected) {
      // A caller that got no response appends the same records again.
      if (StoreRules.areStored(records, recordsAfter(runId, expected).records)) return
      if (expected === 0) return yield* new RunStore.RunExists({ runId })
      return yield* new RunStore.ConcurrentAppendError({ runId, expected, actual })
    }
    const isCancelled = state.status.type === "cancelled"
    runs.write(runId, revision, text, isCancelled)
    followers.wake(runId)
    if (isCancelled) cancellations.complete(runId)
  })

  const acquire: RunStore.RunStoreShape["acquire"] = Effect.fnUntraced(function* (runId, claim) {
    const millis = yield* Effect.fromResult(StoreRules.leaseOf(claim))
    const state = yield* load(runId)
    if (state === undefined) return yield* new RunStore.RunNotFound({ runId })
    const now = clock.currentTimeMillisUnsafe()
    const { workerId } = claim
    const stored = runs.find(runId)?.lease
    const before = stored !== undefined && stored.expiresAt > now ? stored : undefined
    if (before !== undefined && before.workerId !== workerId) return yield* new RunStore.RunBusy({ runId, ...before })
    const moved = StoreRules.movedSince(claim, headOf(state))
    if (moved !== undefined) return yield* moved
    // A lease of zero offers the run to any worker.
    const since = before?.since ?? now
    runs.lease(runId, millis === 0 ? { workerId, expiresAt: 0 } : { workerId, since, expiresAt: now + millis })
  })

  const list = Effect.fnUntraced(function* (filter: RunStore.RunFilter = {}) {
    const words = StoreRules.searchWords(filter.search)
    const heads: Array<RunStore.RunHead> = []
    for (const runId of runs.ids()) {
      const state = yield* load(runId)
      if (state === undefined) continue
      const head = headOf(state)
      if (RunStore.matches(head, filter) && StoreRules.mentions(state, words)) heads.push(head)
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
    // Appends of this object wake a follower at once; the interval is for those of another instance on the database.
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
        if (runs.find(runId)?.lease?.workerId === workerId) runs.lease(runId, undefined)
      }),
    cancelled: (runId) =>
      Effect.suspend(() => (runs.find(runId)?.isCancelled === true ? Effect.void : cancellations.of(runId))),
    remove: (runIds) => Effect.sync(() => runIds.forEach(runs.remove))
  }
  return { store, end: followers.end }
}

/** Fails at a record that cannot be read, once those before it are emitted. */
const pageOf = ({ fault, records }: RunCodec.Decoded) =>
  fault === undefined || records.length > 0 ? Result.succeed(records) : Result.fail(fault)

/** Keeps runs in the SQLite of a Durable Object. Its followers end with the layer. */
export const layer = (sql: Sql): Layer.Layer<RunStore.RunStore> =>
  Layer.effect(
    RunStore.RunStore,
    Effect.map(
      Effect.acquireRelease(
        Clock.clockWith((clock) => Effect.sync(() => make(sql, clock))),
        ({ end }) => end
      ),
      ({ store }) => store
    )
  )
