/**
 * Reads the files of media, the only place that does.
 *
 * A path is checked as text first. Then the file is opened, and its descriptor must belong to a plain file inside the
 * media folder before any of it is read.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Limits from "../../Limits.ts"
import * as Read from "../base/files.ts"

/** Reads the bytes at a path. Fails with the reason. */
export type ReadFile = (path: string) => Effect.Effect<Uint8Array, string>

/** Returns a reader of files inside `root`. Without a file system, every read fails. */
export const make: (root: string) => Effect.Effect<ReadFile> = Effect.fnUntraced(function* (root) {
  const fs = yield* Effect.serviceOption(FileSystem.FileSystem)
  const path = yield* Effect.serviceOption(Path.Path)
  return Option.isSome(fs) && Option.isSome(path)
    ? reader(root, fs.value, path.value)
    : () => Effect.fail("no file system is available")
})

const reader = (root: string, fs: FileSystem.FileSystem, path: Path.Path): ReadFile =>
  Effect.fnUntraced(function* (file) {
    const { fetchedBytes } = yield* Limits.Limits
    if (!isPlain(file, path.sep)) return yield* Effect.fail("its path is not allowed")
    const read = Effect.flatMap(fs.realPath(root), (folder) =>
      Read.bytes(fs, path.resolve(folder, file), fetchedBytes, folder)
    )
    return yield* Effect.mapError(read, (refusal) => {
      if (typeof refusal !== "string") return Read.isAbsent(refusal) ? "there is no such file" : "it cannot be read"
      return refusal === Read.outside ? "it is outside the media folder" : `it is ${refusal}`
    })
  })

// Percent-encoded separators and dots are refused, not decoded.
const isPlain = (path: string, separator: string): boolean =>
  path.length > 0 &&
  path.length <= 4096 &&
  !/[\p{Cc}%]|:\/\//u.test(path) &&
  (separator === "\\" || !path.includes("\\")) &&
  !path.split(/[/\\]/).includes("..")
