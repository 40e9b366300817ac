/**
 * Stores reports of scenarios: one file for each, and a list of all.
 *
 * Names never collide: a second run in the same second gets a number. The list is written atomically by one process at
 * a time. A damaged list starts anew, and one of more than `Limits.fetchedBytes` accepts no more reports.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import { badArgument, type PlatformError } from "effect/PlatformError"
import * as Random from "effect/Random"
import type { Json, JsonObject } from "../../internal/base/json.ts"
import * as Read from "../../internal/base/files.ts"
import * as Limits from "../../Limits.ts"
import { type Report, toJson } from "./outcome.ts"

type Files = FileSystem.FileSystem | Path.Path

/** Stores a report in a folder, and returns the path of its file. */
export const save = Effect.fnUntraced(function* (
  report: Report,
  directory: string
): Effect.fn.Return<string, PlatformError, Files> {
  const path = yield* Path.Path
  const json = toJson(report)
  const file = yield* create(directory, nameOf(report), `${JSON.stringify(json, undefined, 2)}\n`)
  const { recording: _, skills: __, ...summary } = json
  yield* append(directory, { ...summary, log: path.basename(file) })
  return file
})

/** Writes a file under a free name: `name.json`, `name_2.json` and so on. Creates the folder if necessary. */
export const create = Effect.fnUntraced(function* (
  directory: string,
  name: string,
  text: string
): Effect.fn.Return<string, PlatformError, Files> {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* fs.makeDirectory(directory, { recursive: true })
  for (let number = 1; ; number++) {
    const file = path.join(directory, number === 1 ? `${name}.json` : `${name}_${number}.json`)
    const written = yield* fs.writeFileString(file, text, { flag: "wx" }).pipe(
      Effect.as(true),
      Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.succeed(false))
    )
    if (written) return file
  }
})

const nameOf = ({ model, scenario, startedAt }: Report): string =>
  `${plain(scenario)}_${plain(model)}_${stamp(startedAt)}`

/** Returns a name that is valid on every file system. */
const plain = (name: string): string => name.replace(/[^A-Za-z0-9-]/g, "_").slice(0, 80)

/** Formats milliseconds since the epoch as `YYYYMMDD_HHMMSS`. */
export const stamp = (at: number): string =>
  new Date(at).toISOString().slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "_")

const append = Effect.fnUntraced(function* (directory: string, summary: JsonObject) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const file = path.join(directory, "manifest.json")
  const change = Effect.gen(function* () {
    const list = [...(yield* entries(fs, file)), summary]
    // Written to a temporary file and moved, so that readers see the old list or the new one.
    const fresh = `${file}.${yield* Random.nextIntBetween(0, 0x7fff_ffff)}`
    yield* fs.writeFileString(fresh, `[\n${list.map((entry) => JSON.stringify(entry)).join(",\n")}\n]\n`)
    yield* fs.rename(fresh, file)
  })
  yield* Effect.acquireUseRelease(
    lock(`${file}.lock`),
    () => change,
    () => Effect.ignore(fs.remove(`${file}.lock`, { recursive: true }))
  )
})

// A list that is too large to read must not be overwritten, so saving fails until it is moved.
const entries = (fs: FileSystem.FileSystem, file: string): Effect.Effect<ReadonlyArray<Json>, PlatformError> =>
  Effect.flatMap(Limits.Limits, ({ fetchedBytes }) =>
    Effect.matchEffect(Read.text(fs, file, fetchedBytes), {
      onSuccess: (text) => Effect.succeed(entriesOf(text)),
      onFailure: (refusal) => (typeof refusal === "string" ? Effect.fail(unread(file, refusal)) : Effect.succeed([]))
    })
  )

const unread = (file: string, refusal: string) =>
  badArgument({ module: "Scenario", method: "save", description: `'${file}' is ${refusal}` })

const entriesOf = (text: string): ReadonlyArray<Json> => {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : []
  } catch {
    return []
  }
}

const patience = 10_000
const pause = 20

/** Locks with a folder that only one process can create. Takes over the lock of a process that died. */
const lock = Effect.fnUntraced(function* (
  directory: string
): Effect.fn.Return<void, PlatformError, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  for (let waited = 0; ; waited += pause) {
    const isMine = yield* fs.makeDirectory(directory).pipe(
      Effect.as(true),
      Effect.catchReason("PlatformError", "AlreadyExists", () => Effect.succeed(false))
    )
    if (isMine) return
    if (waited >= patience) {
      yield* Effect.ignore(fs.remove(directory, { recursive: true }))
      waited = 0
    }
    // Only the wait is interruptible.
    yield* Effect.interruptible(Effect.sleep(pause))
  }
})
