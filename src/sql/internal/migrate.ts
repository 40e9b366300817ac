/**
 * Making the tables of one store.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Migrator from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import { StoreError } from "../../KernelError.ts"
import { failed } from "./fault.ts"

/** Runs the statements of each migration that has not run, and remembers that in a table of its own. */
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
    Effect.provideService(SqlClient.SqlClient, sql),
    Effect.catchTag("SqlError", failed("open")),
    Effect.catchTag("MigrationError", (error) =>
      Effect.fail(new StoreError({ operation: "open", reason: "unavailable", detail: error.message }))
    ),
    Effect.asVoid
  )
