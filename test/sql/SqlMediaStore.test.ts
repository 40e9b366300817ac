import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Redacted, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { Media } from "kernai"
import { SqliteClient, SqlMediaStore } from "kernai/sql"
import { open, suite } from "../support/mediaStore.ts"
import { isLong, times } from "../support/longRun.ts"
import * as Postgres from "../support/postgres.ts"
import { folder } from "../support/folder.ts"

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const png = (text: string) => Media.fromBytes(new TextEncoder().encode(text), "image/png")

describe("SqlMediaStore on SQLite", () => {
  const filename = `${Effect.runSync(Scope.provide(folder, scope))}/runs.db`
  suite(open(SqlMediaStore.layerSqlite({ filename, synchronous: "normal" })), { durable: true })
})

describe.skipIf(!Postgres.available)("SqlMediaStore on PostgreSQL", () => {
  const database = Effect.runSync(Effect.cached(Scope.provide(Postgres.database, scope)))
  // The long run tries here what `npm test` tries on SQLite.
  if (isLong) {
    suite(
      Effect.flatMap(database, ({ url }) => open(SqlMediaStore.layerPg({ url: Redacted.make(url) }))),
      { durable: true }
    )
  }

  it.effect(
    "stores a medium of many megabytes, in the long run of the maximal size, and returns it to another process",
    () =>
      Effect.gen(function* () {
        const size = times(20, 5) * 1024 * 1024
        const { url } = yield* database
        const at = open(SqlMediaStore.layerPg({ url: Redacted.make(url) }))
        const { id } = yield* (yield* at).put(Media.fromBytes(new Uint8Array(size), "video/mp4"))
        assert.strictEqual((yield* (yield* at).bytes(id)).length, size)
      }),
    30_000
  )
})

describe("SqlMediaStore", () => {
  const client = SqliteClient.layer({ filename: ":memory:" })

  it.effect("fails with a typed error if a row was altered, or the database no longer exists", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const store = yield* SqlMediaStore.make()
      const { id } = yield* store.put(png("a"))
      const reason = Effect.map(Effect.flip(store.get(id)), (error) => error.reason)
      yield* sql`UPDATE kernai_media SET data = ${new Uint8Array([98])}`
      assert.strictEqual(yield* reason, "corrupt")
      yield* sql`UPDATE kernai_media SET body = '{"lc":1,"type":"constructor"}'`
      assert.strictEqual(yield* reason, "corrupt")
      yield* sql`DROP TABLE kernai_media`
      assert.strictEqual(yield* reason, "unavailable")
    }).pipe(Effect.scoped, Effect.provide(client))
  )

  it.live("retries a put while the database is briefly locked or unavailable", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const store = yield* SqlMediaStore.make()
      yield* sql`ALTER TABLE kernai_media RENAME TO elsewhere`
      const putting = yield* Effect.forkChild(store.put(png("a")), { startImmediately: true })
      yield* Effect.sleep("20 millis")
      yield* sql`ALTER TABLE elsewhere RENAME TO kernai_media`
      const { id } = yield* Fiber.join(putting)
      assert.strictEqual((yield* store.bytes(id)).length, 1)
    }).pipe(Effect.scoped, Effect.provide(client))
  )

  it.effect("does not reveal the password of a server it cannot reach (S-7)", () =>
    Effect.gen(function* () {
      const url = Redacted.make("postgres://user:sk-SECRET@127.0.0.1:1/none")
      const error = yield* Effect.flip(open(SqlMediaStore.layerPg({ url })))
      assert.deepStrictEqual([error._tag, error.reason], ["StoreError", "unavailable"])
      assert.notInclude(JSON.stringify(error) + error.message, "sk-SECRET")
    }).pipe(Effect.scoped)
  )

  it.effect("shares its client with the host's own tables", () =>
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const store = yield* open(SqlMediaStore.layer())
      yield* store.put(png("a"))
      const rows = yield* sql<{ size: number }>`SELECT size FROM kernai_media`
      assert.deepStrictEqual(rows, [{ size: 1 }])
    }).pipe(Effect.scoped, Effect.provide(client))
  )
})
