/**
 * Writes files whose names never collide: a second file of the same name gets a number.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"

/** Writes a file under a free name: `name.json`, `name_2.json` and so on. Creates the folder if necessary. */
export const createFile = Effect.fnUntraced(function* (
  directory: string,
  name: string,
  text: string
): Effect.fn.Return<string, PlatformError, FileSystem.FileSystem | Path.Path> {
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

/** Formats milliseconds since the epoch as `YYYYMMDD_HHMMSS`. */
export const stamp = (at: number): string =>
  new Date(at).toISOString().slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "_")
