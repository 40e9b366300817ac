/**
 * Writing a file whose folder may not be there yet.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"

/** Opens or writes the file at a path; a folder that is missing is made, and then it is done again. */
export const inMadeFolder = <A, R>(
  files: FileSystem.FileSystem,
  path: string,
  write: Effect.Effect<A, PlatformError, R>,
  options?: { readonly mode: number }
): Effect.Effect<A, PlatformError, R> =>
  Effect.catchIf(
    write,
    ({ reason }) => reason._tag === "NotFound",
    (error) => {
      const folder = path.replace(/[/\\][^/\\]*$/, "")
      return folder === "" || folder === path
        ? Effect.fail(error)
        : Effect.andThen(files.makeDirectory(folder, { recursive: true, ...options }), write)
    }
  )
