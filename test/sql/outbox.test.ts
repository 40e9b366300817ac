/** An append in a transaction of the host, with rows of its own. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { Agent, Kernel, RunStore } from "kernai"
import { SqliteClient, SqlRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"

const agent = Agent.make({ instructions: "You greet.", model: "scripted" })

/** A store that adds the end of a run to an outbox in the transaction of its append, or to a table that is missing. */
const layer = (table: { name: string }) => {
  const store = Layer.effect(
    RunStore.RunStore,
    Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const store = yield* SqlRunStore.make()
      yield* sql`CREATE TABLE outbox (run TEXT, revision INTEGER, PRIMARY KEY (run, revision))`
      return RunStore.RunStore.of({
        ...store,
        append: (records, state) => {
          const ends = records.filter(({ events }) => events.some(({ type }) => type === "run_completed"))
          const rows = Effect.forEach(ends, ({ revision, runId }) => {
            const row = sql.insert({ run: runId, revision })
            return sql`INSERT INTO ${sql(table.name)} ${row} ON CONFLICT DO NOTHING`
          })
          return sql.withTransaction(Effect.andThen(store.append(records, state), rows)).pipe(
            Effect.catchTag("SqlError", ({ message }) =>
              Effect.fail(new RunStore.StoreError({ operation: "append", reason: "invalid", detail: message }))
            ),
            Effect.asVoid
          )
        }
      })
    })
  )
  const provider = MockProvider.layer(`<block type="final">Hello.</block>`)
  return Kernel.layerWith({ provider, store }).pipe(Layer.provideMerge(SqliteClient.layer({ filename: ":memory:" })))
}

const outbox = Effect.flatMap(SqlClient.SqlClient, (sql) => sql`SELECT run, revision FROM outbox`)

describe("an outbox in the transaction of an append", () => {
  it.effect("has a row for the end of a run", () =>
    Effect.gen(function* () {
      const { text } = yield* Kernel.run(agent, "Hello!", { runId: "greeting" })
      assert.strictEqual(text, "Hello.")
      assert.deepStrictEqual(yield* outbox, [{ run: "greeting", revision: 7 }])
    }).pipe(Effect.provide(layer({ name: "outbox" })))
  )

  it.effect("undoes the append when its row cannot be stored, and a resumed run adds both", () => {
    const table = { name: "missing" }
    return Effect.gen(function* () {
      const error = yield* Effect.flip(Kernel.run(agent, "Hello!", { runId: "greeting" }))
      assert.strictEqual(error._tag, "StoreError")
      assert.deepStrictEqual(yield* outbox, [])
      const store = yield* RunStore.RunStore
      const stored = yield* store.head("greeting")
      assert.strictEqual(stored._tag === "Some" ? stored.value.status.type : "none", "running")
      table.name = "outbox"
      const { text } = yield* Kernel.resume(agent, "greeting")
      assert.strictEqual(text, "Hello.")
      assert.strictEqual((yield* outbox).length, 1)
    }).pipe(Effect.provide(layer(table)))
  })
})
