/**
 * `kernai store`: prepares a database for stores.
 */

import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Shared from "./flags.ts"

const sql = Command.make(
  "sql",
  {
    schema: Shared.text("schema", "name", "The schema of the tables").pipe(Flag.withDefault("kernai")),
    migrating: Shared.text("migrating", "role", "The role that creates tables").pipe(
      Flag.withDefault("kernai_migrating")
    ),
    running: Shared.text("running", "role", "The role of servers and workers").pipe(Flag.withDefault("kernai_running"))
  },
  (names) =>
    Effect.flatMap(
      Effect.promise(() => import("../storeRoles.ts")),
      (module) => module.printRoles(names)
    )
).pipe(
  Command.withDescription(
    "Print the SQL that creates a schema of PostgreSQL, a role that creates tables in it, and a role that only reads and writes them. Two schemas keep two stores in one database."
  ),
  Command.withShortDescription("Print roles and a schema for PostgreSQL")
)

export const store = Command.make("store").pipe(
  Command.withDescription("Prepare a database for stores."),
  Command.withShortDescription("Prepare a database for stores"),
  Command.withSubcommands([sql])
)
