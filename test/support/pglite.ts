/**
 * A PostgreSQL of its own in this process, with the extension pgvector: PGlite, which npm brings. It has one connection.
 */
import { PGlite } from "@electric-sql/pglite"
import { vector } from "@electric-sql/pglite-pgvector"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Layer, Semaphore, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient, type SqlConnection, SqlError } from "effect/sql"

const failed = (cause: unknown) =>
  new SqlError.SqlError({ reason: new SqlError.UnknownError({ cause, message: String(cause), operation: "execute" }) })

/** A client of a new database. */
export const client = Effect.gen(function* () {
  const db = yield* Effect.acquireRelease(
    Effect.promise(() => PGlite.create({ extensions: { vector } })),
    (db) => Effect.promise(() => db.close())
  )
  const query = (sql: string, params: ReadonlyArray<unknown>) =>
    Effect.tryPromise({ try: () => db.query<Record<string, unknown>>(sql, [...params]), catch: failed })
  const rows: SqlConnection.Connection["execute"] = (sql, params, transform) =>
    Effect.map(query(sql, params), ({ rows }) => (transform === undefined ? rows : transform(rows)))
  const values = (sql: string, params: ReadonlyArray<unknown>) =>
    Effect.map(query(sql, params), ({ rows }) => rows.map((row) => Object.values(row)))
  const connection: SqlConnection.Connection = {
    execute: rows,
    executeRaw: query,
    executeValues: values,
    executeValuesUnprepared: values,
    executeUnprepared: rows,
    executeStream: (sql, params, transform) => Stream.fromArrayEffect(rows(sql, params, transform))
  }
  const one = Semaphore.makeUnsafe(1)
  return yield* SqlClient.make({
    acquirer: Effect.as(
      Effect.acquireRelease(one.take(1), () => one.release(1)),
      connection
    ),
    borrower: (use) => one.withPermit(use(connection)),
    transactionAcquirer: Effect.as(
      Effect.acquireRelease(one.take(1), () => one.release(1)),
      connection
    ),
    compiler: PgClient.makeCompiler(),
    driver: "pg",
    spanAttributes: []
  })
})

/** A client of a new database each time the layer is built. */
export const layer = Layer.effect(SqlClient.SqlClient, client).pipe(Layer.provide(Reactivity.layer))
