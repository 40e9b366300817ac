/** Opens a SQLite file by its name, leaves its folder, and writes to it. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { SqliteClient } from "../../src/sql/index.ts"

const [filename = ""] = process.argv.slice(2)

const program = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE t (id TEXT)`
  process.chdir("/")
  yield* Effect.sleep(150)
  yield* sql`INSERT INTO t VALUES ('a')`
})

await Effect.runPromise(Effect.provide(program, SqliteClient.layer({ filename })))
