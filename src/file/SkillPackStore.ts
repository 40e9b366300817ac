/**
 * Reads skill packs from folders on disk.
 *
 * A file is read only if the opened descriptor belongs to a plain file inside the skill's real folder, which is inside
 * that of the root. Every access reads the disk again, up to the requested number of bytes, so edits take effect at
 * once.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as Read from "../kit/files.ts"
import * as SkillPack from "./SkillPack.ts"

/**
 * Options of the store.
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

  const folders = (root: string) =>
    fs.readDirectoryEntries(root).pipe(
      Effect.map(foldersIn),
      Effect.mapError((error) => error.message)
    )

  const placeOf = (folder: SkillPack.Folder, asked: string) => placeIn(fs, path, folder, asked)

  /** Opens a plain file inside its skill. */
  const open = Effect.fnUntraced(function* (folder: SkillPack.Folder, asked: string) {
    const place = yield* placeOf(folder, asked)
    return yield* Read.open(fs, path.join(place, ...asked.split("/")), place)
  })

  /** Lists a folder inside its skill. */
  const entriesOf = Effect.fnUntraced(function* (folder: SkillPack.Folder, asked: string) {
    const place = yield* placeOf(folder, asked)
    return yield* Read.list(fs, path.join(place, ...asked.split("/")), place)
  })

  const read: SkillPack.Files["read"] = (folder, asked, bytes) =>
    Effect.gen(function* () {
      const { file, size } = yield* open(folder, asked)
      return Option.some({ bytes: yield* Read.start(file, Math.min(bytes, size)), size })
    }).pipe(
      Effect.scoped,
      Effect.catch((error) => {
        if (error instanceof SkillPack.InvalidSkillPath) return Effect.fail(error)
        if (typeof error === "string") return Effect.fail(refused(asked, whyNot(error)))
        return Read.isAbsent(error) ? Effect.succeedNone : Effect.fail(refused(asked, "it cannot be read"))
      })
    )

  const index: SkillPack.Files["index"] = Effect.fnUntraced(function* (folder, under, limit) {
    const found: Array<string> = []
    const left = [under]
    // A folder may hold any number of entries, so reading them is bounded.
    for (let looks = 0; looks < limit && found.length < limit; looks++) {
      const here = left.shift()
      if (here === undefined) break
      const entries = yield* Effect.orElseSucceed(entriesOf(folder, here), () => [])
      for (const { name, type } of entries.toSorted(byName)) {
        if (found.length === limit) break
        const inner = `${here}/${name}`
        if (type === "Directory") left.push(inner)
        else if (type === "File" || Option.isSome(yield* Effect.option(Effect.scoped(open(folder, inner)))))
          found.push(inner)
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

/** Returns the real path of a skill's folder, which must be inside that of the root. */
const placeIn = Effect.fnUntraced(function* (
  fs: FileSystem.FileSystem,
  path: Path.Path,
  folder: SkillPack.Folder,
  asked: string
) {
  const root = yield* fs.realPath(folder.root)
  const real = yield* fs.realPath(path.join(folder.root, folder.name))
  return Read.isInside(root, real) ? real : yield* refused(asked, "the folder of the skill is outside of its root")
})

const whyNot = (refusal: string) => (refusal === Read.outside ? "it leads out of the skill" : `it is ${refusal}`)

const byName = (a: { readonly name: string }, b: { readonly name: string }) => (a.name < b.name ? -1 : 1)

const foldersIn = (entries: ReadonlyArray<FileSystem.DirectoryEntry>) =>
  entries.flatMap(({ name, type }) => (type === "File" || name.startsWith(".") ? [] : [name]))

const refused = (path: string, reason: string) => new SkillPack.InvalidSkillPath({ path, reason })
