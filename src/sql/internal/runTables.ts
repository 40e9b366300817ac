/**
 * The tables of stored runs, and the statements that differ between databases.
 *
 * One row of the journal holds the records of one append. Its key is one number: the number of the run, with the first
 * revision of the row in the lower 32 bits. Two appends after the same revision have the same key, whatever their
 * lengths, so the database accepts one of them. The head of a run is the last row of its journal, so an append writes
 * one row of one table. Only when the status of a run changes is its row in `kernai_runs` updated in the same
 * transaction.
 */

import type * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { StoreError } from "../../KernelError.ts"
import { migrate } from "./migrate.ts"

/** Brings the tables up to date. */
export const prepare = (sql: SqlClient.SqlClient): Effect.Effect<void, StoreError> =>
  migrate(sql, "kernai_migrations", {
    "0001_runs": sql.onDialectOrElse({ pg: () => postgres, orElse: () => sqlite }),
    // Earlier, a row held one record.
    "0002_appends": ["ALTER TABLE kernai_journal ADD COLUMN records INTEGER NOT NULL DEFAULT 1"],
    "0003_since": [
      `ALTER TABLE kernai_runs ADD COLUMN since ${sql.onDialectOrElse({ pg: () => "DOUBLE PRECISION", orElse: () => "INTEGER" })}`
    ]
  })

/** The records of one append as a row, and the head that they lead to. */
export interface Row {
  /** The key of the run. */
  readonly id: string
  readonly first: number
  readonly records: number
  readonly body: string
  readonly turns: number
  readonly detail: string
  readonly at: number
  readonly status: string
}

/**
 * Appends a row to a run that has its status and ends just before it. Changes one row, or none if the run has another
 * status, ends elsewhere, or does not exist. The parameters are those of `paramsOfSqlite`.
 *
 * A missing body violates its column, which the statement ignores, because a query over the table being filled would
 * copy the body first. Older versions of Node do not support numbered parameters, so some are passed several times.
 */
export const appendSqlite = `
INSERT OR IGNORE INTO kernai_journal (entry, records, body, turns, detail, at)
VALUES (
  ((SELECT run FROM kernai_runs WHERE id = ?) << 32) + ?,
  ?,
  (
    SELECT ? FROM kernai_runs AS r
    WHERE id = ? AND format <= ? AND status = ? AND (? = 1 OR (run << 32) + ? = (
      SELECT entry + records FROM kernai_journal WHERE entry < (r.run << 32) + ? ORDER BY entry DESC LIMIT 1
    ))
  ),
  ?, ?, ?
)`

/** The parameters of `appendSqlite`. */
export const paramsOfSqlite = (row: Row, format: number) => {
  const { at, body, detail, first, id, records, status, turns } = row
  return [id, first, records, body, id, format, status, first, first, first, turns, detail, at]
}

/** The same statement for PostgreSQL, which returns a row if it changed one. The parameters are those of `paramsOfPostgres`. */
export const appendPostgres = `
INSERT INTO kernai_journal (entry, records, body, turns, detail, at)
SELECT (run::bigint << 32) + $2::integer, $3::integer, $4::text, $5::integer, $6::text, $7::float8
FROM kernai_runs AS r
WHERE id = $1::text AND format <= $8::integer AND status = $9::text
  AND ($2::integer = 1 OR (run::bigint << 32) + $2::integer = (
    SELECT entry + records FROM kernai_journal
    WHERE entry < (r.run::bigint << 32) + $2::integer ORDER BY entry DESC LIMIT 1
  ))
ON CONFLICT DO NOTHING
RETURNING 1`

/** The parameters of `appendPostgres`. */
export const paramsOfPostgres = (row: Row, format: number) => {
  const { at, body, detail, first, id, records, status, turns } = row
  return [id, first, records, body, turns, detail, at, format, status]
}

/** The channel on which PostgreSQL announces the key of a run that has new records. */
export const channel = "kernai_runs"

/** The key of the last row of a run `r`. */
export const lastEntry = `(
  SELECT max(entry) FROM kernai_journal
  WHERE entry > CAST(r.run AS BIGINT) << 32 AND entry < (CAST(r.run AS BIGINT) + 1) << 32
)`

const tables = (types: { readonly key: string; readonly time: string; readonly text: string }) => [
  `CREATE TABLE kernai_runs (
    run ${types.key},
    id ${types.text} NOT NULL UNIQUE,
    root ${types.text} NOT NULL,
    parent ${types.text},
    agent ${types.text} NOT NULL,
    facts TEXT NOT NULL,
    format INTEGER NOT NULL,
    created_at ${types.time} NOT NULL,
    status TEXT NOT NULL,
    worker TEXT,
    expires_at ${types.time}
  )`,
  "CREATE INDEX kernai_runs_created_at ON kernai_runs (created_at)",
  "CREATE INDEX kernai_runs_status ON kernai_runs (status, created_at)",
  "CREATE INDEX kernai_runs_root ON kernai_runs (root)",
  `CREATE TABLE kernai_journal (
    entry BIGINT PRIMARY KEY,
    body TEXT NOT NULL,
    turns INTEGER NOT NULL,
    detail TEXT NOT NULL,
    at ${types.time} NOT NULL
  )`,
  "CREATE TABLE kernai_parts (entry BIGINT PRIMARY KEY, body TEXT NOT NULL)",
  "CREATE TABLE kernai_words (run INTEGER PRIMARY KEY, body TEXT NOT NULL)"
]

const sqlite = tables({ key: "INTEGER PRIMARY KEY", time: "INTEGER", text: "TEXT" }).map((statement) =>
  // Only the type INTEGER makes the key the row id.
  statement.replace("entry BIGINT", "entry INTEGER")
)

const postgres = tables({
  key: "INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
  time: "DOUBLE PRECISION",
  text: 'TEXT COLLATE "C"'
})
