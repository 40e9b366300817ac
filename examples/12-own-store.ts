/**
 * A store of your own: checked by the suite for stores, then used by a kernel whose process stops and another that
 * continues.
 *
 * npm run example -- examples/12-own-store.ts
 */
import { Console, Context, Effect, Layer, Schema } from "effect"
import { Agent, Kernel, RunStore, Skill } from "kernai"
import { MockProvider, RunStoreSuite } from "kernai/testing"
import { type Database, layer, memoryDatabase } from "./keyValueRunStore.ts"

// Each check opens the store several times on one database, as several workers would.
const checked = Effect.gen(function* () {
  const database = memoryDatabase()
  const open = Effect.map(Layer.build(layer(database)), Context.get(RunStore.RunStore))
  for (const { run } of RunStoreSuite.checks(open)) yield* Effect.scoped(run)
  yield* Console.log(
    "the store does what every store must do, and is empty again:",
    [...database.runIds()].length === 0
  )
})

const pay = Skill.make("pay", {
  description: "Pays an invoice",
  input: Schema.Struct({ invoice: Schema.String }),
  effects: "write",
  execute: ({ invoice }) => Effect.succeed(`${invoice} is paid`)
})

const clerk = Agent.make({ instructions: "You pay invoices.", model: "scripted", skills: [pay] })

/** A process: a kernel on its own connection to the database, with a model that says what comes next. */
const process = (database: Database, ...replies: ReadonlyArray<string>) =>
  Kernel.layerWith({ provider: MockProvider.layer(...replies), store: layer(database) })

const program = Effect.gen(function* () {
  yield* checked
  const database = memoryDatabase()
  const runId = yield* Effect.provide(Kernel.submit(clerk, "Pay invoice 7."), process(database))
  yield* Console.log("stored:", [...database.runIds()].length, "run")
  const result = yield* Effect.provide(
    Kernel.resume(clerk, runId),
    process(
      database,
      `<block type="command" name="pay">{"invoice": "7"}</block>`,
      `<block type="final">Invoice 7 is paid.</block>`
    )
  )
  yield* Console.log("another process:", result.text)
})

await Effect.runPromise(program)

// Prints:
// the store does what every store must do, and is empty again: true
// stored: 1 run
// another process: Invoice 7 is paid.
