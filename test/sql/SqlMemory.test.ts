import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Memory } from "kernai"
import { SqliteClient, SqlMemory } from "kernai/sql"
import { MemorySuite } from "kernai/testing"
import { memorySuite } from "../support/memory.ts"
import { isLong } from "../support/longRun.ts"
import * as Postgres from "../support/postgres.ts"

/** The texts of log entries. */
const logged = () => {
  const lines: Array<string> = []
  const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
  return { lines, logger }
}

const embedOne: Memory.Embed = () => Effect.succeed([1, 2, 3])

/** Stores 20 texts whose vectors are alike, and returns how many a search finds by meaning. */
const manyVectors = <E>(layer: Layer.Layer<Memory.Memory, E>) =>
  Effect.gen(function* () {
    const memory = yield* Memory.Memory
    for (let index = 0; index < 20; index++) yield* memory.store({ content: `n${index}` })
    return (yield* memory.search({ query: "zzz", limit: 100 })).length
  }).pipe(Effect.provideService(Memory.Embedder, embedOne), Effect.provide(layer))

const sqlite = SqliteClient.layer({ filename: ":memory:" })

describe("SqlMemory on SQLite with sqlite-vec", () => {
  memorySuite(SqlMemory.layerSqlite(":memory:"))

  it.effect("compares all vectors in the database", () =>
    Effect.gen(function* () {
      const { lines, logger } = logged()
      const found = yield* manyVectors(SqlMemory.layerSqlite({ filename: ":memory:", compared: 1 })).pipe(
        Effect.provide(logger)
      )
      assert.deepStrictEqual([found, lines], [20, []])
    })
  )
})

describe("SqlMemory on SQLite without an extension", () => {
  memorySuite(SqlMemory.layerSqlite({ filename: ":memory:", extensions: [] }))

  it.effect("says once that vectors are compared in this process", () =>
    Effect.gen(function* () {
      const { lines, logger } = logged()
      const layer = SqlMemory.layerSqlite({ filename: ":memory:", extensions: [], compared: 7 })
      assert.strictEqual(yield* Effect.provide(manyVectors(layer), logger), 7)
      assert.lengthOf(lines, 1)
      assert.match(lines[0] ?? "", /^sqlite-vec is not there, so searches compare the newest 7 vectors in this process/)
    })
  )
})

// On PostgreSQL the long run tries the same: `npm test` tries its client and its appends there.
if (isLong) {
  describe.skipIf(!Postgres.available)("SqlMemory on PostgreSQL", () => {
    const database = Effect.map(Postgres.database, ({ url }) => SqlMemory.layerPg({ url: Redacted.make(url) }))
    memorySuite(Layer.unwrap(database))
  })
}

// PGlite takes seconds and a gigabyte to start, so the long run alone has it.
if (isLong) {
  describe("SqlMemory on PostgreSQL with pgvector", () => {
    const pglite = Layer.unwrap(
      Effect.map(
        Effect.promise(() => import("../support/pglite.ts")),
        (found) => found.layer
      )
    )
    layer(pglite, { timeout: "10 minutes" })((it) => {
      for (const { name, run } of MemorySuite.checks(SqlMemory.make())) it.effect(name, () => run, 60_000)

      it.effect("compares all vectors in the database, also those stored before the extension was there", () =>
        Effect.gen(function* () {
          const { lines, logger } = logged()
          const sql = yield* SqlClient.SqlClient
          const space = Effect.provideService(SqlMemory.make({ space: "s", compared: 1 }), Memory.Embedder, embedOne)
          yield* (yield* space).store({ content: "one" })
          yield* sql`ALTER TABLE kernai_memories DROP COLUMN meaning`
          const found = yield* (yield* space).search({ query: "zzz", limit: 100 }).pipe(Effect.provide(logger))
          assert.deepStrictEqual([found.length, lines], [1, []])
          const columns = yield* sql`SELECT count(meaning)::int AS n FROM kernai_memories WHERE space = 's'`
          assert.deepStrictEqual(columns, [{ n: 1 }])
        })
      )
    })
  })
}

describe("SqlMemory", () => {
  it.effect("does not open tables that a newer version contracted, and leaves them unchanged (R-9)", () =>
    Effect.gen(function* () {
      yield* SqlMemory.make()
      const sql = yield* SqlClient.SqlClient
      yield* sql`INSERT INTO kernai_memory_migrations (migration_id, name) VALUES (99, 'contract_later')`
      assert.strictEqual((yield* Effect.flip(SqlMemory.make())).reason, "format")
      const [row] = yield* sql`SELECT count(*) AS n FROM kernai_memory_migrations`
      assert.deepStrictEqual(row, { n: 2 })
    }).pipe(Effect.provide(sqlite))
  )

  it.effect("separates namespaces, and finds memories of another process", () =>
    Effect.gen(function* () {
      const ann = yield* SqlMemory.make({ space: "ann" })
      const bob = yield* SqlMemory.make({ space: "bob" })
      const entry = yield* ann.store({ content: "secret of ann", key: "k" })
      yield* bob.store({ content: "secret of bob", key: "k" })
      const found = yield* (yield* SqlMemory.make({ space: "ann" })).search({ query: "secret" })
      assert.deepStrictEqual(
        found.map(({ content }) => content),
        ["secret of ann"]
      )
      assert.isFalse(yield* bob.forget({ id: entry.id }))
      assert.isTrue(yield* ann.forget({ id: entry.id }))
    }).pipe(Effect.provide(sqlite))
  )

  it.effect("deletes everything of a forgotten entry", () =>
    Effect.gen(function* () {
      const memory = yield* SqlMemory.make()
      const { id } = yield* memory.store({ content: "one", metadata: { who: "ann" } })
      yield* memory.forget({ id })
      const sql = yield* SqlClient.SqlClient
      for (const table of ["kernai_memories", "kernai_memory_facts", "kernai_memory_words"]) {
        assert.deepStrictEqual(yield* sql`SELECT * FROM ${sql(table)}`, [], table)
      }
    }).pipe(Effect.provide(sqlite))
  )

  it.effect("scans no more vectors than its limit, newest first", () =>
    Effect.gen(function* () {
      const memory = yield* SqlMemory.make({ compared: 500 })
      for (let index = 0; index < 600; index++) yield* memory.store({ content: `n${index}` })
      const found = yield* memory.search({ query: "zzz", limit: 1_000 })
      assert.strictEqual(found.length, 500)
      assert.notInclude(
        found.map(({ content }) => content),
        "n0"
      )
      for (const compared of [2, 502]) {
        const few = yield* (yield* SqlMemory.make({ compared })).search({ query: "zzz", limit: 1_000 })
        assert.strictEqual(few.length, compared)
      }
    }).pipe(
      Effect.provideService(Memory.Embedder, () => Effect.succeed([1, 2, 3])),
      Effect.provide(sqlite)
    )
  )

  it.effect("finds an entry with an invalid vector by its words", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const memory = yield* SqlMemory.make()
      yield* memory.store({ content: "words: here" })
      yield* sql`UPDATE kernai_memories SET vector = ${new Uint8Array([1, 2, 3])}`
      assert.deepStrictEqual(
        (yield* memory.search({ query: "words" })).map(({ content }) => content),
        ["words: here"]
      )
    }).pipe(
      Effect.provideService(Memory.Embedder, () => Effect.succeed([1, 2, 3])),
      Effect.provide(sqlite)
    )
  )

  it.effect("interprets no part of a text as query syntax, and reports unreadable rows", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const memory = yield* SqlMemory.make()
      yield* memory.store({ content: "words: here" })
      for (const query of ["words*", "words OR", "^words", "{words}: x", "words AND (", `"words`]) {
        assert.strictEqual((yield* memory.search({ query })).length, 1, query)
      }
      yield* sql`UPDATE kernai_memories SET body = '{}'`
      assert.strictEqual((yield* Effect.flip(memory.search({ query: "words" }))).reason, "corrupt")
      yield* sql`DROP TABLE kernai_memories`
      assert.strictEqual((yield* Effect.flip(memory.search({ query: "words" }))).reason, "unavailable")
    }).pipe(Effect.provide(sqlite))
  )
})
