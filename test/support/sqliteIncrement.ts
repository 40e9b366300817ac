/** A process that adds one to a counter in a SQLite file, many times: `node sqliteIncrement.ts <file> <times>`. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqliteClient from "../../src/sql/SqliteClient.ts"

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
