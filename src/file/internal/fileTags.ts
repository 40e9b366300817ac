/** Tags of runs in files: a log in which each line holds the tags from then on. */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { StoreError, type Tags } from "../../RunStore.ts"
import { tagsAfter, tagsBy } from "../../store-kit/StoreRules.ts"
import { failed } from "./disk.ts"
import * as Name from "./fileName.ts"
import * as Log from "./lineLog.ts"

/** Creates the tags of a directory. */
export const make = (files: FileSystem.FileSystem, directory: string): Tags =>
  tagsBy((change, tag, runIds) =>
    Effect.forEach(runIds, (runId) => put(files, `${directory}/${Name.make(runId)}`, change, tag), {
      discard: true
    }).pipe(Effect.catchTag("PlatformError", failed("write")))
  )

/** Reads the tags of a run. */
export const read = (files: FileSystem.FileSystem, path: string): Effect.Effect<ReadonlyArray<string>, PlatformError> =>
  Effect.map(last(logOf(files, path)), ({ tags }) => tags)

const put = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  change: "add" | "remove",
  tag: string
) {
  if ((yield* Log.sizeOf(files, `${path}.jsonl`)) === 0) return
  const log = logOf(files, path)
  for (;;) {
    const { n, tags } = yield* last(log)
    if (tags.includes(tag) === (change === "add")) return
    const line = { n: n + 1, tags: tagsAfter(tags, change, tag) }
    const appended = yield* log.append({ first: line.n, last: line.n, text: JSON.stringify(line) })
    if (appended._tag === "Appended") return
    if (appended._tag === "Newer") {
      const detail = `the tags are of the format ${appended.format}, which a newer version wrote`
      return yield* new StoreError({ operation: "write", reason: "format", detail })
    }
  }
})

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Schema.Struct({ tags: Schema.Array(Schema.String) })))

const none: { readonly tags: ReadonlyArray<string> } = { tags: [] }

const last = (log: Log.Log) =>
  Effect.map(Log.newest(log), ({ number, text }) => {
    const { tags } = text === undefined ? none : Result.getOrElse(decode(text), () => none)
    return { n: number, tags }
  })

const logOf = (files: FileSystem.FileSystem, path: string): Log.Log =>
  Log.make(files, `${path}.tags`, { field: "n", format: 0, refusesDamage: false })
