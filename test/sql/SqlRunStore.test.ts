import { afterAll, describe } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { SqlRunStore } from "../../src/sql/index.ts"
import { folder, open, suite } from "../support/runStore.ts"

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

describe("SqlRunStore on SQLite", () => {
  const filename = `${Effect.runSync(Scope.provide(folder, scope))}/runs.db`
  suite(open(SqlRunStore.layerSqlite({ filename, synchronous: "normal", pollInterval: "20 millis" })))
})
