import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Memory } from "kernai"
import { SqliteClient, SqlMemory } from "kernai/sql"
import { memorySuite } from "../support/memory.ts"
import { isLong } from "../support/longRun.ts"
import * as Postgres from "../support/postgres.ts"

const sqlite = SqliteClient.layer({ filename: ":memory:" })

memorySuite("SqlMemory on SQLite", SqlMemory.layerSqlite(":memory:"))

// On PostgreSQL the long run tries the same: `npm test` tries its client and its appends there.
if (isLong) {
  describe.skipIf(!Postgres.available)("PostgreSQL", () => {
    const layer = Effect.map(Postgres.database, ({ url }) => SqlMemory.layerPg({ url: Redacted.make(url) }))
    memorySuite("SqlMemory on PostgreSQL", Layer.unwrap(layer))
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
