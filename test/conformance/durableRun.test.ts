/**
 * durable-run.json in the strict tier, on every store: one commit per row of DR-4, and the same ones everywhere.
 */
import { NodeFileSystem } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { RunStore } from "kernai"
import { FileRunStore } from "kernai/file"
import { PgRunStore, SqlRunStore } from "kernai/sql"
import { play, type Scenario } from "../support/durable.ts"
import * as Postgres from "../support/postgres.ts"
import { load, tally } from "../support/vectors.ts"

const { scenarios } = load<{ readonly scenarios: ReadonlyArray<Scenario> }>("durable-run")

const folder = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "kernai-durable-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
)

const stores = {
  memory: RunStore.layerMemory,
  file: Layer.unwrap(Effect.map(folder, (folder) => FileRunStore.layer(folder))).pipe(
    Layer.provide(NodeFileSystem.layer)
  ),
  SQLite: Layer.unwrap(Effect.map(folder, (folder) => SqlRunStore.layerSqlite(join(folder, "runs.db")))),
  PostgreSQL: Layer.unwrap(
    Effect.map(Postgres.database, ({ url }) => PgRunStore.layer({ url: Redacted.make(url), maxConnections: 2 }))
  )
}

for (const [name, store] of Object.entries(stores)) {
  describe.skipIf(name === "PostgreSQL" && !Postgres.available)(`durable-run.json on ${name} (DR-1 to DR-23)`, () => {
    const counted = tally(`durable-run on ${name}`)

    it.layer(store, { timeout: "60 seconds" })((it) => {
      for (const scenario of scenarios) {
        it.effect(`${scenario.id}: ${scenario.title}`, () =>
          Effect.gen(function* () {
            counted.ran()
            assert.deepStrictEqual(yield* play(scenario), [])
          })
        )
      }
    })

    counted.report()
  })
}
