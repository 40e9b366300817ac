/**
 * Creates and migrates the tables of a store, so that a release can be rolled back.
 *
 * A migration only adds: tables, columns that may be empty, indexes. The version before ignores what it does not know and
 * continues to work on the same tables. What nothing uses any more is removed a release later, by a migration whose name
 * begins with `contract`, after which older versions refuse the tables.
 */

import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import { isSqlError } from "effect/sql/SqlError"
import { StoreError } from "../../KernelError.ts"
import { failed, orLost } from "./sqlFault.ts"

/**
 * Runs the statements of each migration that has not run yet, and records it in a table. Fails for tables that a newer
 * version contracted.
 */
export const migrate = (
  sql: SqlClient.SqlClient,
  table: string,
  migrations: { readonly [name: string]: ReadonlyArray<string> }
): Effect.Effect<void, StoreError> =>
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
    Effect.andThen(
      sql<{ last: number | null }>`
        SELECT max(migration_id) AS last FROM ${sql(table)} WHERE name LIKE 'contract%'`
    ),
    Effect.provideService(SqlClient.SqlClient, sql),
    Effect.catchTag("SqlError", failed("open")),
    Effect.catchTag("MigrationError", ({ cause, message }) =>
      isSqlError(cause)
        ? failed("open")(cause)
        : Effect.fail(new StoreError({ operation: "open", reason: "unavailable", detail: message }))
    ),
    Effect.flatMap(([row]) => notNewer(row?.last ?? 0, Object.keys(migrations).length))
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
