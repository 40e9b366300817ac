/**
 * Creates and migrates the tables of a store, so that a release can be rolled back.
 *
 * A migration only adds: tables, columns that may be empty, indexes, triggers for columns that the version before does not
 * write; or it gives old rows the values that the version before already writes. That version ignores what it does not
 * know and continues to work on the same tables. What nothing uses any more is removed a release later, by a migration
 * whose name begins with `contract`, after which older versions refuse the tables.
 */

import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { StoreError } from "../../KernelError.ts"
import { failed, orLost } from "./sqlFault.ts"

/** The migrations of a table, in order. A name begins with a number. */
type Migrations = { readonly [name: string]: ReadonlyArray<string> }

/** The last migration of a database, and the last one that contracted its tables. */
interface Last {
  readonly migration: number
  readonly contraction: number
}

/**
 * Runs the statements of each migration that has not run yet, and records it in a table. Fails for tables that a newer
 * version contracted. Tables that are up to date are only read, since a role may have no right to change them, and a
 * file may be on a read-only mount.
 */
export const migrate = (
  sql: SqlClient.SqlClient,
  table: string,
  migrations: Migrations
): Effect.Effect<void, StoreError> => {
  const latest = Object.keys(migrations).length
  const last = lastOf(sql, table)
  const found = Effect.catchIf(
    last,
    // There is no such table yet.
    ({ isRetryable }) => !isRetryable,
    () => Effect.succeed<Last>({ migration: 0, contraction: 0 })
  )
  return Effect.catchTag(found, "SqlError", failed("open")).pipe(
    Effect.flatMap((found) =>
      found.migration >= latest
        ? Effect.succeed(found)
        : Effect.andThen(run(sql, table, migrations), Effect.catchTag(last, "SqlError", failed("open")))
    ),
    Effect.flatMap(({ contraction }) => notNewer(contraction, latest))
  )
}

const lastOf = (sql: SqlClient.SqlClient, table: string): Effect.Effect<Last, SqlError> =>
  Effect.map(
    sql<{ readonly id: number; readonly name: string }>`SELECT migration_id AS id, name FROM ${sql(table)}`,
    (rows) => ({
      migration: Math.max(0, ...rows.map(({ id }) => id)),
      contraction: Math.max(0, ...rows.map(({ id, name }) => (name.startsWith("contract") ? id : 0)))
    })
  )

const run = (sql: SqlClient.SqlClient, table: string, migrations: Migrations): Effect.Effect<unknown, StoreError> =>
  Migrator.make({})({
    table,
    loader: Migrator.fromRecord(
      Object.fromEntries(
        Object.entries(migrations).map(([name, statements]) => [
          name,
          Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
        ])
      )
    )
  }).pipe(
    orLost,
    Effect.provideService(SqlClient.SqlClient, sql),
    Effect.catchTag("SqlError", failed("open")),
    Effect.catchTag("MigrationError", ({ cause, message }) =>
      isSqlError(cause)
        ? failed("open")(cause)
        : Effect.fail(new StoreError({ operation: "open", reason: "unavailable", detail: message }))
    )
  )

const notNewer = (last: number, latest: number): Effect.Effect<void, StoreError> =>
  last <= latest
    ? Effect.void
    : Effect.fail(
        new StoreError({
          operation: "open",
          reason: "format",
          detail: `the tables are of version ${last}, newer than ${latest}, the newest that this version of kernai knows; update kernai`
        })
      )
