/**
 * Reads the files of media, the only place that does.
 *
 * A path is checked as text first, then as the real file it leads to, which must be a plain file inside the media
 * folder. Nothing is opened before that.
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
    : () => Effect.fail("there is no file system here")
})

const reader = (root: string, fs: FileSystem.FileSystem, path: Path.Path): ReadFile =>
  Effect.fnUntraced(function* (file) {
    const limits = yield* Limits.Limits
    if (!isPlain(file, path.sep)) return yield* Effect.fail("its path is not allowed")
    const { folder, real } = yield* Effect.gen(function* () {
      const folder = yield* fs.realPath(root)
      return { folder, real: yield* fs.realPath(path.resolve(folder, file)) }
    }).pipe(Effect.mapError(() => "there is no such file"))
    const inside = path.relative(folder, real)
    if (inside === ".." || inside.startsWith(`..${path.sep}`) || path.isAbsolute(inside)) {
      return yield* Effect.fail("it is outside the media folder")
    }
    return yield* Effect.mapError(Read.bytes(fs, real, limits.fetchedBytes), (refusal) =>
      typeof refusal === "string" ? `it is ${refusal}` : "it cannot be read"
    )
  })

// Percent-encoded separators and dots are refused, not decoded.
const isPlain = (path: string, separator: string): boolean =>
  path.length > 0 &&
  path.length <= 4096 &&
  !/[\p{Cc}%]|:\/\//u.test(path) &&
  (separator === "\\" || !path.includes("\\")) &&
  !path.split(/[/\\]/).includes("..")
