/**
 * The tables of stored runs, and the statements that differ between databases.
 *
 * Journal and parts are keyed by one number, the run's own and the revision in
 * its lower 32 bits: a commit then touches one page of one tree. The head in
 * `kernai_runs` moves in the same statement, by a trigger in SQLite and in the
 * statement itself in PostgreSQL, so neither is ever without the other (DR-5).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"

/** The table that remembers which migrations ran. */
export const migrationsTable = "kernai_migrations"

/** The number of the last migration this version knows. */
export const latest = 1

/** Brings the tables up to date. */
export const migrate = Migrator.make({})({
  table: migrationsTable,
  loader: Migrator.fromRecord({
    "0001_runs": Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const statements = sql.onDialectOrElse({ pg: () => postgres, orElse: () => sqlite })
      for (const statement of statements) yield* sql.unsafe(statement)
    })
  })
})

/** What a commit binds, in this order. */
export type CommitParameters = readonly [
  revision: number,
  body: string,
  turns: number,
  status: string,
  detail: string,
  at: number,
  id: string,
  format: number
]

/**
 * Appends a record and moves the head, if the head is one revision before it; gives a row if it did.
 */
export const commitSqlite = `
INSERT INTO kernai_journal (entry, body, turns, status, detail, at)
SELECT (run << 32) + ?1, ?2, ?3, ?4, ?5, ?6 FROM kernai_runs WHERE id = ?7 AND revision = ?1 - 1 AND format <= ?8
RETURNING 1 AS done`

/** The same for PostgreSQL, which also tells who listens. */
export const commitPostgres = `
WITH head AS (
  UPDATE kernai_runs
  SET revision = $1::integer, turns = $3::integer, status = $4::text, detail = $5::text, updated_at = $6::float8
  WHERE id = $7::text AND revision = $1::integer - 1 AND format <= $8::integer
  RETURNING run
), entry AS (
  INSERT INTO kernai_journal (entry, body)
  SELECT (run::bigint << 32) + $1::integer, $2::text FROM head
  RETURNING 1
)
SELECT pg_notify('kernai_runs', $7::text) AS done FROM entry`

/** The channel on which PostgreSQL tells the id of a run that went on. */
export const channel = "kernai_runs"

const runs = (key: string, time: string, text: string) => `CREATE TABLE kernai_runs (
  run ${key},
  id ${text} NOT NULL UNIQUE,
  root ${text} NOT NULL,
  parent ${text},
  agent ${text} NOT NULL,
  facts TEXT NOT NULL,
  format INTEGER NOT NULL,
  created_at ${time} NOT NULL,
  revision INTEGER NOT NULL,
  turns INTEGER NOT NULL,
  status TEXT NOT NULL,
  detail TEXT NOT NULL,
  updated_at ${time} NOT NULL,
  worker TEXT,
  expires_at ${time}
)`

const shared = [
  "CREATE INDEX kernai_runs_created_at ON kernai_runs (created_at)",
  "CREATE INDEX kernai_runs_status ON kernai_runs (status, created_at)",
  "CREATE INDEX kernai_runs_root ON kernai_runs (root)"
]

const sqlite = [
  runs("INTEGER PRIMARY KEY", "INTEGER", "TEXT"),
  ...shared,
  `CREATE TABLE kernai_journal (
    entry INTEGER PRIMARY KEY,
    body TEXT NOT NULL,
    turns INTEGER NOT NULL,
    status TEXT NOT NULL,
    detail TEXT NOT NULL,
    at INTEGER NOT NULL
  )`,
  // The status has an index, which only a change of it should cost.
  `CREATE TRIGGER kernai_journal_head AFTER INSERT ON kernai_journal BEGIN
    UPDATE kernai_runs
    SET revision = new.entry & 4294967295, turns = new.turns, detail = new.detail, updated_at = new.at
    WHERE run = new.entry >> 32;
    UPDATE kernai_runs SET status = new.status WHERE run = new.entry >> 32 AND status <> new.status;
  END`,
  "CREATE TABLE kernai_parts (entry INTEGER PRIMARY KEY, body TEXT NOT NULL)",
  "CREATE TABLE kernai_words (run INTEGER PRIMARY KEY, body TEXT NOT NULL)"
]

const postgres = [
  runs("INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "DOUBLE PRECISION", 'TEXT COLLATE "C"'),
  ...shared,
  "CREATE TABLE kernai_journal (entry BIGINT PRIMARY KEY, body TEXT NOT NULL)",
  "CREATE TABLE kernai_parts (entry BIGINT PRIMARY KEY, body TEXT NOT NULL)",
  "CREATE TABLE kernai_words (run INTEGER PRIMARY KEY, body TEXT NOT NULL)"
]
