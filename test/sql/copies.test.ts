import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Option } from "effect"
import { SqlRunStore } from "kernai/sql"
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { folder } from "../support/folder.ts"
import { open } from "../support/runStore.ts"

/** A process that stores runs until the scope closes; `next` waits for the number of the next stored run. */
const writer = (filename: string) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => {
        const script = fileURLToPath(new URL("../support/steadyWriter.ts", import.meta.url))
        const args = ["--conditions=kernai-source", script, filename]
        return spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] })
      }),
      (child) => Effect.sync(() => child.kill("SIGKILL"))
    ),
    (child) => {
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
      return {
        next: Effect.map(
          Effect.promise(() => lines.next()),
          ({ value }) => Number(value)
        )
      }
    }
  )

describe("a SQLite file in use", () => {
  it.live(
    "is copied 15 times, and each copy has every run that was stored before it was made",
    () =>
      Effect.gen(function* () {
        const place = yield* folder
        const filename = `${place}/runs.db`
        const { next } = yield* writer(filename)
        for (let copy = 0; copy < 15; copy++) {
          const stored = yield* next
          const db = new DatabaseSync(filename)
          db.exec(`VACUUM INTO '${place}/copy${copy}.db'`)
          db.close()
          const store = yield* open(SqlRunStore.layerSqlite(`${place}/copy${copy}.db`))
          const heads = yield* store.list()
          assert.includeMembers(
            heads.map(({ runId }) => runId),
            Array.from({ length: stored + 1 }, (_, number) => `run ${number}`)
          )
          for (const { revision, runId } of heads.slice(0, 20)) {
            const loaded = yield* Effect.exit(store.load(runId))
            const state = Exit.isSuccess(loaded) ? Option.getOrUndefined(loaded.value) : undefined
            assert.strictEqual(state?.revision, revision, runId)
          }
        }
      }),
    60_000
  )
})
