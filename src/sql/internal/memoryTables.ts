/** The tables of a memory, and the statements that differ between databases. */

import type * as Effect from "effect/Effect"
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
    ORDER BY fit DESC, m.id LIMIT ${limit}`
})

/** PostgreSQL, with a column of lexemes. Words are passed as lexemes, so its own parser never sees them. */
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
  search: (words, where, limit) => {
    const query = words.map((word) => `'${word}'`).join(" | ")
    return sql<Ranked>`
      SELECT m.id AS id, ts_rank(m.words, ${query}::text::tsquery)::float8 AS fit
      FROM kernai_memories m
      WHERE m.words @@ ${query}::text::tsquery AND ${where}
      ORDER BY fit DESC, m.id LIMIT ${limit}`
  }
})
