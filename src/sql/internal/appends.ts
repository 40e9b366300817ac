/**
 * Appending to journals: records that follow each other, all of them or none.
 */

import type * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as RunCodec from "../../RunCodec.ts"
import type { SqliteClient } from "../SqliteClient.ts"
import type { Row } from "./runTables.ts"
import * as Tables from "./runTables.ts"

/**
 * Appends rows to the run of a key, which then has a status; false when a place is taken, or the one before is not. Who
 * is slower than another by a moment violates a key instead: it ends the transaction it is in.
 */
export type Append = (
  id: string,
  rows: Arr.NonEmptyReadonlyArray<Row>,
  status: string
) => Effect.Effect<boolean, SqlError>

/** Appends with a client, which transforms nothing. */
export const make = (sql: SqlClient): Append =>
  sql.onDialectOrElse({ pg: () => postgres(sql), orElse: () => sqlite(sql) })

/**
 * Appends at once, where a client can do that, to a run that keeps its status: true when it is done. What is not done
 * like this may still be done by `make`.
 */
export const makeNow =
  (attempt: SqliteClient["attempt"] | undefined) =>
  (id: string, rows: ReadonlyArray<Row>, status: string): boolean =>
    attempt?.(Tables.appendSqlite, listsOf(id, rows, status)) === true

const listsOf = (id: string, rows: ReadonlyArray<Row>, status: string) =>
  rows.map(({ at, body, detail, revision, turns }) => [
    id,
    revision,
    body,
    id,
    RunCodec.format,
    status,
    revision,
    revision,
    turns,
    detail,
    at
  ])

const postgres =
  (sql: SqlClient): Append =>
  (id, rows, status) =>
    Effect.map(
      sql.unsafe(Tables.appendPostgres, [JSON.stringify(rows), id, RunCodec.format, rows[0].revision, status]),
      (done) => done.length > 0
    )

const sqlite = (sql: SqlClient): Append => {
  const isChange = (statement: string, params: ReadonlyArray<unknown>) =>
    Effect.map(sql.unsafe(statement, params), (rows) => rows.length > 0)

  const all = (statement: string, lists: ReadonlyArray<ReadonlyArray<unknown>>) =>
    Effect.forEach(
      lists,
      (params) =>
        Effect.flatMap(isChange(`${statement} RETURNING 1`, params), (is) => (is ? Effect.void : Effect.fail(taken))),
      { discard: true }
    )

  /** In a transaction that waits for its turn. */
  const patiently = (
    statement: string,
    lists: ReadonlyArray<ReadonlyArray<unknown>>,
    also: Effect.Effect<unknown, SqlError>
  ) =>
    sql.withTransaction(Effect.andThen(all(statement, lists), also)).pipe(
      Effect.as(true),
      Effect.catchIf(
        (error): error is typeof taken => error === taken,
        () => no
      )
    )

  return (id, rows, status) => {
    const lists = listsOf(id, rows, status)
    const turn = patiently(Tables.appendTurnSqlite, lists, sql.unsafe(Tables.turnSqlite, [status, id]))
    return Effect.flatMap(patiently(Tables.appendSqlite, lists, Effect.void), (isDone) => (isDone ? yes : turn))
  }
}

/** Somebody was first. */
const taken = "taken" as const

const yes = Effect.succeed(true)

const no = Effect.succeed(false)
