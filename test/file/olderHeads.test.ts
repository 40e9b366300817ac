/** Heads in files that a process of an older version wrote. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fs from "node:fs"
import * as Storable from "../../src/kit/storable.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { at } from "../support/fileRuns.ts"
import { folder } from "../support/folder.ts"
import { put } from "../support/runStore.ts"

describe("FileRunStore", () => {
  it.effect("finds the runs of a model whose heads an older version wrote, and writes these again", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const run = Journal.begin("run")
      yield* put(yield* at(directory), [run.last(), ...Journal.turn(run), ...Journal.finish(run)])
      const file = `${directory}/run.json`
      const { model, sum: _, ...older } = JSON.parse(fs.readFileSync(file, "utf8"))
      fs.writeFileSync(file, Storable.seal(JSON.stringify(older)))
      assert.lengthOf(yield* (yield* at(directory)).list({ model }), 1)
      assert.strictEqual(JSON.parse(fs.readFileSync(file, "utf8")).model, model)
    })
  )
})
