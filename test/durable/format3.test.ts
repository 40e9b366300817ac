import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Stream } from "effect"
import { Message, RunState } from "kernai"
import { FileRunStore } from "kernai/file"
import { SqlRunStore } from "kernai/sql"
import * as fs from "node:fs"
import * as path from "node:path"
import { gunzipSync } from "node:zlib"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { folder } from "../support/folder.ts"
import { open } from "../support/runStore.ts"

const fixtures = path.join(import.meta.dirname, "../fixtures/runs-v3")

const places = {
  files: Effect.map(folder, (directory) => {
    fs.cpSync(path.join(fixtures, "file"), directory, { recursive: true })
    return Layer.provide(FileRunStore.layer(directory), NodeFileSystem.layer)
  }),
  SQLite: Effect.map(folder, (directory) => {
    const filename = `${directory}/runs.db`
    fs.writeFileSync(filename, gunzipSync(fs.readFileSync(path.join(fixtures, "sqlite.db.gz"))))
    return SqlRunStore.layerSqlite(filename)
  })
}

for (const [name, place] of Object.entries(places)) {
  describe(`a conversation that is stored in format 3, in ${name}`, () => {
    it.effect("is read, continued and removed run by run (R-9)", () =>
      Effect.gen(function* () {
        const store = yield* open(yield* place)
        const states: Array<RunState.RunState> = []
        for (let turn = 0; turn < 8; turn++) {
          const state = Option.getOrThrow(yield* store.load(`talk.${turn}`))
          assert.lengthOf(state.input, 2 * turn + 1)
          assert.deepStrictEqual(state.input.slice(0, -1).map(Message.text), states.flatMap(said))
          states.push(state)
        }
        const history = states
          .flatMap(said)
          .map((text, index) => (index % 2 === 0 ? Message.user : Message.assistant)(text))
        const next = Journal.begin("talk.8", { history })
        yield* Journal.put(store, [next.last(), ...Journal.finish(next)])
        yield* store.remove(Array.from({ length: 8 }, (_, turn) => `talk.${turn}`))
        yield* Journal.loads(store, next.last())
        assert.lengthOf(yield* Stream.runCollect(store.read("talk.8")), 7)
      })
    )
  })
}

/** What the user and the model said in a run. */
const said = (state: RunState.RunState): ReadonlyArray<string> => [
  Message.text(state.input.at(-1) ?? Message.user("")),
  RunState.answer(state) ?? ""
]
