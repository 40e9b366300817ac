/** Stores of runs in a folder. */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import { Effect, FileSystem, Layer, PlatformError } from "effect"
import * as fs from "node:fs"
import { FileRunStore } from "../../src/file/index.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { folder } from "./folder.ts"
import { open, put } from "./runStore.ts"

/** Opens the store of a folder. */
export const at = (directory: string) =>
  open(FileRunStore.layer(directory, { pollInterval: "20 millis" }).pipe(Layer.provide(NodeFileSystem.layer)))

/** A folder with a run of one turn; `journal` is the path of its file. */
export const stored = Effect.gen(function* () {
  const directory = yield* folder
  const run = Journal.begin("run")
  yield* put(yield* at(directory), [run.last(), ...Journal.turn(run)])
  const journal = `${directory}/run.jsonl`
  const lines = () => fs.readFileSync(journal, "utf8").split("\n")
  return { directory, journal, lines, run, turnId: "run:t2" }
})

/** The first record of a run's next turn. */
export const next = (run: Journal.Writer) => run.commit("phase", [{ type: "turn_started", turnId: "run:t2" }])

/** A file system on which some paths cannot be opened, with an error code of Node. */
export const refusing = (
  files: FileSystem.FileSystem,
  why: () => Readonly<Record<string, string>>
): FileSystem.FileSystem => {
  const unless = <A, R>(path: string, opened: Effect.Effect<A, PlatformError.PlatformError, R>) =>
    Effect.suspend(() => {
      const reason = why()[path]
      const method = { _tag: "Unknown", module: "FileSystem", method: "open" } as const
      return reason === undefined
        ? opened
        : Effect.fail(PlatformError.systemError({ ...method, cause: new Error(reason) }))
    })
  return {
    ...files,
    open: (path, options) => unless(path, files.open(path, options)),
    readFileString: (path, encoding) => unless(path, files.readFileString(path, encoding))
  }
}
