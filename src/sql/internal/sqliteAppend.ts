/**
 * Appends rows to the journals of a SQLite database.
 */

import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import { ConstraintError, SqlError } from "effect/sql/SqlError"
import * as RunCodec from "../../RunCodec.ts"
import type { SqliteClient } from "../SqliteClient.ts"
import * as Tables from "./runTables.ts"
import { orLost } from "./sqlFault.ts"

/** Appends to a run that keeps running, without a fiber or a queue. Returns false if that is not possible. */
export const appendAtOnce = (attempt: SqliteClient["attempt"] | undefined, row: Tables.Row): boolean =>
  row.first > 1 &&
  row.status === "running" &&
  attempt?.(Tables.appendSqlite, Tables.paramsOfSqlite(row, RunCodec.format)) === true

/** Appends a row. Returns false if it does not follow the stored ones. */
export const append = (sql: SqlClient, row: Tables.Row): Effect.Effect<boolean, SqlError> => {
  if (row.origin !== undefined) return whole(sql, row, create(sql, row, row.origin))
  const changed = sql.update({ status: row.status, due_at: row.due_at, ...row.spent })
  const moved = whole(sql, row, sql`UPDATE kernai_runs SET ${changed} WHERE id = ${row.id} RETURNING run`)
  if (row.status !== "running") return moved
  return Effect.flatMap(insert(sql, row), (isDone) => (isDone ? yes : moved))
}

const insert = (sql: SqlClient, row: Tables.Row): Effect.Effect<boolean, SqlError> =>
  Effect.map(
    sql.unsafe(`${Tables.appendSqlite} RETURNING 1`, Tables.paramsOfSqlite(row, RunCodec.format)),
    (rows) => rows.length > 0
  )

/** Stores a new run without a journal, with its labels and chunks. Returns no row for a run that exists. */
const create = Effect.fnUntraced(function* (
  sql: SqlClient,
  { due_at, format, id, spent, status }: Tables.Row,
  { chunks, labels, ...origin }: Tables.Origin
) {
  // The chunks were looked for before the transaction, and another process may have removed them since.
  const needed = chunks[0] === undefined ? origin.history : chunks[0].before
  if (needed !== null && (yield* sql`SELECT 1 FROM kernai_histories WHERE id = ${needed}`).length === 0) {
    return yield* Effect.fail(lost)
  }
  for (const chunk of chunks) {
    yield* sql`INSERT INTO kernai_histories ${sql.insert({ ...chunk })} ON CONFLICT (id) DO NOTHING`
  }
  const created = yield* sql<{ readonly run: number }>`
    INSERT INTO kernai_runs ${sql.insert({ ...origin, ...spent, id, format, status, due_at })}
    ON CONFLICT (id) DO NOTHING RETURNING run`
  for (const { run } of created) {
    for (const label of labels) yield* sql`INSERT INTO kernai_labels ${sql.insert({ run, label })}`
  }
  return created
})

/** Changes a run and appends to it in one transaction, which is rolled back if either is not possible. */
const whole = (
  sql: SqlClient,
  row: Tables.Row,
  changed: Effect.Effect<ReadonlyArray<unknown>, SqlError>
): Effect.Effect<boolean, SqlError> =>
  changed.pipe(
    Effect.flatMap((runs) => (runs.length > 0 ? insert(sql, row) : no)),
    Effect.flatMap((isDone): Effect.Effect<boolean, SqlError | typeof refused> =>
      isDone ? Effect.as(remember(sql, row), true) : Effect.fail(refused)
    ),
    sql.withTransaction,
    orLost,
    Effect.catchIf(
      (error): error is typeof refused => error === refused,
      () => no
    )
  )

/** Writes the texts for searching a run. */
const remember = (sql: SqlClient, { id, words }: Tables.Row): Effect.Effect<unknown, SqlError> =>
  words === undefined
    ? Effect.void
    : sql`
        INSERT INTO kernai_words (run, body) SELECT run, ${words} FROM kernai_runs WHERE id = ${id}
        ON CONFLICT (run) DO UPDATE SET body = excluded.body`

/** What a foreign key would say, which most clients of SQLite do not enforce. */
const lost = new SqlError({
  reason: new ConstraintError({
    cause: new Error("a chunk of its earlier messages was removed"),
    message: "a chunk of its earlier messages was removed",
    operation: "append"
  })
})

const refused = "refused" as const

const yes = Effect.succeed(true)

const no = Effect.succeed(false)
