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
import type { Caller } from "../../Caller.ts"
import type { StoreError } from "../../KernelError.ts"
import * as Key from "./key.ts"
import { migrate } from "./migrate.ts"

/** Creates or migrates the tables. */
export const prepare = (sql: SqlClient.SqlClient): Effect.Effect<void, StoreError> =>
  migrate(sql, "kernai_migrations", {
    "0001_runs": sql.onDialectOrElse({ pg: () => postgres, orElse: () => sqlite }),
    "0002_callers": sql.onDialectOrElse({ pg: () => callers(postgresText), orElse: () => callers("TEXT") }),
    "0003_histories": sql.onDialectOrElse({
      pg: () => histories(postgresText, (column) => `${column} REFERENCES kernai_histories (id)`),
      orElse: () => histories("TEXT", (column) => column)
    }),
    "0004_notes": sql.onDialectOrElse({ pg: () => notes(postgresText), orElse: () => notes("TEXT") }),
    "0005_unanswered": unanswered,
    "0006_counts": counts,
    "0007_deadlines": deadlines(sql.onDialectOrElse({ pg: () => "DOUBLE PRECISION", orElse: () => "INTEGER" })),
    "0008_spending": sql.onDialectOrElse({
      pg: () => spending({ text: postgresText, time: "DOUBLE PRECISION" }),
      orElse: () => spending({ text: "TEXT", time: "INTEGER" })
    }),
    "0009_unknown_deadlines": [
      ...sql.onDialectOrElse({ pg: () => guardPostgres, orElse: () => guardSqlite }),
      `UPDATE kernai_runs SET due_at = ${unknown("status")} WHERE ${isWrong("")}`
    ],
    "0010_models": models,
    "0011_search": sql.onDialectOrElse({
      pg: () => [...searching("INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY", "BYTEA"), ...unindexPostgres],
      orElse: () => [...searching("INTEGER PRIMARY KEY", "BLOB"), ...unindexSqlite]
    })
  })

/** The records of one append as a row, and the resulting head. */
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
  /** The deadline of a waiting run, or `noDeadline`. Null for a run that does not wait. */
  readonly due_at: number | null
  readonly format: number
  /** The fields of a new run that never change. */
  readonly origin?: Origin
  /** The usage of a root run that has ended. */
  readonly spent?: Spent
  /** The texts for searching the run, if they change. */
  readonly words?: string
}

/** The `due_at` of a waiting run whose questions have no deadline. Later than any, and exact in both databases. */
export const noDeadline = 9e15

/** Fields of a run that never change. */
export interface Origin {
  readonly root: string
  readonly parent: string | null
  readonly agent: string
  readonly caller: string | null
  readonly tenant: string | null
  readonly labels: ReadonlyArray<string>
  readonly facts: string
  readonly created_at: number
  /** The last chunk of its earlier messages. */
  readonly history: string | null
  /** The chunks that are not stored yet. */
  readonly chunks: ReadonlyArray<ChunkRow>
}

/** The usage of a run, which the overview sums. */
export interface Spent {
  /** The key of the model of its last reply. */
  readonly model: string
  /** How long it took, in steps of a quarter of an octave. */
  readonly pace: number
  readonly tokens: number
  /** US dollars, or null if no price is known. */
  readonly cost: number | null
}

/** Some messages that runs share, and the chunk with those before them. */
export interface ChunkRow {
  readonly id: string
  readonly before: string | null
  /** The number of messages up to its end. */
  readonly messages: number
  readonly body: string
}

/** Returns the keys of labels. */
export const labelKeys = (labels: Caller["labels"]): ReadonlyArray<string> =>
  Object.entries(labels ?? {}).map((label) => Key.make(JSON.stringify(label)))

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

/** Returns the parameters of `appendSqlite`. */
export const paramsOfSqlite = (row: Row, format: number) => {
  const { at, body, detail, first, id, records, status, turns } = row
  return [id, first, records, body, id, format, status, first, first, first, turns, detail, at]
}

/**
 * Appends any number of rows for PostgreSQL, each of another run, and returns the keys of the runs that it changed.
 *
 * A row is omitted if the run has another end or a newer format, does not exist, or exists although the row is its
 * first. The head of a run, its status and its texts change in the same statement, so they are stored together or not
 * at all. Parts of a statement do not see each other's writes, so the number of a new run comes from the part that
 * stores it. Rows are stored in the order of their keys, so two processes cannot deadlock. The parameters are those of
 * `paramsOfPostgres`.
 */
export const appendPostgres = `
WITH given AS MATERIALIZED (
  SELECT g.* FROM json_to_recordset($1::json) AS g (
    id text, first integer, records integer, body text, turns integer, detail text, at float8, status text,
    due_at float8, root text, parent text, agent text, caller text, tenant text, labels json, facts text,
    created_at float8, words text, format integer, history text, chunks json, model text, pace integer, tokens float8,
    cost float8
  ), set_config('lock_timeout', coalesce($3::text, current_setting('lock_timeout')), true)
), created AS (
  INSERT INTO kernai_runs (
    id, root, parent, agent, caller, tenant, facts, format, created_at, status, due_at, history, model, pace, tokens,
    cost
  )
  SELECT id, root, parent, agent, caller, tenant, facts, format, created_at, status, due_at, history, model, pace,
    tokens, cost
  FROM given
  WHERE first = 1 ORDER BY id
  ON CONFLICT (id) DO NOTHING
  RETURNING run, id
), labelled AS (
  INSERT INTO kernai_labels (run, label)
  SELECT run, label FROM created JOIN given USING (id) CROSS JOIN LATERAL json_array_elements_text(labels) AS label
), shared AS (
  INSERT INTO kernai_histories (id, before, messages, body)
  SELECT c.id, c.before, c.messages, c.body FROM created JOIN given USING (id)
  CROSS JOIN LATERAL json_to_recordset(chunks) AS c (id text, before text, messages integer, body text) ORDER BY c.id
  ON CONFLICT (id) DO NOTHING
), begun AS (
  INSERT INTO kernai_journal (entry, records, body, turns, detail, at)
  SELECT (run::bigint << 32) + 1, records, body, turns, detail, at FROM created JOIN given USING (id)
  RETURNING entry
), following AS (
  SELECT run, before, due_before, (run::bigint << 32) + first AS entry, g.* FROM given AS g CROSS JOIN LATERAL (
    SELECT run, r.status AS before, r.due_at AS due_before FROM kernai_runs AS r WHERE id = g.id AND format <= $2::integer LIMIT 1
  ) AS r
  WHERE first > 1 AND (run::bigint << 32) + first = (
    SELECT entry + j.records FROM kernai_journal AS j
    WHERE entry < (run::bigint << 32) + first ORDER BY entry DESC LIMIT 1
  )
), continued AS (
  INSERT INTO kernai_journal (entry, records, body, turns, detail, at)
  SELECT entry, records, body, turns, detail, at FROM following ORDER BY entry
  ON CONFLICT DO NOTHING
  RETURNING entry
), appended AS (
  SELECT run, id, status, status AS before, due_at, due_at AS due_before, words, model, pace, tokens, cost
  FROM created JOIN begun ON entry = (run::bigint << 32) + 1 JOIN given USING (id)
  UNION ALL
  SELECT run, id, status, before, due_at, due_before, words, model, pace, tokens, cost
  FROM following JOIN continued USING (entry)
), moved AS (
  UPDATE kernai_runs AS r SET status = a.status, due_at = a.due_at, model = coalesce(a.model, r.model),
    pace = coalesce(a.pace, r.pace), tokens = coalesce(a.tokens, r.tokens), cost = coalesce(a.cost, r.cost)
  FROM appended AS a WHERE r.run = a.run AND (a.status <> before OR a.due_at IS DISTINCT FROM due_before)
), remembered AS (
  INSERT INTO kernai_words (run, body) SELECT run, words FROM appended WHERE words IS NOT NULL ORDER BY run
  ON CONFLICT (run) DO UPDATE SET body = excluded.body
)
SELECT id FROM appended`

/**
 * Returns the parameters of `appendPostgres`. `lockTimeout` is the longest wait for a lock, or null for that of the
 * database.
 */
export const paramsOfPostgres = (rows: ReadonlyArray<Row>, format: number, lockTimeout: string | null) => [
  JSON.stringify(rows.map(flat)),
  format,
  lockTimeout
]

/** Returns a row as one object. Missing fields become null in the database. */
const flat = ({ origin, spent, ...row }: Row) => ({ ...row, ...origin, ...spent })

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
    expires_at ${types.time},
    since ${types.time}
  )`,
  "CREATE INDEX kernai_runs_created_at ON kernai_runs (created_at)",
  "CREATE INDEX kernai_runs_status ON kernai_runs (status, created_at)",
  "CREATE INDEX kernai_runs_root ON kernai_runs (root)",
  `CREATE TABLE kernai_journal (
    entry BIGINT PRIMARY KEY,
    records INTEGER NOT NULL,
    body TEXT NOT NULL,
    turns INTEGER NOT NULL,
    detail TEXT NOT NULL,
    at ${types.time} NOT NULL
  )`,
  "CREATE TABLE kernai_parts (entry BIGINT PRIMARY KEY, body TEXT NOT NULL)",
  "CREATE TABLE kernai_words (run INTEGER PRIMARY KEY, body TEXT NOT NULL)"
]

/** The callers of runs, and their labels. */
const callers = (text: string) => [
  `ALTER TABLE kernai_runs ADD COLUMN caller ${text}`,
  `ALTER TABLE kernai_runs ADD COLUMN tenant ${text}`,
  "CREATE INDEX kernai_runs_caller ON kernai_runs (caller, created_at) WHERE caller IS NOT NULL",
  "CREATE INDEX kernai_runs_tenant ON kernai_runs (tenant, created_at) WHERE tenant IS NOT NULL",
  `CREATE TABLE kernai_labels (run INTEGER, label ${text} NOT NULL, PRIMARY KEY (run, label))`,
  "CREATE INDEX kernai_labels_label ON kernai_labels (label, run)"
]

/**
 * The table of earlier messages that runs share. Versions that do not know it continue to work: they store runs with all
 * of their messages, and refuse those of the newer format.
 */
const histories = (text: string, referring: (column: string) => string) => [
  `CREATE TABLE kernai_histories (
    id ${text} PRIMARY KEY,
    before ${referring(text)},
    messages INTEGER NOT NULL,
    body TEXT NOT NULL
  )`,
  "CREATE INDEX kernai_histories_before ON kernai_histories (before)",
  `ALTER TABLE kernai_runs ADD COLUMN history ${referring(text)}`,
  "CREATE INDEX kernai_runs_history ON kernai_runs (history) WHERE history IS NOT NULL"
]

/** Small texts beside the runs. Versions that do not know them continue to work. */
const notes = (text: string) => [`CREATE TABLE kernai_notes (note ${text} PRIMARY KEY, body TEXT NOT NULL)`]

/**
 * Gives runs that ended before the status `no_answer` existed, or `poisoned`, the status that their last row describes.
 * The details are JSON without blanks, in whose texts quotes are escaped.
 */
const unanswered = [
  ["no_answer", "completed", '"source":"max_turns"'],
  ["no_answer", "failed", '"tag":"EmptyReplies"'],
  ["no_answer", "failed", '"tag":"CutReplies"'],
  ["no_answer", "failed", '"tag":"LoopDetected"'],
  ["no_answer", "failed", '"tag":"ProviderError"%"reason":"content_filter"'],
  ["no_answer", "failed", '"tag":"ProviderError"%"reason":"refusal"'],
  ["poisoned", "failed", '"tag":"RunPoisoned"']
].map(
  ([now, before, part]) => `UPDATE kernai_runs AS r SET status = '${now}' WHERE status = '${before}' AND EXISTS (
    SELECT 1 FROM kernai_journal WHERE entry = ${lastEntry} AND detail LIKE '%${part}%'
  )`
)

/** The index of the counts of root runs, which holds all that they need. */
const counts = ["CREATE INDEX kernai_runs_counts ON kernai_runs (agent, status, created_at) WHERE parent IS NULL"]

/** The deadlines of waiting runs, and their index. */
const deadlines = (time: string) => [
  `ALTER TABLE kernai_runs ADD COLUMN due_at ${time}`,
  "CREATE INDEX kernai_runs_due ON kernai_runs (due_at, id) WHERE due_at IS NOT NULL AND parent IS NULL"
]

/** Whether a waiting run has no `due_at`, or another run has one. `row` is a prefix of the columns. */
const isWrong = (row: string) => `(${row}status = 'paused') = (${row}due_at IS NULL)`

/** The `due_at` of a run whose deadline is unknown. A waiting run is listed first, and its deadline is looked up then. */
const unknown = (status: string) => `CASE ${status} WHEN 'paused' THEN 0 END`

/**
 * Keeps deadlines right while processes of a version that does not know them change the status of runs. Those of
 * this version set both columns, which runs no trigger.
 */
const guardSqlite = ["INSERT", "UPDATE OF status"].map(
  (change) => `CREATE TRIGGER kernai_runs_due_${change.slice(0, 6).toLowerCase()} AFTER ${change} ON kernai_runs
    WHEN ${isWrong("NEW.")}
    BEGIN UPDATE kernai_runs SET due_at = ${unknown("NEW.status")} WHERE run = NEW.run; END`
)

const guardPostgres = [
  `CREATE OR REPLACE FUNCTION kernai_runs_due() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN NEW.due_at := ${unknown("NEW.status")}; RETURN NEW; END $$`,
  `CREATE TRIGGER kernai_runs_due BEFORE INSERT OR UPDATE OF status ON kernai_runs
    FOR EACH ROW WHEN (${isWrong("NEW.")}) EXECUTE FUNCTION kernai_runs_due()`
]

/** The columns and the index of what root runs used that ended. The index holds all that their sums need. */
const spending = ({ text, time }: { readonly text: string; readonly time: string }) => [
  `ALTER TABLE kernai_runs ADD COLUMN model ${text}`,
  "ALTER TABLE kernai_runs ADD COLUMN pace INTEGER",
  `ALTER TABLE kernai_runs ADD COLUMN tokens ${time}`,
  "ALTER TABLE kernai_runs ADD COLUMN cost DOUBLE PRECISION",
  `CREATE INDEX kernai_runs_spending ON kernai_runs (agent, model, pace, created_at, tokens, cost)
    WHERE model IS NOT NULL`
]

/** The index of the runs of a model by their status, in the order of lists. */
const models = ["CREATE INDEX kernai_runs_model ON kernai_runs (model, status, created_at) WHERE model IS NOT NULL"]

/**
 * The tables of the search index (see `searchIndex.ts`), and the runs whose texts it lacks: all that are stored, and by
 * triggers those that a process of any version writes.
 */
const searching = (key: string, bytes: string) => [
  "CREATE TABLE kernai_unindexed (run INTEGER PRIMARY KEY, change INTEGER NOT NULL)",
  "INSERT INTO kernai_unindexed (run, change) SELECT run, 0 FROM kernai_words",
  `CREATE TABLE kernai_search_blocks (
    block ${key},
    first_run INTEGER NOT NULL,
    last_run INTEGER NOT NULL,
    slices INTEGER NOT NULL,
    runs ${bytes} NOT NULL
  )`,
  `CREATE TABLE kernai_search_slices (entry ${bytes === "BLOB" ? "INTEGER" : "BIGINT"} PRIMARY KEY, bits ${bytes} NOT NULL)`
]

// The ON CONFLICT clause of a statement replaces those in the triggers that it fires, so this trigger has none.
const unindexSqlite = ["INSERT", "UPDATE"].map(
  (change) => `CREATE TRIGGER kernai_words_${change.toLowerCase()} AFTER ${change} ON kernai_words
    BEGIN
      DELETE FROM kernai_unindexed WHERE run = NEW.run;
      INSERT INTO kernai_unindexed (run, change) VALUES (NEW.run, random() & 2147483647);
    END`
)

const unindexPostgres = [
  `CREATE OR REPLACE FUNCTION kernai_words_changed() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO kernai_unindexed AS u (run, change) VALUES (NEW.run, floor(random() * 2147483647))
    ON CONFLICT (run) DO UPDATE SET change = excluded.change;
    RETURN NULL;
  END $$`,
  `CREATE TRIGGER kernai_words_changed AFTER INSERT OR UPDATE ON kernai_words
    FOR EACH ROW EXECUTE FUNCTION kernai_words_changed()`
]

const sqlite = tables({ key: "INTEGER PRIMARY KEY", time: "INTEGER", text: "TEXT" }).map((statement) =>
  // Only the type INTEGER makes the key the row id.
  statement.replace("entry BIGINT", "entry INTEGER")
)

const postgresText = 'TEXT COLLATE "C"'

const postgres = tables({
  key: "INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
  time: "DOUBLE PRECISION",
  text: postgresText
})
