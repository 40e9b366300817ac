/**
 * Keeps runs in a database.
 *
 * Works on any `SqlClient` of SQLite or PostgreSQL, and several processes may share the database. An append is one row;
 * of two appends at the same revision the database accepts one. PostgreSQL stores rows that are appended at the same time
 * in one transaction. Bodies are JSON text, keys are escaped, and every value is a bound parameter.
 *
 * @since 0.1.0
 */

import * as Arr from "effect/Array"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import * as Polling from "../store-kit/Polling.ts"
import { isOffer } from "../store-kit/StoreRules.ts"
import * as StateParts from "../store-kit/StateParts.ts"
import * as RunCodec from "../RunCodec.ts"
import * as RunStore from "../RunStore.ts"
import type { StoreError } from "../RunStore.ts"
import * as Announcer from "./internal/announcer.ts"
import * as GroupAppend from "./internal/groupAppend.ts"
import * as Key from "./internal/key.ts"
import * as Tables from "./internal/runTables.ts"
import * as Append from "./internal/sqlAppend.ts"
import { failed, orLost } from "./internal/sqlFault.ts"
import * as Heads from "./internal/sqlHeads.ts"
import * as Histories from "./internal/sqlHistories.ts"
import * as SqliteAppend from "./internal/sqliteAppend.ts"
import * as Journal from "./internal/sqlJournal.ts"
import * as SearchIndex from "./internal/searchIndex.ts"
import * as SqlChanges from "./internal/sqlChanges.ts"
import * as SqlCounts from "./internal/sqlCounts.ts"
import * as SqlSpending from "./internal/sqlSpending.ts"
import * as SqlNotes from "./internal/sqlNotes.ts"
import * as SqlTags from "./internal/sqlTags.ts"
import * as Offers from "./internal/sqlOffers.ts"
import * as SqliteClient from "./SqliteClient.ts"

/**
 * Options of a store in a database.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Interval at which followers look for records of other processes. Default: half a second. */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * Emits runs with new records and offered runs, as announced by the database, so that followers and workers need not
   * wait for their next poll, and idle workers send no query. An empty text says that announcements may have been lost.
   */
  readonly changes?: Stream.Stream<string> | undefined
}

/**
 * Creates a store on the database in context. Creates or migrates its tables.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (
  options?: Options
): Effect.Effect<RunStore.RunStoreShape, StoreError, SqlClient.SqlClient | Scope.Scope> => build(options)

const build = Effect.fnUntraced(function* (options: Options = {}, attempt?: SqliteClient.SqliteClient["attempt"]) {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  yield* Tables.prepare(sql)
  const codec = yield* RunCodec.fromContext
  const histories = Histories.make(sql, codec)
  const journal = Journal.make(sql, codec, histories)
  const index = yield* SearchIndex.make(sql)
  const heads = Heads.make(sql, index)
  const followers = Polling.followers()
  const cancellations = Polling.cancellations({
    findCancelled: heads.cancelled,
    ...(options.changes === undefined ? {} : { interval: options.pollInterval ?? "500 millis" })
  })
  yield* Effect.addFinalizer(() => followers.end)
  const announce = yield* sql.onDialectOrElse({ pg: () => Announcer.make(sql), orElse: () => Effect.undefined })
  const offers = yield* announce === undefined
    ? Effect.catchTag(Offers.besideFile(sql), "SqlError", failed("open"))
    : Offers.announced(announce, options.changes !== undefined)
  const setNotes = Polling.followers()
  if (options.changes !== undefined) {
    const noted = (payload: string) =>
      Effect.sync(() => {
        if (payload === "" || payload === SqlNotes.mark) setNotes.wake()
        if (payload === SqlNotes.mark) return
        followers.wake(payload === "" ? undefined : payload)
        if (payload.startsWith(Announcer.cancelledMark))
          cancellations.announce(payload.slice(Announcer.cancelledMark.length))
        offers.announced(payload)
      })
    yield* Effect.forkScoped(Stream.runForEach(options.changes, noted))
  }
  // Closed before the announcer: what it still writes is announced.
  const appendRow = yield* sql.onDialectOrElse({
    pg: () => GroupAppend.make(sql),
    orElse: () => Effect.succeed((row: Tables.Row) => SqliteAppend.append(sql, row))
  })
  const changesOf = (followers: Polling.Followers) =>
    Effect.catchTag(SqlChanges.make(sql, followers, options.changes !== undefined), "SqlError", failed("open"))
  const announceNote = () => {
    setNotes.wake()
    announce?.(SqlNotes.mark, true)
  }
  const noteChanges = yield* changesOf(setNotes)
  const notes = SqlNotes.make(sql, announceNote, noteChanges && { ...noteChanges, recheck: "10 minutes" })
  const changes = yield* changesOf(followers)
  const marks = StateParts.marks()
  const database = { sql, journal, histories, index, followers, cancellations, marks, attempt, announce, appendRow }
  return { ...storeOf(database, heads, offers, options.pollInterval ?? "500 millis"), notes, changes }
})

const storeOf = (database: Append.Database, heads: Heads.Heads, offers: Offers.SqlOffers, interval: Duration.Input) =>
  RunStore.RunStore.of({
    append: (records, state) => Effect.suspend(() => Append.append(database, records, state)),
    load: (runId) => Effect.catchTag(load(database, runId), "SqlError", failed("load")),
    head: (runId) => Effect.catchTag(heads.head(runId), "SqlError", failed("read")),
    read: (runId, fromRevision) => read(database, runId, fromRevision),
    tail: (runId, fromRevision) => tail(database, interval, runId, fromRevision),
    list: (filter) => Effect.catchTag(heads.list(filter), "SqlError", failed("list")),
    acquire: (runId, claim) => {
      const acquired = Effect.catchTag(heads.acquire(runId, claim), "SqlError", failed("acquire"))
      return isOffer(claim) ? Effect.andThen(acquired, offers.emit(runId)) : acquired
    },
    release: (runId, workerId) => Effect.catchTag(heads.release(runId, workerId), "SqlError", failed("release")),
    cancelled: (runId) => database.cancellations.of(Key.make(runId)),
    offers: offers.offers,
    tags: SqlTags.make(database.sql),
    counts: SqlCounts.make(database.sql),
    spending: SqlSpending.make(database.sql),
    remove: (runIds) => Effect.catchTag(remove(database, runIds), "SqlError", failed("remove"))
  })

/**
 * Keeps runs in the database in context.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<RunStore.RunStore, StoreError, SqlClient.SqlClient> =>
  Layer.effect(RunStore.RunStore, make(options))

/**
 * Keeps runs in a SQLite file.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerSqlite = (
  file: string | (SqliteClient.Options & Options)
): Layer.Layer<RunStore.RunStore, StoreError> => {
  const options = typeof file === "string" ? { filename: file } : file
  const store = Effect.gen(function* () {
    const client = yield* Effect.catchTag(SqliteClient.make(options), "SqlError", failed("open"))
    return yield* Effect.provideService(build(options, client.attempt), SqlClient.SqlClient, client)
  })
  return Layer.provide(Layer.effect(RunStore.RunStore, store), Reactivity.layer)
}

// ---------------------------------------------------------------- operations

const load = ({ journal, marks }: Append.Database, runId: string) =>
  Effect.map(
    journal.load(runId),
    Option.map(({ mark, state }) => {
      marks.set(state, mark)
      return state
    })
  )

const page = ({ journal }: Append.Database, runId: string, after: number) =>
  Effect.catchTag(journal.page(runId, after), "SqlError", failed("read"))

const read = (database: Append.Database, runId: string, fromRevision = 0) =>
  Stream.paginate(fromRevision, (after) =>
    Effect.map(page(database, runId, after), ({ isLast, records }) => [
      records,
      isLast ? Option.none() : Option.some(records.at(-1)?.revision ?? after)
    ])
  )

const tail = (database: Append.Database, interval: Duration.Input, runId: string, fromRevision = 0) =>
  database.followers.follow({
    runId: Key.make(runId),
    from: fromRevision,
    page: (after) => Effect.map(page(database, runId, after), ({ records }) => records),
    interval
  })

const remove = ({ histories, index, journal, sql }: Append.Database, runIds: ReadonlyArray<string>) =>
  Effect.forEach(
    Arr.chunksOf(runIds, Journal.PAGE),
    Effect.fnUntraced(function* (ids) {
      const runs = yield* sql<{ readonly run: number; readonly history: string | null }>`
        DELETE FROM kernai_runs WHERE ${sql.in("id", ids.map(Key.make))} RETURNING run, history`
      for (const { run } of runs) yield* journal.remove(run)
      if (Arr.isReadonlyArrayNonEmpty(runs)) yield* index.removed(Arr.map(runs, ({ run }) => run))
      for (const chunk of new Set(runs.map(({ history }) => history)))
        if (chunk !== null) yield* histories.release(chunk)
    }),
    { discard: true }
  ).pipe(sql.withTransaction, orLost)
