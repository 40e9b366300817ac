/** The tables of a memory, and the statements that differ between databases. */

import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"

/** A memory as stored. */
export interface Row {
  readonly id: number
  readonly name: string
  readonly body: string
}

/** A memory that contains some of the words. A higher `fit` is better. */
interface Ranked {
  readonly id: number
  readonly fit: number
}

/** The comparison of vectors by a database. All vectors have length 1. */
export interface Vectors {
  /** Stores a vector beside that of the row, if the database needs it in another form. */
  readonly store: (id: number, vector: Float32Array) => Effect.Effect<unknown, SqlError>
  /** Returns the nearest vectors of the same length, the oldest first among equals. `fit` is the similarity. */
  readonly nearest: (
    vector: Float32Array,
    where: Fragment,
    limit: number
  ) => Effect.Effect<ReadonlyArray<Ranked>, SqlError>
}

/** The statements that differ between databases. */
export interface Dialect {
  readonly tables: ReadonlyArray<string>
  readonly index: (id: number, words: ReadonlyArray<string>) => Effect.Effect<unknown, SqlError>
  readonly unindex: (id: number) => Effect.Effect<unknown, SqlError>
  /** Returns the best matches by words, the oldest first among equals. */
  readonly search: (
    words: ReadonlyArray<string>,
    where: Fragment,
    limit: number
  ) => Effect.Effect<ReadonlyArray<Ranked>, SqlError>
  /** Prepares the database to compare vectors. Fails if it lacks the extension. */
  readonly vectors: Effect.Effect<Vectors, SqlError>
  /** The extension that compares vectors. */
  readonly extension: string
}

const memories = (id: string, text: string, bytes: string) => `CREATE TABLE kernai_memories (
  id ${id},
  space ${text} NOT NULL,
  memory_key ${text},
  name ${text} NOT NULL UNIQUE,
  body TEXT NOT NULL,
  vector ${bytes},
  UNIQUE (space, memory_key)
)`

const facts = (text: string) => [
  `CREATE TABLE kernai_memory_facts (
    memory INTEGER NOT NULL,
    name ${text} NOT NULL,
    value ${text} NOT NULL,
    PRIMARY KEY (memory, name)
  )`,
  "CREATE INDEX kernai_memories_space ON kernai_memories (space, id)"
]

/** SQLite, with an FTS5 table of words. */
export const sqlite = (sql: SqlClient): Dialect => ({
  tables: [
    memories("INTEGER PRIMARY KEY AUTOINCREMENT", "TEXT", "BLOB"),
    ...facts("TEXT"),
    `CREATE VIRTUAL TABLE kernai_memory_words USING fts5(words, tokenize = "unicode61 remove_diacritics 0 categories 'L* N* M* Co'")`
  ],
  index: (id, words) => sql`INSERT INTO kernai_memory_words (rowid, words) VALUES (${id}, ${words.join(" ")})`,
  unindex: (id) => sql`DELETE FROM kernai_memory_words WHERE rowid = ${id}`,
  search: (words, where, limit) => sql<Ranked>`
    SELECT m.id AS id, -bm25(kernai_memory_words) AS fit
    FROM kernai_memory_words w JOIN kernai_memories m ON m.id = w.rowid
    WHERE w.words MATCH ${words.map((word) => `"${word}"`).join(" OR ")} AND ${where}
    ORDER BY fit DESC, m.id LIMIT ${limit}`,
  extension: "sqlite-vec",
  vectors: Effect.as(sql`SELECT vec_version()`, {
    store: () => Effect.void,
    nearest: (vector, where, limit) => {
      const bytes = new Uint8Array(vector.buffer)
      return sql<Ranked>`
        SELECT m.id AS id, coalesce(1 - vec_distance_cosine(m.vector, ${bytes}), 0) AS fit
        FROM kernai_memories m WHERE length(m.vector) = ${bytes.length} AND ${where}
        ORDER BY fit DESC, m.id LIMIT ${limit}`
    }
  })
})

/**
 * PostgreSQL, with a column of lexemes. Words are passed as lexemes, so its own parser never sees them. `ts_rank` weighs
 * all words alike; here a word counts the more, the fewer entries contain it.
 */
export const postgres = (sql: SqlClient): Dialect => ({
  tables: [
    memories("INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY", 'TEXT COLLATE "C"', "BYTEA"),
    ...facts('TEXT COLLATE "C"'),
    "ALTER TABLE kernai_memories ADD COLUMN words TSVECTOR",
    "CREATE INDEX kernai_memories_words ON kernai_memories USING GIN (words)"
  ],
  index: (id, words) => sql`
    UPDATE kernai_memories
    SET words = array_to_tsvector(ARRAY(SELECT jsonb_array_elements_text(${JSON.stringify(words)}::text::jsonb)))
    WHERE id = ${id}`,
  unindex: () => sql`SELECT 1`,
  search: (words, where, limit) => sql<Ranked>`
    WITH occurrences AS (
      SELECT m.id, asked.word, (count(*) OVER (PARTITION BY asked.word))::float8 AS entries
      FROM jsonb_array_elements_text(${JSON.stringify(words)}::text::jsonb) AS asked (word)
      JOIN kernai_memories m ON m.words @@ ('''' || asked.word || '''')::tsquery
      WHERE ${where}
    )
    SELECT id, sum(ln(1 + (
      (SELECT count(*) FROM kernai_memories m WHERE ${where}) - entries + 0.5
    ) / (entries + 0.5)) ORDER BY word) AS fit
    FROM occurrences GROUP BY id ORDER BY fit DESC, id LIMIT ${limit}`,
  extension: "pgvector",
  vectors: Effect.as(pgvector(sql), {
    store: (id, vector) =>
      vector.length > mostDimensions
        ? Effect.void
        : sql`UPDATE kernai_memories SET meaning = ${textOf(vector)}::text::vector WHERE id = ${id}`,
    nearest: (vector, where, limit) =>
      vector.length > mostDimensions
        ? Effect.succeed([])
        : sql<Ranked>`
          SELECT m.id AS id, (1 - (m.meaning <=> ${textOf(vector)}::text::vector))::float8 AS fit
          FROM kernai_memories m WHERE vector_dims(m.meaning) = ${vector.length} AND ${where}
          ORDER BY fit DESC, m.id LIMIT ${limit}`
  })
})

/** The most dimensions of a vector in pgvector. */
const mostDimensions = 16_000

const textOf = (vector: Float32Array): string => JSON.stringify([...vector])

/**
 * Adds a column for pgvector with what was stored without it. The bytes stay, for processes that know no such column.
 * A database or a role without the right to do so fails here, and loses nothing.
 */
const pgvector = Effect.fnUntraced(function* (sql: SqlClient) {
  // Of two processes that create it at once, one fails, and finds it when it tries again.
  yield* Effect.retry(sql`CREATE EXTENSION IF NOT EXISTS vector`, { times: 1 })
  const column = yield* sql`
    SELECT 1 FROM pg_attribute WHERE attrelid = 'kernai_memories'::regclass AND attname = 'meaning'`
  if (column.length === 0) yield* sql`ALTER TABLE kernai_memories ADD COLUMN IF NOT EXISTS meaning vector`
  let after = 0
  for (;;) {
    const rows = yield* sql<{ readonly id: number; readonly vector: Uint8Array }>`
      SELECT id, vector FROM kernai_memories
      WHERE id > ${after} AND vector IS NOT NULL AND meaning IS NULL ORDER BY id LIMIT 200`
    for (const { id, vector } of rows) {
      const numbers = floats(vector)
      if (
        numbers !== undefined &&
        numbers.length > 0 &&
        numbers.length <= mostDimensions &&
        numbers.every(Number.isFinite)
      )
        yield* sql`UPDATE kernai_memories SET meaning = ${textOf(numbers)}::text::vector WHERE id = ${id}`
    }
    if (rows.length < 200) return
    after = rows.at(-1)?.id ?? after
  }
})

/** Decodes a vector. Bytes written by another program may not be one. */
export const floats = (bytes: Uint8Array): Float32Array | undefined =>
  // Bytes from a database may start at any address, numbers may not.
  bytes.length % 4 === 0 ? new Float32Array(new Uint8Array(bytes).buffer) : undefined
