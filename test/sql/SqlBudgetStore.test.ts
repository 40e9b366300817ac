import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { Budget, BudgetStore } from "kernai"
import { SqlBudgetStore, SqliteClient } from "kernai/sql"
import { budgetStoreSuite } from "../support/budgetStore.ts"
import { folder } from "../support/folder.ts"
import * as Postgres from "../support/postgres.ts"

budgetStoreSuite("SqlBudgetStore on SQLite", SqlBudgetStore.layerSqlite(":memory:"))

const onPg = Effect.map(Postgres.database, ({ url }) => SqlBudgetStore.layerPg({ url: Redacted.make(url) }))
if (Postgres.available) budgetStoreSuite("SqlBudgetStore on PostgreSQL", Layer.unwrap(onPg))

/** Calls that each cost a tenth of the budget, by two processes: how many each of them made. */
const spend = (where: string, layer: Layer.Layer<BudgetStore.BudgetStore, BudgetStore.StoreError>) =>
  Effect.gen(function* () {
    yield* Layer.build(layer)
    const run = (name: string) =>
      Effect.promise(() =>
        promisify(execFile)(process.execPath, [
          "--conditions=kernai-source",
          "test/support/budgetSpender.ts",
          where,
          name
        ])
      )
    const outputs = yield* Effect.all([run("first"), run("second")], { concurrency: 2 })
    const made: ReadonlyArray<number> = outputs.flatMap(({ stdout }) => JSON.parse(stdout))
    assert.strictEqual(made.length, 80)
    assert.strictEqual(made.filter((count) => count === 1).length, 10)
    const budget = Budget.shared("tenant:acme", { costUsd: 1, per: "1 day" })
    const { costUsd } = yield* Effect.provide(
      BudgetStore.BudgetStore.use((store) => store.spent(budget)),
      layer
    )
    assert.closeTo(costUsd, 1, 1e-9)
  }).pipe(Effect.scoped)

describe("a shared budget of two processes", () => {
  it.live(
    "is spent to the cent and no further, in a SQLite file",
    () =>
      Effect.flatMap(folder, (folder) => {
        const file = join(folder, "budgets.db")
        return spend(file, SqlBudgetStore.layerSqlite(file))
      }).pipe(Effect.scoped),
    60_000
  )

  it.live.skipIf(!Postgres.available)(
    "is spent to the cent and no further, in PostgreSQL",
    () =>
      Effect.flatMap(Postgres.database, ({ url }) =>
        spend(url, SqlBudgetStore.layerPg({ url: Redacted.make(url) }))
      ).pipe(Effect.scoped),
    60_000
  )
})

describe("SqlBudgetStore", () => {
  it.effect("does not begin the last period again for a process whose clock was read before it ended", () =>
    Effect.gen(function* () {
      const store = yield* SqlBudgetStore.make
      const sql = yield* SqlClient.SqlClient
      const budget = Budget.shared("k", { tokens: 10, per: "1 day" })
      yield* store.settle(budget, "x", { tokens: 4, costUsd: 0 })
      yield* sql`UPDATE kernai_budgets SET since = since + 86400000`
      assert.strictEqual((yield* store.spent(budget)).tokens, 4)
      yield* sql`UPDATE kernai_budgets SET since = since - 172800000`
      assert.strictEqual((yield* store.spent(budget)).tokens, 0)
    }).pipe(Effect.provide(SqliteClient.layer({ filename: ":memory:" })))
  )

  it.effect("leaves nothing behind of calls that ended or whose process died", () =>
    Effect.gen(function* () {
      const store = yield* SqlBudgetStore.make
      const sql = yield* SqlClient.SqlClient
      const budget = Budget.shared("k", { tokens: 10 })
      const reserve = (id: string, lease: number) => store.reserve(budget, { id, amount: Budget.nothing, lease })
      yield* reserve("ended", 60_000)
      yield* reserve("dead", 0)
      yield* store.settle(budget, "ended", Budget.nothing)
      yield* sql`UPDATE kernai_reservations SET expires_at = expires_at - 60000 WHERE settled = 1`
      yield* reserve("next", 60_000)
      assert.deepStrictEqual(yield* sql`SELECT id FROM kernai_reservations`, [{ id: "next" }])
    }).pipe(Effect.provide(SqliteClient.layer({ filename: ":memory:" })))
  )
})
