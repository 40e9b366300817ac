/**
 * Small texts beside the runs of a directory, each in a file of its own, which is replaced as a whole.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { randomUUID } from "node:crypto"
import type { Note, Notes } from "../../RunStore.ts"
import { sortedNotes } from "../../store-kit/StoreRules.ts"
import { failed, isTag, readIfThere } from "./disk.ts"
import * as Name from "./fileName.ts"

/** Creates the notes of a directory. No run has a file whose name begins with a dot. */
export const make = (files: FileSystem.FileSystem, directory: string): Notes => {
  const path = `${directory}/.notes`
  const names = Effect.catchIf(files.readDirectory(path), isTag("NotFound"), () => Effect.succeed([]))
  const noteOf = (name: string) =>
    Effect.map(readIfThere(files, `${path}/${name}`), (text): ReadonlyArray<Note> =>
      text === undefined ? [] : Result.match(decode(text), { onFailure: () => [], onSuccess: (note) => [note] })
    )
  return {
    list: (prefix) =>
      names.pipe(
        Effect.flatMap((all) =>
          Effect.forEach(
            all.filter((name) => name.endsWith(".json")),
            noteOf
          )
        ),
        Effect.map((notes) => sortedNotes(notes.flat(), prefix)),
        Effect.catchTag("PlatformError", failed("read"))
      ),
    set: (key, text) => {
      const file = `${path}/${Name.make(key)}.json`
      const written =
        text === undefined
          ? files.remove(file, { force: true })
          : replace(files, path, file, JSON.stringify({ key, text }))
      return Effect.catchTag(written, "PlatformError", failed("write"))
    },
    changes: { next: nextChange(files, path), recheck: "1 minute" }
  }
}

/**
 * Waits until a note is in place, or removed. Where the folder cannot be watched, as before its first note, it is read
 * after a while, soon enough for a process to answer a roll call.
 */
const nextChange = (files: FileSystem.FileSystem, path: string): Effect.Effect<void> =>
  files.watch(path).pipe(
    Stream.filter((event) => event.path.endsWith(".json")),
    Stream.runHead,
    Effect.catch(() => Effect.sleep("2 seconds")),
    Effect.asVoid
  )

const replace = (files: FileSystem.FileSystem, path: string, file: string, text: string) =>
  Effect.acquireUseRelease(
    Effect.as(files.makeDirectory(path, { recursive: true, mode: 0o700 }), `${file}.${randomUUID()}.tmp`),
    (draft) =>
      Effect.andThen(files.writeFileString(draft, text, { flag: "wx", mode: 0o600 }), files.rename(draft, file)),
    (draft, exit) => (exit._tag === "Success" ? Effect.void : Effect.ignore(files.remove(draft, { force: true })))
  )

const decode = Schema.decodeUnknownResult(
  Schema.fromJsonString(Schema.Struct({ key: Schema.String, text: Schema.String }))
)
