/**
 * Appends to the journals in a database.
 */

import type * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Cancellations } from "../../internal/store/cancellations.ts"
import type { Followers } from "../../internal/store/followJournal.ts"
import { areStored } from "../../internal/store/journalRules.ts"
import type { Marks, Part } from "../../internal/store/marks.ts"
import * as Search from "../../internal/store/runSearch.ts"
import { ConcurrentAppendError, RunExists, type StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import { turnCount } from "../../RunState.ts"
import * as RunStore from "../../RunStore.ts"
import type { SqliteClient } from "../SqliteClient.ts"
import type { Announce } from "./announcer.ts"
import * as Key from "./key.ts"
import * as Tables from "./runTables.ts"
import { failed, orLost, readable } from "./sqlFault.ts"
import { facts } from "./sqlHeads.ts"
import type { Journal } from "./sqlJournal.ts"

/** A database, and what this process knows of its runs. */
export interface Database {
  readonly sql: SqlClient
  readonly journal: Journal
  readonly marks: Marks
  readonly followers: Followers
  readonly cancellations: Cancellations
  /** Announces a run with new records to other processes, if the database can. */
  readonly announce: Announce | undefined
  /** Runs a statement at once, if the client can. */
  readonly attempt: SqliteClient["attempt"] | undefined
}

/** Appends records, as `RunStore.append` promises. */
export const append = (
  database: Database,
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  state: RunState
): Effect.Effect<void, RunExists | ConcurrentAppendError | StoreError> => {
  const refused = RunStore.refusal(records, state)
  if (refused !== undefined) return Effect.fail(refused)
  const encoded = rowOf(records, state)
  if (Result.isFailure(encoded)) return Effect.fail(encoded.failure)
  const row = encoded.success
  if (isDoneAtOnce(database, row)) return afterwards(database, records, state, row)
  return write(database, row, state).pipe(
    Effect.flatMap((isDone) => (isDone ? Effect.void : unlessStored(database, records, row))),
    Effect.catchTag("SqlError", failed("append")),
    Effect.flatMap(() => afterwards(database, records, state, row))
  )
}

const rowOf = (records: Arr.NonEmptyReadonlyArray<RunRecord>, state: RunState): Result.Result<Tables.Row, StoreError> =>
  Result.flatMap(RunCodec.encodeRecords(records), (body) =>
    Result.map(RunCodec.encodeStatus(state.status), (detail) => ({
      id: Key.make(state.runId),
      first: records[0].revision,
      records: records.length,
      body,
      turns: turnCount(state),
      detail,
      at: state.updatedAt,
      status: state.status.type
    }))
  )

/** Succeeds if the records of a rejected row are stored already. */
const unlessStored = Effect.fnUntraced(function* (
  { journal }: Database,
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  { first }: Tables.Row
): Effect.fn.Return<void, RunExists | ConcurrentAppendError | StoreError | SqlError> {
  const { runId } = records[0]
  const found = yield* journal.find(runId)
  if (found !== undefined) {
    yield* readable(found.format)
    if (areStored(records, yield* journal.between(runId, first - 1, records.length))) return
    if (first === 1) return yield* new RunExists({ runId })
  }
  return yield* new ConcurrentAppendError({ runId, expectedSeq: first - 1, actualSeq: found?.revision ?? 0 })
})

// ---------------------------------------------------------------- writing

/** Appends to a run that keeps running, without a fiber or a queue. Returns false where that is not possible. */
const isDoneAtOnce = ({ attempt }: Database, row: Tables.Row): boolean =>
  row.first > 1 &&
  row.status === "running" &&
  attempt?.(Tables.appendSqlite, Tables.paramsOfSqlite(row, RunCodec.format)) === true

/** Appends a row. Returns false if it does not follow the stored ones. */
const write = (database: Database, row: Tables.Row, state: RunState): Effect.Effect<boolean, SqlError> => {
  if (row.first === 1) return create(database, row, state)
  if (row.status !== "running") return turn(database, row, state)
  return Effect.flatMap(insert(database, row), (isDone) => (isDone ? yes : turn(database, row, state)))
}

const insert = ({ sql }: Database, row: Tables.Row): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    sql.onDialectOrElse({
      pg: () => sql.unsafe(Tables.appendPostgres, Tables.paramsOfPostgres(row, RunCodec.format)),
      orElse: () => sql.unsafe(`${Tables.appendSqlite} RETURNING 1`, Tables.paramsOfSqlite(row, RunCodec.format))
    }),
    (rows) => rows.length > 0
  )

/** Appends a row that changes the status of its run. */
const turn = (database: Database, row: Tables.Row, state: RunState): Effect.Effect<boolean, SqlError> => {
  const { sql } = database
  const changed = sql`UPDATE kernai_runs SET status = ${row.status} WHERE id = ${row.id}`
  const ended = state.status.type === "completed" ? remember(database, state) : Effect.void
  return whole(sql, Effect.andThen(changed, insert(database, row)), ended)
}

/** Stores a new run. */
const create = (database: Database, row: Tables.Row, state: RunState): Effect.Effect<boolean, SqlError> => {
  const { sql } = database
  const { agent, createdAt, parentRunId, rootRunId } = state
  const added = sql`
    INSERT INTO kernai_runs ${sql.insert({
      id: row.id,
      root: Key.make(rootRunId),
      parent: parentRunId === undefined ? null : Key.make(parentRunId),
      agent: Key.make(agent),
      facts: facts(RunStore.headOf(state)),
      format: RunCodec.format,
      created_at: createdAt,
      status: row.status
    })} ON CONFLICT (id) DO NOTHING RETURNING run`
  const begun = Effect.flatMap(added, (rows) => (rows.length > 0 ? insert(database, row) : no))
  return whole(sql, begun, remember(database, state))
}

/** Runs two steps in one transaction, which is rolled back if the first returns false. */
const whole = (
  sql: SqlClient,
  first: Effect.Effect<boolean, SqlError>,
  second: Effect.Effect<unknown, SqlError>
): Effect.Effect<boolean, SqlError> =>
  first.pipe(
    Effect.flatMap((isDone): Effect.Effect<boolean, SqlError | typeof taken> =>
      isDone ? Effect.as(second, true) : Effect.fail(taken)
    ),
    sql.withTransaction,
    orLost,
    Effect.catchIf(
      (error): error is typeof taken => error === taken,
      () => no
    )
  )

/** Writes the texts by which a run is found. */
const remember = ({ sql }: Database, state: RunState) => sql`
  INSERT INTO kernai_words (run, body)
  SELECT run, ${Search.words(state)} FROM kernai_runs WHERE id = ${Key.make(state.runId)}
  ON CONFLICT (run) DO UPDATE SET body = excluded.body`

const taken = "taken" as const

const yes = Effect.succeed(true)

const no = Effect.succeed(false)

// ---------------------------------------------------------------- afterwards

/**
 * Wakes followers once the append is committed, and writes a part of the state if one is due. Usually it does nothing.
 */
const afterwards = (
  database: Database,
  records: ReadonlyArray<RunRecord>,
  state: RunState,
  { body, first, id }: Tables.Row
): Effect.Effect<void> => {
  const { announce, cancellations, followers, marks, sql } = database
  if (first === 1) marks.set(state, RunCodec.start)
  if (state.status.type === "cancelled") cancellations.tell(id)
  const part = marks.due(records, state, body.length)
  const written = part === undefined ? Effect.void : writePart(database, part)
  if (announce === undefined && !followers.has(id)) return written
  const wake = Effect.sync(() => {
    followers.wake(id)
    announce?.(id)
  })
  return Effect.andThen(sql.afterCommit(wake), written)
}

/** Writes a part of the state. A failure only makes the next load slower. */
const writePart = ({ marks, sql }: Database, part: Part): Effect.Effect<void> =>
  Effect.fromResult(RunCodec.encodeState(part.state, part.mark)).pipe(
    Effect.flatMap(
      (body) => sql`
        INSERT INTO kernai_parts (entry, body)
        SELECT (CAST(run AS BIGINT) << 32) + CAST(${part.state.revision} AS BIGINT), ${body} FROM kernai_runs
        WHERE id = ${Key.make(part.state.runId)}`
    ),
    Effect.matchEffect({
      onFailure: (error) => Effect.logDebug("a part of a run was not written", error),
      onSuccess: () => Effect.sync(() => marks.written(part))
    })
  )
