/**
 * Keeps memories in a database, searched by its full-text index: FTS5 in SQLite, `tsvector` in PostgreSQL.
 *
 * Words are split here, so both databases find the same memories. With an `Embedder`, texts are also compared by
 * meaning: the database compares all vectors of a search where it has an extension for it, `sqlite-vec` in SQLite and
 * pgvector in PostgreSQL. Without the extension this process compares them, newest first, and logs that it does.
 * Memories of different spaces are separate.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Memories from "../store-kit/MemoryRules.ts"
import { wordsOf } from "../kit/text.ts"
import { type LimitExceeded, StoreError } from "../KernelError.ts"
import * as Memory from "../Memory.ts"
import { failed, orLost, wordsOf as wordsFor } from "./internal/sqlFault.ts"
import * as Key from "./internal/key.ts"
import * as Tables from "./internal/memoryTables.ts"
import { migrate } from "./internal/migrate.ts"
import { onPg, onSqlite } from "./internal/ownClient.ts"
import { sqliteVec } from "./internal/sqliteVec.ts"
import type * as Postgres from "./internal/postgres.ts"
import type * as SqliteClient from "./SqliteClient.ts"

/**
 * Options of a memory.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The owner of the memories, such as a user or a project. Default: `default`. */
  readonly space?: string | undefined
  /** Maximum number of vectors that a search compares in this process, newest first. Default: 10,000. */
  readonly compared?: number | undefined
}

/**
 * Creates a memory in the database in context. Creates its tables if necessary.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options = {}
): Effect.fn.Return<Memory.MemoryShape, StoreError, SqlClient.SqlClient> {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  const dialect = sql.onDialectOrElse({ pg: () => Tables.postgres(sql), orElse: () => Tables.sqlite(sql) })
  yield* migrate(sql, "kernai_memory_migrations", { "0001_memories": dialect.tables })
  const compared = Math.floor(options.compared ?? 10_000)
  const table: Table = {
    sql,
    dialect,
    embed: yield* Memory.embedding,
    vectors: yield* Effect.cached(Effect.catchTag(dialect.vectors, "SqlError", withoutVectors(dialect, compared))),
    space: Key.make(options.space ?? "default"),
    compared
  }
  return {
    store: (memory) => store(table, memory),
    search: (query) => search(table, query),
    forget: (which) => forget(table, which),
    prune: (which) => prune(table, which)
  }
})

/**
 * Keeps memories in the database in context.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<Memory.Memory, StoreError, SqlClient.SqlClient> =>
  Layer.effect(Memory.Memory, make(options))

/**
 * Keeps memories in a SQLite file, which may be that of a run store. Loads the package `sqlite-vec` if it is installed.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerSqlite = (
  file: string | (SqliteClient.Options & Options)
): Layer.Layer<Memory.Memory, StoreError> => {
  const options = typeof file === "string" ? { filename: file } : file
  return Layer.unwrap(
    Effect.map(sqliteVec, (found) =>
      onSqlite(Memory.Memory, { ...options, extensions: options.extensions ?? found }, make(options))
    )
  )
}

export type {
  /**
   * Options of the PostgreSQL connection.
   *
   * @category models
   * @since 0.1.0
   */
  Options as PgOptions
} from "./internal/postgres.ts"

/**
 * Keeps memories in PostgreSQL, in a database which may be that of a run store. Needs the package `@effect/sql-pg`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerPg = (options: Postgres.Options & Options): Layer.Layer<Memory.Memory, StoreError> =>
  onPg(Memory.Memory, options, make(options))

/** The memories of one space in a database. */
interface Table {
  readonly sql: SqlClient.SqlClient
  readonly dialect: Tables.Dialect
  readonly embed: (text: string) => Effect.Effect<Float32Array | undefined>
  /** The comparison by the database, if it has one. */
  readonly vectors: Effect.Effect<Tables.Vectors | undefined>
  readonly space: string
  readonly compared: number
}

const guarded = <A>(operation: string, effect: Effect.Effect<A, SqlError>): Effect.Effect<A, StoreError> =>
  Effect.catchTag(orLost(effect), "SqlError", failed(operation))

/** Logs that the database cannot compare vectors. */
const withoutVectors =
  ({ extension }: Tables.Dialect, compared: number) =>
  (error: SqlError) =>
    Effect.as(
      Effect.logInfo(
        `${extension} is not there, so searches compare the newest ${compared} vectors in this process: ${wordsFor(error)}`
      ),
      undefined
    )

const byKey = ({ space, sql }: Table, key: string) =>
  sql<Tables.Row>`SELECT id, name, body FROM kernai_memories WHERE space = ${space} AND memory_key = ${Key.make(key)}`

// ---------------------------------------------------------------- writing

const store = Effect.fnUntraced(function* (
  table: Table,
  memory: Memory.NewMemory
): Effect.fn.Return<Memory.MemoryEntry, StoreError | LimitExceeded> {
  const { dialect, embed, space, sql } = table
  const { content, key, metadata = {} } = memory
  yield* Memory.admit(memory)
  if (key !== undefined) {
    const [before] = yield* guarded("remember", byKey(table, key))
    if (before !== undefined) return yield* entryOf(before)
  }
  const vector = yield* embed(content)
  const vectors = vector === undefined ? undefined : yield* table.vectors
  const entry = yield* Memory.entryOf(content, metadata)
  const row = {
    space,
    memory_key: key === undefined ? null : Key.make(key),
    name: entry.id,
    body: Memories.canonical(entry),
    vector: vector === undefined ? null : new Uint8Array(vector.buffer)
  }
  const added = yield* guarded(
    "remember",
    sql.withTransaction(
      Effect.gen(function* () {
        const rows = yield* sql<{ id: number }>`
          INSERT INTO kernai_memories ${sql.insert(row)} ON CONFLICT DO NOTHING RETURNING id`
        const id = rows[0]?.id
        if (id === undefined) return false
        yield* dialect.index(id, wordsOf(content))
        if (vector !== undefined && vectors !== undefined) yield* vectors.store(id, vector)
        for (const [name, value] of Object.entries(metadata)) {
          yield* sql`INSERT INTO kernai_memory_facts ${sql.insert(factOf(id, name, value))}`
        }
        return true
      })
    )
  )
  if (added || key === undefined) return entry
  const [meanwhile] = yield* guarded("remember", byKey(table, key))
  return meanwhile === undefined ? entry : yield* entryOf(meanwhile)
})

const forget = (table: Table, { filter, id }: Memory.Forgetting): Effect.Effect<boolean, StoreError> => {
  const { sql } = table
  const found = sql.and([matching(table, filter), sql`m.name = ${Key.make(id)}`])
  return guarded(
    "forget",
    sql.withTransaction(
      Effect.gen(function* () {
        const [row] = yield* sql<{ id: number }>`SELECT m.id FROM kernai_memories m WHERE ${found}`
        return row !== undefined && (yield* erase(table, row.id))
      })
    )
  )
}

const prune = (table: Table, { filter, keep }: Memory.Pruning): Effect.Effect<number, StoreError> => {
  const { sql } = table
  return guarded(
    "forget",
    sql.withTransaction(
      Effect.gen(function* () {
        const rows = yield* sql<Pick<Tables.Row, "id" | "name">>`
          SELECT m.id, m.name FROM kernai_memories m WHERE ${matching(table, filter)}`
        let count = 0
        for (const { id, name } of rows) if (keep?.has(name) !== true && (yield* erase(table, id))) count++
        return count
      })
    )
  )
}

/** Deletes a memory with its words and facts. Returns whether it was still there. */
const erase = Effect.fnUntraced(function* ({ dialect, sql }: Table, id: number) {
  const gone = yield* sql`DELETE FROM kernai_memories WHERE id = ${id} RETURNING id`
  if (gone.length === 0) return false
  yield* dialect.unindex(id)
  yield* sql`DELETE FROM kernai_memory_facts WHERE memory = ${id}`
  return true
})

// ---------------------------------------------------------------- searching

const matching = ({ space, sql }: Table, filter: Memory.Query["filter"]) =>
  sql.and([
    sql`m.space = ${space}`,
    ...Object.entries(filter ?? {}).map(([name, value]) => {
      const fact = factOf(0, name, value)
      return sql`EXISTS (SELECT 1 FROM kernai_memory_facts f WHERE f.memory = m.id AND f.name = ${fact.name} AND f.value = ${fact.value})`
    })
  ])

/** Returns the nearest vectors that pass the filter, compared by the database or else in this process. */
const nearest = Effect.fnUntraced(function* (table: Table, vector: Float32Array, query: Memory.Query, count: number) {
  const vectors = yield* table.vectors
  if (vectors === undefined) return yield* alike(table, vector, query, count)
  const rows = yield* vectors.nearest(vector, matching(table, query.filter), count)
  return new Map(rows.map(({ fit, id }) => [id, Math.max(0, Math.min(1, fit))]))
})

/** Returns the newest vectors that pass the filter, best match first. */
const alike = Effect.fnUntraced(function* (table: Table, vector: Float32Array, query: Memory.Query, count: number) {
  const { compared, sql } = table
  const found = new Map<number, number>()
  let before: number | undefined
  for (let looked = 0; looked < compared; looked += page) {
    const most = Math.min(page, compared - looked)
    const older = before === undefined ? [] : [sql`m.id < ${before}`]
    const where = sql.and([matching(table, query.filter), sql`m.vector IS NOT NULL`, ...older])
    const rows = yield* sql<{ id: number; vector: Uint8Array }>`
      SELECT m.id, m.vector FROM kernai_memories m WHERE ${where} ORDER BY m.id DESC LIMIT ${most}`
    for (const row of rows) found.set(row.id, Memories.likeness(vector, Tables.floats(row.vector)))
    before = rows.at(-1)?.id
    if (rows.length < most) break
  }
  return new Map([...found].toSorted((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, count))
})

const search = Effect.fnUntraced(function* (
  table: Table,
  query: Memory.Query
): Effect.fn.Return<ReadonlyArray<Memory.MemoryEntry>, StoreError> {
  const { dialect, embed, sql } = table
  const asked = Memories.asked(query)
  if (asked.words.length === 0 || asked.limit === 0) return []
  const vector = yield* embed(query.query)
  // Comparing by meaning may change the order, so more rows are read than are returned.
  const count = vector === undefined ? asked.limit : Memories.depth(asked)
  const texts = new Map(
    (yield* guarded("search", dialect.search(asked.words, matching(table, query.filter), count))).map((row) => [
      row.id,
      // Ranks differ between databases; both are mapped to between 0 and 1.
      row.fit / (1 + row.fit)
    ])
  )
  const meanings = vector === undefined ? undefined : yield* guarded("search", nearest(table, vector, query, count))
  const best = Memories.ranked(texts, meanings, asked)
  if (best.length === 0) return []
  const rows = yield* guarded(
    "search",
    sql<Tables.Row>`SELECT id, name, body FROM kernai_memories WHERE ${sql.in(
      "id",
      best.map(({ id }) => id)
    )}`
  )
  const entries = new Map(
    yield* Effect.forEach(rows, (row) => Effect.map(entryOf(row), (entry) => [row.id, entry] as const))
  )
  return best.flatMap(({ id, score }) => {
    const entry = entries.get(id)
    return entry === undefined ? [] : [{ ...entry, score }]
  })
})

// ---------------------------------------------------------------- helpers

/** Vectors read at once. */
const page = 500

const factOf = (memory: number, name: string, value: unknown) => ({
  memory,
  name: Key.make(name),
  value: Key.make(Memories.canonical(value))
})

const decode = Schema.decodeUnknownResult(
  Schema.fromJsonString(
    Schema.Struct({
      id: Schema.String,
      content: Schema.String,
      metadata: Schema.JsonObject,
      createdAt: Schema.Finite
    })
  )
)

const entryOf = (row: Tables.Row): Effect.Effect<Memory.MemoryEntry, StoreError> => {
  const entry = decode(row.body)
  return Result.isSuccess(entry)
    ? Effect.succeed(entry.success)
    : Effect.fail(
        new StoreError({ operation: "search", reason: "corrupt", detail: `memory ${row.name} cannot be read` })
      )
}
