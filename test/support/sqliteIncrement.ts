/** A process that adds one to a counter in a SQLite file, many times: `node sqliteIncrement.ts <file> <times>`. */
import { NodeRuntime } from "@effect/platform-node"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { SqliteClient } from "../../src/sql/index.ts"

const [filename = "", times = "0"] = process.argv.slice(2)

const increment = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const [row] = yield* sql<{ n: number }>`SELECT n FROM counter`
  yield* Effect.yieldNow
  yield* sql`UPDATE counter SET n = ${(row?.n ?? 0) + 1}`
})

SqlClient.SqlClient.use((sql) => Effect.repeat(sql.withTransaction(increment), { times: Number(times) - 1 })).pipe(
  Effect.provide(SqliteClient.layer({ filename, busyTimeout: "1 minute" })),
  NodeRuntime.runMain
)
