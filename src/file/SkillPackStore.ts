/**
 * Reads skill packs from folders on disk.
 *
 * A file is opened only after its real path is known: a plain file inside the skill's real folder, which is inside that
 * of the root, whatever links there are. Every access reads the disk again, up to the requested number of bytes, so
 * edits take effect at once.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import type { PlatformError } from "effect/PlatformError"
import * as SkillPack from "../SkillPack.ts"

/**
 * Where the folders are, and how strictly they are read.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends SkillPack.Options {
  /** Folders that hold skill folders. If two skills have the same name, the one in the first root wins. */
  readonly roots: ReadonlyArray<string>
}

/**
 * Returns the files of these roots, for `SkillPack.make`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const files: (
  roots: ReadonlyArray<string>
) => Effect.Effect<SkillPack.Files, never, FileSystem.FileSystem | Path.Path> = Effect.fnUntraced(function* (roots) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path

  const isInside = (folder: string, real: string): boolean => {
    const from = path.relative(folder, real)
    return from !== "" && from !== ".." && !from.startsWith(`..${path.sep}`) && !path.isAbsolute(from)
  }

  const folders = (root: string) =>
    fs.readDirectoryEntries(root).pipe(
      Effect.map((entries) =>
        entries.flatMap(({ name, type }) => (type === "File" || name.startsWith(".") ? [] : [name]))
      ),
      Effect.mapError((error) => error.message)
    )

  /** The real path of a skill's folder. */
  const placeOf = Effect.fnUntraced(function* (folder: SkillPack.Folder, asked: string) {
    const root = yield* fs.realPath(folder.root)
    const real = yield* fs.realPath(path.join(folder.root, folder.name))
    return isInside(root, real) ? real : yield* refused(asked, "the folder of the skill is outside of its root")
  })

  /** The real path of a file, if it is a plain file inside its skill. */
  const find = Effect.fnUntraced(function* (folder: SkillPack.Folder, asked: string) {
    const place = yield* placeOf(folder, asked)
    const real = yield* fs.realPath(path.join(place, ...asked.split("/")))
    if (!isInside(place, real)) return yield* refused(asked, "it leads out of the skill")
    const info = yield* fs.stat(real)
    if (info.type !== "File") return yield* refused(asked, "it is not a plain file")
    return { real, size: Number(info.size) }
  })

  /** The entries of a skill's folder, if its real path is inside the root. */
  const entriesOf = Effect.fnUntraced(function* (folder: SkillPack.Folder, asked: string) {
    const place = yield* placeOf(folder, asked)
    const real = yield* fs.realPath(path.join(place, ...asked.split("/")))
    return isInside(place, real) ? yield* fs.readDirectoryEntries(real) : []
  })

  const start = Effect.fnUntraced(function* (file: FileSystem.File, bytes: number) {
    const buffer = new Uint8Array(bytes)
    let length = 0
    while (length < bytes) {
      const count = yield* file.read(buffer.subarray(length))
      if (count === 0) break
      length += count
    }
    return buffer.subarray(0, length)
  })

  const read: SkillPack.Files["read"] = (folder, asked, bytes) =>
    Effect.gen(function* () {
      const { real, size } = yield* find(folder, asked)
      const file = yield* fs.open(real, { flag: "r" })
      return Option.some({ bytes: yield* start(file, Math.min(bytes, size)), size })
    }).pipe(
      Effect.scoped,
      Effect.catchTag("PlatformError", (error) =>
        isAbsent(error) ? Effect.succeedNone : Effect.fail(refused(asked, "it cannot be read"))
      )
    )

  const index: SkillPack.Files["index"] = Effect.fnUntraced(function* (folder, under, limit) {
    const found: Array<string> = []
    const left = [under]
    // A folder may hold any number of entries, so reading them is bounded.
    for (let looks = 0; looks < limit && found.length < limit; looks++) {
      const here = left.shift()
      if (here === undefined) break
      const entries = yield* Effect.orElseSucceed(entriesOf(folder, here), () => [])
      for (const { name, type } of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
        if (found.length === limit) break
        const inner = `${here}/${name}`
        if (type === "Directory") left.push(inner)
        else if (type === "File" || Option.isSome(yield* Effect.option(find(folder, inner)))) found.push(inner)
      }
    }
    return found
  })

  return { roots, folders, read, index }
})

/**
 * Provides the skill packs of these folders.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: Options
): Layer.Layer<SkillPack.SkillPackStore, never, FileSystem.FileSystem | Path.Path> =>
  Layer.effect(
    SkillPack.SkillPackStore,
    Effect.map(files(options.roots), (found) => SkillPack.make(found, options))
  )

const refused = (path: string, reason: string) => new SkillPack.InvalidSkillPath({ path, reason })

/** Absent, or below something that is not a folder. */
const isAbsent = (error: PlatformError): boolean => {
  const { reason } = error
  if (reason._tag === "NotFound") return true
  const { cause } = reason
  return cause instanceof Error && "code" in cause && (cause.code === "ENOTDIR" || cause.code === "ENAMETOOLONG")
}
