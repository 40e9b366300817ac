import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import * as net from "node:net"
import { isLong } from "../support/longRun.ts"
import * as Postgres from "../support/postgres.ts"
import { sqlSuite } from "../support/sqlSuite.ts"

const open = (database: Omit<Postgres.Database, "url">) =>
  Effect.map(Layer.build(Postgres.client(database)), (context) => Context.get(context, SqlClient.SqlClient))

const accepts = (server: Postgres.Server) =>
  Effect.callback<boolean>((resume) => {
    const socket = net.connect(server.port, server.host)
    socket.once("connect", () => resume(Effect.succeed(true)))
    socket.once("error", () => resume(Effect.succeed(false)))
    return Effect.sync(() => socket.destroy())
  })

describe.skipIf(!Postgres.available)("@effect/sql-pg", () => {
  sqlSuite("PgClient", Postgres.layer)

  it.effect(
    "rejects U+0000 in text with a typed error, unlike SQLite",
    () =>
      Effect.gen(function* () {
        const sql = yield* open(yield* Postgres.database)
        yield* sql`CREATE TABLE t (body TEXT)`
        const error = yield* Effect.flip(sql`INSERT INTO t ${sql.insert({ body: "a\u0000b" })}`)
        assert.strictEqual(error._tag, "SqlError")
        assert.isFalse(error.isRetryable)
        assert.deepStrictEqual(yield* sql`SELECT body FROM t`, [])
      }),
    30_000
  )
})

describe.skipIf(!Postgres.available)("the PostgreSQL server of the tests", () => {
  it.effect(
    "gives every test its own database, which several clients may share",
    () =>
      Effect.gen(function* () {
        const database = yield* Postgres.database
        const one = yield* open(database)
        const two = yield* open(database)
        yield* one`CREATE TABLE t (id TEXT)`
        yield* one`INSERT INTO t VALUES ('a')`
        assert.deepStrictEqual(yield* two`SELECT id FROM t`, [{ id: "a" }])
        const other = yield* open(yield* Postgres.database)
        assert.strictEqual((yield* Effect.flip(other`SELECT id FROM t`)).reason._tag, "SqlSyntaxError")
      }),
    30_000
  )

  // A server of its own takes a second to start.
  if (isLong) {
    it.effect(
      "syncs to disk when durable, and stops with its scope",
      () =>
        Effect.gen(function* () {
          const server = yield* Effect.scoped(
            Effect.gen(function* () {
              const server = yield* Postgres.start({ durable: true })
              const sql = yield* open({ ...server, database: "postgres" })
              assert.deepStrictEqual(yield* sql`SHOW fsync`, [{ fsync: "on" }])
              assert.isTrue(yield* accepts(server))
              return server
            })
          )
          assert.isFalse(yield* accepts(server))
        }),
      30_000
    )
  }
})
