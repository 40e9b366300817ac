/** Searches of stores with more runs than a search compares without its index. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, type Scope } from "effect"
import { SqlClient } from "effect/sql"
import type { RunStore } from "kernai"
import { PgRunStore, SqliteClient, SqlRunStore } from "kernai/sql"
import * as Grams from "../../src/sql/internal/grams.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { folder } from "../support/folder.ts"
import * as Postgres from "../support/postgres.ts"
import { open, put } from "../support/runStore.ts"

interface Place {
  readonly store: RunStore.RunStoreShape
  readonly sql: SqlClient.SqlClient
}

const count = 7000

/** Copies a run many times, oldest first, as another program would write them. */
const fill = ({ sql, store }: Place, texts: { readonly [run: number]: string }) =>
  Effect.gen(function* () {
    const run = Journal.begin("run0", { createdAt: 0 })
    yield* put(store, [run.last()])
    yield* sql`
      INSERT INTO kernai_runs (id, root, agent, facts, format, created_at, status)
      WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
      SELECT 'run' || i, 'run' || i, agent, replace(replace(facts, 'run0', 'run' || i), '"createdAt":0', '"createdAt":' || i),
        format, i, status
      FROM kernai_runs, n ORDER BY i`
    yield* sql`
      INSERT INTO kernai_journal (entry, records, body, turns, detail, at)
      SELECT (CAST(r.run AS BIGINT) << 32) + 1, 1, body, turns, detail, at
      FROM kernai_runs AS r, kernai_journal WHERE r.id <> 'run0'`
    yield* sql`
      INSERT INTO kernai_words (run, body)
      SELECT run, 'a question about fibers, invoice ' || id FROM kernai_runs WHERE id <> 'run0'`
    for (const [number, body] of Object.entries(texts)) yield* write(sql, `run${number}`, body)
  })

/** Writes the text of a run as a process of the version before does. */
const write = (sql: SqlClient.SqlClient, id: string, body: string) => sql`
  INSERT INTO kernai_words (run, body) SELECT run, ${body} FROM kernai_runs WHERE id = ${id}
  ON CONFLICT (run) DO UPDATE SET body = excluded.body`

const rowsOf = (sql: SqlClient.SqlClient, table: string) =>
  Effect.map(sql`SELECT count(*) AS count FROM ${sql(table)}`, ([row]) => Number(row?.["count"]))

/** Waits until the texts are indexed that fill blocks. */
const indexed = Effect.fnUntraced(function* ({ sql, store }: Place) {
  yield* store.list({ search: "nowhere", limit: 1 })
  while ((yield* rowsOf(sql, "kernai_unindexed")) >= Grams.blockSize) yield* Effect.sleep("5 millis")
})

const found = (store: RunStore.RunStoreShape, filter: RunStore.RunFilter) =>
  Effect.map(store.list(filter), (heads) => heads.map(({ runId }) => runId))

const suite = <E>(name: string, place: Effect.Effect<Place, E, Scope.Scope>) =>
  describe(name, () => {
    it.live(
      "finds words in old runs, whole or in part, in any script, before and after they are indexed",
      () =>
        Effect.gen(function* () {
          const at = yield* place
          const { sql, store } = at
          yield* fill(at, { 7: "这张发票的金额", 8: 'if (userid !== "x9") { throw }', 9: "naïve 🎉 café" })
          const searches = Effect.gen(function* () {
            assert.deepStrictEqual(yield* found(store, { search: "发票" }), ["run7"])
            assert.deepStrictEqual(yield* found(store, { search: "erId !==" }), ["run8"])
            assert.deepStrictEqual(yield* found(store, { search: '"X9") (use' }), ["run8"])
            assert.deepStrictEqual(yield* found(store, { search: "🎉 aïv" }), ["run9"])
            assert.deepStrictEqual(yield* found(store, { search: "voice run67", limit: 2 }), ["run6799", "run6798"])
            assert.deepStrictEqual(yield* found(store, { search: "run123", order: "oldest", limit: 2 }), [
              "run123",
              "run1230"
            ])
            assert.deepStrictEqual(yield* found(store, { search: "票" }), ["run7"])
            assert.deepStrictEqual(yield* found(store, { search: "fibers", limit: 1 }), [`run${count}`])
          })
          yield* searches
          yield* indexed(at)
          assert.isAbove(yield* rowsOf(sql, "kernai_search_slices"), 0)
          yield* searches
          // The slices are read: without them, the search misses indexed runs.
          yield* sql`DELETE FROM kernai_search_slices`
          assert.deepStrictEqual(yield* found(store, { search: "发票" }), [])
        }),
      60_000
    )

    it.live(
      "finds the new text of an indexed run, and not the old one, whichever version wrote it",
      () =>
        Effect.gen(function* () {
          const at = yield* place
          yield* fill(at, {})
          yield* indexed(at)
          yield* write(at.sql, "run5", "a parcel from köln")
          assert.deepStrictEqual(yield* found(at.store, { search: "Parcel KÖLN" }), ["run5"])
          assert.deepStrictEqual(yield* found(at.store, { search: "run5 invoice", order: "oldest", limit: 1 }), [
            "run50"
          ])
        }),
      60_000
    )

    it.live(
      "finds a run whose block is removed while another block is written",
      () =>
        Effect.gen(function* () {
          const { sql, store } = yield* place
          yield* fill({ sql, store }, { 5: "a parcel from köln" })
          // As after a migration, with a block that has run 5.
          yield* sql`UPDATE kernai_unindexed SET change = 0`
          const [row] = yield* sql<{ readonly run: number }>`
            DELETE FROM kernai_unindexed WHERE run = (SELECT run FROM kernai_runs WHERE id = 'run5') RETURNING run`
          yield* store.list({ search: "nowhere", limit: 1 })
          for (let times = 0; times < 10; times++) yield* Effect.yieldNow
          yield* sql`INSERT INTO kernai_unindexed (run, change) VALUES (${row?.run}, 0)`
          while ((yield* rowsOf(sql, "kernai_unindexed")) >= Grams.blockSize) yield* Effect.sleep("5 millis")
          assert.deepStrictEqual(yield* found(store, { search: "parcel" }), ["run5"])
        }),
      60_000
    )

    it.live(
      "removes the index of removed runs, whichever version removed them, and indexes the others of their block again",
      () =>
        Effect.gen(function* () {
          const at = yield* place
          const { sql, store } = at
          yield* fill(at, {})
          yield* indexed(at)
          const blocks = yield* rowsOf(sql, "kernai_search_blocks")
          const slices = yield* rowsOf(sql, "kernai_search_slices")
          // A process of the version before removes texts and heads, and knows no index.
          const removedBefore = Effect.fnUntraced(function* (most: number) {
            for (const table of ["kernai_words", "kernai_runs"])
              yield* sql`DELETE FROM ${sql(table)} WHERE run <= ${most}`
          })
          yield* removedBefore(300)
          yield* store.remove?.(["run400"]) ?? Effect.void
          assert.strictEqual(yield* rowsOf(sql, "kernai_search_blocks"), blocks)
          yield* removedBefore(Grams.blockSize - 100)
          yield* store.remove?.([`run${Grams.blockSize - 10}`]) ?? Effect.void
          assert.strictEqual(yield* rowsOf(sql, "kernai_search_blocks"), blocks - 1)
          assert.strictEqual(yield* rowsOf(sql, "kernai_search_slices"), (slices / blocks) * (blocks - 1))
          assert.deepStrictEqual(yield* found(store, { search: "invoice run20", order: "oldest", limit: 1 }), [
            "run2000"
          ])
        }),
      60_000
    )
  })

const clientOf = <E>(layer: Layer.Layer<SqlClient.SqlClient, E>) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, SqlClient.SqlClient))

suite(
  "SqlRunStore on SQLite",
  Effect.gen(function* () {
    const filename = `${yield* folder}/runs.db`
    const store = yield* open(SqlRunStore.layerSqlite(filename))
    return { store, sql: yield* clientOf(SqliteClient.layer({ filename })) }
  })
)

describe.skipIf(!Postgres.available)("with a server", () => {
  suite(
    "PgRunStore",
    Effect.gen(function* () {
      const { database, url, ...server } = yield* Postgres.database
      const store = yield* open(PgRunStore.layer({ url: Redacted.make(url), maxConnections: 4 }))
      return { store, sql: yield* clientOf(Postgres.client({ ...server, database })) }
    })
  )
})
