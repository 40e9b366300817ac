/**
 * Runs in a database.
 *
 * A commit appends records and moves the head if the head is just before them,
 * or it does nothing (DR-6); the records between two effects share a commit.
 * Bodies are JSON text in columns of text, keys are escaped, everything else is
 * a bound parameter (S-16). Works on any `SqlClient` of SQLite or PostgreSQL; several processes
 * may share the database.
 *
 * @since 0.1.0
 */

import * as Arr from "effect/Array"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as SqlClient from "effect/sql/SqlClient"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Follow from "../internal/store/followJournal.ts"
import * as Marks from "../internal/store/marks.ts"
import * as Search from "../internal/store/runSearch.ts"
import * as RunCodec from "../RunCodec.ts"
import type { RunRecord, RunState } from "../RunState.ts"
import { turnCount } from "../RunState.ts"
import * as RunStore from "../RunStore.ts"
import { ConcurrentAppendError, RunExists, StoreError } from "../RunStore.ts"
import * as Appends from "./internal/appends.ts"
import { failed, orLost, readable } from "./internal/sqlFault.ts"
import * as Heads from "./internal/sqlHeads.ts"
import * as Journal from "./internal/sqlJournal.ts"
import * as Key from "./internal/key.ts"
import * as Tables from "./internal/runTables.ts"
import * as SqliteClient from "./SqliteClient.ts"

/**
 * How a store takes commits, and looks after those who follow a run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** How often to look for what other processes committed. Default: half a second. */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * `grouped` stores what happened between two effects in one transaction, `each` stores every revision by itself.
   * Either way everything is stored before a model is asked, a skill is entered, a hook is heard or an event is told,
   * so a crash takes back nothing that anybody saw. Default: `grouped`.
   */
  readonly commits?: "each" | "grouped" | undefined
  /** Keys of runs that went on, told by the database: those who follow need not wait for the next look. */
  readonly changes?: Stream.Stream<string> | undefined
}

/**
 * A store on the database of the context; its tables are made, or brought up to date.
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
  const followers = Follow.make()
  yield* Effect.addFinalizer(() => followers.end)
  const marks = Marks.make()
  const interval = options.pollInterval ?? "500 millis"
  if (options.changes !== undefined) {
    yield* Effect.forkScoped(Stream.runForEach(options.changes, (key) => Effect.sync(() => followers.wake(key))))
  }
  const position = sql.onDialectOrElse({ pg: () => "strpos", orElse: () => "instr" })
  const journal = Journal.make(sql, codec)
  const heads = Heads.make(sql, position)

  // ---------------------------------------------------------------- reading

  const load = (runId: string) =>
    Effect.map(
      journal.load(runId),
      Option.map(({ mark, state }) => {
        marks.set(state, mark)
        return state
      })
    )

  const reader = (runId: string) => {
    const next = journal.reader(runId)
    return (after: number) => Effect.catchTag(next(after), "SqlError", failed("read"))
  }

  const read = (runId: string, fromRevision = 0) =>
    Stream.suspend(() => {
      const next = reader(runId)
      return Stream.paginate(fromRevision, (after) =>
        Effect.map(next(after), ({ isLast, records }) => [
          records,
          isLast ? Option.none() : Option.some(records.at(-1)?.revision ?? after)
        ])
      )
    })

  const tail = (runId: string, fromRevision = 0) =>
    Stream.suspend(() => {
      const next = reader(runId)
      const page = (after: number) => Effect.map(next(after), ({ records }) => records)
      return followers.follow({ runId: Key.make(runId), from: fromRevision, page, interval })
    })

  // ---------------------------------------------------------------- writing

  const append = Appends.make(sql)
  const appendNow = Appends.makeNow(attempt)

  /** The row of a record. Only of the last one is its head ever looked at. */
  const rowOf = ({ createdAt, revision }: RunRecord, state: RunState, body: string, detail: string): Tables.Row => ({
    revision,
    body,
    turns: turnCount(state),
    detail,
    at: createdAt
  })

  const write = (id: string, rows: Arr.NonEmptyReadonlyArray<Tables.Row>, state: RunState) => {
    const added = append(id, rows, state.status.type)
    return followers.has(id) ? Effect.tap(added, sql.afterCommit(Effect.sync(() => followers.wake(id)))) : added
  }

  /** What was asked and answered, for those who search. */
  const remember = (state: RunState) => sql`
    INSERT INTO kernai_words (run, body)
    SELECT run, ${Search.words(state)} FROM kernai_runs WHERE id = ${Key.make(state.runId)}
    ON CONFLICT (run) DO UPDATE SET body = excluded.body`

  const writeLast = (id: string, rows: Arr.NonEmptyReadonlyArray<Tables.Row>, state: RunState) =>
    orLost(
      sql.withTransaction(
        Effect.tap(
          Effect.suspend(() => write(id, rows, state)),
          (isDone) => (isDone ? Effect.asVoid(remember(state)) : Effect.void)
        )
      )
    )

  const insert = Effect.fnUntraced(function* (state: RunState, row: Tables.Row) {
    const { agent, createdAt, parentRunId, rootRunId, runId } = state
    const added = yield* sql`
      INSERT INTO kernai_runs ${sql.insert({
        id: Key.make(runId),
        root: Key.make(rootRunId),
        parent: parentRunId === undefined ? null : Key.make(parentRunId),
        agent: Key.make(agent),
        facts: Heads.facts(RunStore.headOf(state)),
        format: RunCodec.format,
        created_at: createdAt,
        status: state.status.type
      })} ON CONFLICT (id) DO NOTHING RETURNING run`
    if (added.length === 0) return false
    yield* write(Key.make(runId), [row], state)
    yield* remember(state)
    return true
  })

  const create = Effect.fnUntraced(function* (record: RunRecord, state: RunState) {
    const refused = RunStore.notFirst(record)
    if (refused !== undefined) return yield* refused
    const body = yield* Effect.fromResult(RunCodec.encodeRecord(record))
    const detail = yield* Effect.fromResult(RunCodec.encodeStatus(state.status))
    const isNew = yield* orLost(sql.withTransaction(insert(state, rowOf(record, state, body, detail))))
    if (!isNew) {
      const found = yield* journal.find(record.runId)
      const first = found === undefined ? [] : yield* journal.bodies("kernai_journal", found.run, 0, 1)
      if (first[0] === undefined || !RunCodec.isSame(first[0], body))
        return yield* new RunExists({ runId: record.runId })
    }
    marks.set(state, RunCodec.start)
  })

  /** Why records were not appended; nothing when they had been before. */
  const refused = Effect.fnUntraced(function* (runId: string, rows: Arr.NonEmptyReadonlyArray<Tables.Row>) {
    const before = rows[0].revision - 1
    const found = yield* journal.find(runId)
    if (found !== undefined) {
      yield* readable(found.format)
      const stored = yield* journal.bodies("kernai_journal", found.run, before, rows.length)
      const isSame = ({ body }: Tables.Row, index: number) => RunCodec.isSame(stored[index] ?? "", body)
      if (stored.length === rows.length && rows.every(isSame)) return
    }
    return yield* new ConcurrentAppendError({ runId, expectedSeq: before, actualSeq: found?.revision ?? 0 })
  })

  /** Writes a part of the state. A failure costs time at the next load, nothing else. */
  const writePart = (state: RunState, mark: RunCodec.Mark) =>
    Effect.fromResult(RunCodec.encodeState(state, mark)).pipe(
      Effect.flatMap(
        (body) => sql`
          INSERT INTO kernai_parts (entry, body)
          SELECT (CAST(run AS BIGINT) << 32) + CAST(${state.revision} AS BIGINT), ${body} FROM kernai_runs
          WHERE id = ${Key.make(state.runId)}`
      ),
      Effect.matchEffect({
        onFailure: (error) => Effect.logDebug("a part of a run was not written", error),
        onSuccess: () => Effect.sync(() => marks.written(state))
      })
    )

  /** What follows a commit: a part is written where a turn ends. */
  const afterwards = (states: Arr.NonEmptyReadonlyArray<RunState>, bytes: number): Effect.Effect<void> => {
    const last = states.at(-1) ?? states[0]
    const whole = last.currentTurn === undefined ? last : states.findLast((state) => state.currentTurn === undefined)
    const mark = marks.due(whole ?? last, bytes)
    return mark === undefined ? Effect.void : writePart(whole ?? last, mark)
  }

  /** Stores rows in one transaction. On the path of every commit: mostly no effect at all. */
  const together = (
    id: string,
    rows: Arr.NonEmptyReadonlyArray<Tables.Row>,
    state: RunState
  ): Effect.Effect<void, ConcurrentAppendError | StoreError> => {
    const status = state.status.type
    if (status === "running" && appendNow(id, rows, status)) {
      if (followers.has(id)) followers.wake(id)
      return Effect.void
    }
    const written = status === "completed" ? writeLast(id, rows, state) : write(id, rows, state)
    return Effect.catchReason(written, "SqlError", "UniqueViolation", () => Effect.succeed(false)).pipe(
      Effect.flatMap((isDone) => (isDone ? Effect.void : refused(state.runId, rows))),
      Effect.catchTag("SqlError", failed("commit"))
    )
  }

  /** Stores each row in a transaction of its own, from that at `index` on: what comes before one that is refused stays. */
  const oneByOne = (
    id: string,
    rows: ReadonlyArray<Tables.Row>,
    states: ReadonlyArray<RunState>,
    index = 0
  ): Effect.Effect<void, ConcurrentAppendError | StoreError> => {
    for (let next = index; next < rows.length; next++) {
      const [row, state] = [rows[next], states[next]]
      if (row === undefined || state === undefined) break
      const done = together(id, [row], state)
      if (done !== Effect.void) {
        return Effect.flatMap(done, () => oneByOne(id, rows, states, next + 1))
      }
    }
    return Effect.void
  }

  const commitAll = (
    records: Arr.NonEmptyReadonlyArray<RunRecord>,
    states: Arr.NonEmptyReadonlyArray<RunState>
  ): Effect.Effect<void, ConcurrentAppendError | StoreError> => {
    // Where each has a transaction of its own, what comes before a gap is stored.
    const apart = (options.commits === "each" ? RunStore.notOfOne : RunStore.notTogether)(records, states)
    if (apart !== undefined) return Effect.fail(apart)
    const last = states.at(-1) ?? states[0]
    const rows: Array<Tables.Row> = []
    let bytes = 0
    for (let index = 0; index < records.length; index++) {
      const record = records[index] ?? records[0]
      const state = states[index] ?? last
      const body = RunCodec.encodeRecord(record)
      if (Result.isFailure(body)) return Effect.fail(body.failure)
      const detail = RunCodec.encodeStatus(state.status)
      if (Result.isFailure(detail)) return Effect.fail(detail.failure)
      rows.push(rowOf(record, state, body.success, detail.success))
      bytes += body.success.length
    }
    if (!Arr.isArrayNonEmpty(rows)) return Effect.void
    const id = Key.make(last.runId)
    const done = options.commits === "each" ? oneByOne(id, rows, states) : together(id, rows, last)
    return Effect.flatMap(done, () => afterwards(states, bytes))
  }

  const remove = Effect.fnUntraced(function* (runIds: ReadonlyArray<string>) {
    for (let start = 0; start < runIds.length; start += Journal.PAGE) {
      const ids = runIds.slice(start, start + Journal.PAGE).map(Key.make)
      const runs = yield* sql<{ run: number }>`DELETE FROM kernai_runs WHERE ${sql.in("id", ids)} RETURNING run`
      for (const { run } of runs) {
        for (const table of ["kernai_journal", "kernai_parts"]) {
          yield* sql`DELETE FROM ${sql(table)} WHERE entry > ${journal.entry(run, 0)} AND entry < ${journal.entry(run + 1, 0)}`
        }
        yield* sql`DELETE FROM kernai_words WHERE run = ${run}`
      }
    }
  })

  return RunStore.RunStore.of({
    create: (record, state) => Effect.catchTag(create(record, state), "SqlError", failed("create")),
    commit: (record, state) => Effect.suspend(() => commitAll([record], [state])),
    commitAll: (records, states) => Effect.suspend(() => commitAll(records, states)),
    load: (runId) => Effect.catchTag(load(runId), "SqlError", failed("load")),
    head: (runId) => Effect.catchTag(heads.head(runId), "SqlError", failed("read")),
    read,
    tail,
    list: (filter) => Effect.catchTag(heads.list(filter), "SqlError", failed("list")),
    acquire: (runId, lease, now) => Effect.catchTag(heads.acquire(runId, lease, now), "SqlError", failed("acquire")),
    release: (runId, workerId) => Effect.catchTag(heads.release(runId, workerId), "SqlError", failed("release")),
    remove: (runIds) => Effect.catchTag(orLost(sql.withTransaction(remove(runIds))), "SqlError", failed("remove"))
  })
})

/**
 * Keeps runs in the database of the context.
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
