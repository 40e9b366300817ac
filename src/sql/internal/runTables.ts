/**
 * The tables of stored runs, and the statements that differ between databases.
 *
 * Journal and parts are keyed by one number: the run's own, with the revision in
 * its lower 32 bits. The head of a run is its last entry, so a commit writes one
 * page of one tree; only when a run pauses, ends, fails or goes on does its row in
 * `kernai_runs` change, in the same transaction (DR-5). An entry is taken once, and
 * only when the one before it is there (DR-6).
 */

import type * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { StoreError } from "../../KernelError.ts"
import { migrate } from "./migrate.ts"

/** Brings the tables up to date. */
export const prepare = (sql: SqlClient.SqlClient): Effect.Effect<void, StoreError> =>
  migrate(sql, "kernai_migrations", {
    "0001_runs": sql.onDialectOrElse({ pg: () => postgres, orElse: () => sqlite })
  })

/** A record as a row of its journal, with what its head is if it is the last one. */
export interface Row {
  readonly revision: number
  readonly body: string
  readonly turns: number
  readonly detail: string
  readonly at: number
}

// A body that must not be there is none, which its column refuses: values are dearer to read from a query that looks
// at the table it fills, because SQLite copies all of it first. Of a numbered parameter only newer versions of Node know
// its place: what is needed twice is given twice.
const appendTo = (where: string) => `
INSERT OR IGNORE INTO kernai_journal (entry, body, turns, detail, at)
VALUES (
  ((SELECT run FROM kernai_runs WHERE id = ?) << 32) + ?,
  (
    SELECT ? FROM kernai_runs
    WHERE id = ? AND format <= ? AND ${where}
      AND (? = 1 OR EXISTS (SELECT 1 FROM kernai_journal WHERE entry = (run << 32) + ? - 1))
  ),
  ?, ?, ?
)`

/**
 * Appends a record, if the one before it is there, its own place is free, and the run keeps its status; changes
 * one row if it did.
 */
export const appendSqlite = appendTo("status = ?")

/**
 * The same for a record that changes the status: `turnSqlite` is to follow in the same transaction. It is given the new
 * status as well, for both take one list of values.
 */
export const appendTurnSqlite = appendTo("? IS NOT NULL")

/** Changes the status of a run. */
export const turnSqlite = "UPDATE kernai_runs SET status = ? WHERE id = ?"

/**
 * All of this for PostgreSQL, which also tells who listens; gives a row if the records were appended. They are a list
 * of JSON objects that follow each other. A key that is taken fails the whole of it.
 */
export const appendPostgres = `
WITH added AS (
  INSERT INTO kernai_journal (entry, body, turns, detail, at)
  SELECT (run::bigint << 32) + item.revision, item.body, item.turns, item.detail, item.at
  FROM kernai_runs, json_to_recordset($1::json)
    AS item(revision integer, body text, turns integer, detail text, at float8)
  WHERE id = $2::text AND format <= $3::integer
    AND ($4::integer = 1
      OR EXISTS (SELECT 1 FROM kernai_journal WHERE entry = (run::bigint << 32) + $4::integer - 1))
    AND NOT EXISTS (SELECT 1 FROM kernai_journal WHERE entry = (run::bigint << 32) + $4::integer)
  RETURNING 1
), turned AS (
  UPDATE kernai_runs SET status = $5::text WHERE id = $2::text AND status <> $5::text AND EXISTS (SELECT 1 FROM added)
)
SELECT pg_notify('kernai_runs', $2::text) AS done FROM (SELECT 1 FROM added LIMIT 1) AS one`

/** The channel on which PostgreSQL tells the id of a run that went on. */
export const channel = "kernai_runs"

/** The last entry of a run `r`. */
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
  // Only the type INTEGER makes the key the place of a row.
  statement.replace("entry BIGINT", "entry INTEGER")
)

const postgres = tables({
  key: "INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
  time: "DOUBLE PRECISION",
  text: 'TEXT COLLATE "C"'
})
