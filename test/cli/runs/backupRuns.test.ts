import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import { join } from "node:path"
import { final } from "../../support/blocks.ts"
import { folder } from "../../support/folder.ts"
import { plan } from "../../support/workflow.ts"
import { kernai } from "../support.ts"

describe("kernai runs backup and restore", () => {
  const stored = Effect.gen(function* () {
    const place = yield* folder
    const script = join(place, "script.json")
    fs.writeFileSync(script, JSON.stringify([plan(["a"]), final("Yes.")]))
    const run = [
      "run",
      "--create",
      "Hello",
      "--script",
      script,
      "--no-skills",
      "--json",
      "--store",
      join(place, "runs.db")
    ]
    const ids: ReadonlyArray<string> = yield* Effect.forEach([1, 2], () =>
      Effect.map(kernai(run), ({ out }) => JSON.parse(out).runId)
    )
    return { place, ids, db: join(place, "runs.db") }
  })
  const shown = (id: string, store: string) =>
    Effect.map(kernai(["runs", "show", id, "--store", store]), ({ out }) => out)

  it.live("copy all runs with their tasks into a store of another kind and back", () =>
    Effect.gen(function* () {
      const { db, ids, place } = yield* stored
      const to = `file:${join(place, "backup")}`
      assert.deepInclude(yield* kernai(["runs", "backup", to, "--store", db]), {
        code: 0,
        out: "copied 4 runs, tasks included\n"
      })
      const restored = join(place, "restored.db")
      // An interrupted copy is repeated.
      for (const _ of [1, 2]) {
        const { code, out } = yield* kernai(["runs", "restore", to, "--store", restored, "--json"])
        assert.deepStrictEqual([code, JSON.parse(out)], [0, { copied: 4, left: [] }])
      }
      for (const id of ids) {
        assert.strictEqual(yield* shown(id, to), yield* shown(id, db))
        assert.strictEqual(yield* shown(id, restored), yield* shown(id, db))
        const replayed = yield* kernai(["runs", "replay", id, "--no-skills", "--store", restored])
        assert.include(replayed.out, "no difference: ")
      }
    })
  )

  it.live("refuse to write into what exists, and to restore a run over another one with its id", () =>
    Effect.gen(function* () {
      const { db, place } = yield* stored
      const taken = yield* kernai(["runs", "backup", db, "--store", db])
      assert.deepInclude(taken, { code: 2 })
      assert.include(taken.error, "already exists")
      const absent = yield* kernai(["runs", "restore", join(place, "none.db"), "--store", db])
      assert.include(absent.error, "there is no store at")
    })
  )

  it.live("say which run is damaged, and copy the others", () =>
    Effect.gen(function* () {
      const { db, ids, place } = yield* stored
      const files = join(place, "files")
      yield* kernai(["runs", "backup", `file:${files}`, "--store", db])
      const journal = fs.readdirSync(files).find((name) => name.endsWith(`${ids[0]}.jsonl`)) ?? ""
      fs.writeFileSync(join(files, journal), fs.readFileSync(join(files, journal), "utf8").replace("Hello", "Hullo"))
      const other = join(place, "other.db")
      const { code, out } = yield* kernai(["runs", "backup", other, "--store", `file:${files}`])
      assert.strictEqual(code, 1)
      assert.include(out, "copied 3 runs")
      assert.include(out, `${ids[0]} is left out`)
      assert.include(out, "checksum is wrong")
      assert.strictEqual(yield* shown(ids[1] ?? "", other), yield* shown(ids[1] ?? "", db))
    })
  )
})
