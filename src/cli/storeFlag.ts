/**
 * Where the command line keeps runs, and the media of runs: `sqlite:FILE`, `file:FOLDER` or `pg:URL`.
 *
 * Only the store that is meant is loaded. What is wrong with a store is one
 * line, which never repeats a URL: it may hold a password.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Redacted from "effect/Redacted"
import type { StoreError } from "../KernelError.ts"
import type { MediaStore } from "../MediaStore.ts"
import type { RunStore } from "../RunStore.ts"
import { type CommandFailed, usage } from "./exit.ts"
import { excerpt } from "./terminalText.ts"

/** The forms of `--store`, as a refusal tells them. */
const forms = "sqlite:FILE, file:FOLDER or pg:URL"

/** A store of runs that tells in a line why it cannot be opened. */
export type Store = Layer.Layer<RunStore, CommandFailed>

/** A store of the media of runs, likewise. */
export type Media = Layer.Layer<MediaStore, CommandFailed>

/** The store a text means where a plain path is the SQLite file of it. */
export const ofPath = (text: string): string => (/^[a-z]{2,}:/.test(text) ? text : `sqlite:${text}`)

/**
 * The store that a text names.
 *
 * Whoever reads wants one that is there: with `exists`, a file that is not is
 * an error, and none is made.
 */
export const open = Effect.fnUntraced(function* (
  text: string,
  options: { readonly exists: boolean }
): Effect.fn.Return<Store, CommandFailed, FileSystem.FileSystem | Path.Path> {
  const fs = yield* FileSystem.FileSystem
  const [kind, rest] = partsOf(text)
  if (rest === "") return yield* unknown
  switch (kind) {
    case "sqlite": {
      yield* options.exists ? there(rest) : makeFolder(rest)
      const { layerSqlite } = yield* Effect.promise(() => import("../sql/SqlRunStore.ts"))
      return orUsage(layerSqlite(rest))
    }
    case "file": {
      if (options.exists) yield* there(rest)
      const FileRunStore = yield* Effect.promise(() => import("../file/FileRunStore.ts"))
      return orUsage(Layer.provide(FileRunStore.layer(rest), Layer.succeed(FileSystem.FileSystem, fs)))
    }
    case "pg": {
      if (!/^postgres(ql)?:\/\//.test(rest)) return yield* usage("--store pg: is followed by postgres://host/database")
      const PgRunStore = yield* Effect.promise(() => import("../sql/PgRunStore.ts"))
      return orUsage(PgRunStore.layer({ url: Redacted.make(rest) }))
    }
    default:
      return yield* unknown
  }
})

/**
 * The place in a store for the media of its runs: whoever takes a run up finds what was sent with it.
 *
 * For a store that was opened: what its text may be was seen to then.
 */
export const media = Effect.fnUntraced(function* (
  text: string
): Effect.fn.Return<Media, CommandFailed, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const [kind, rest] = partsOf(text)
  switch (kind) {
    case "sqlite": {
      const SqlMediaStore = yield* Effect.promise(() => import("../sql/SqlMediaStore.ts"))
      return orUsage(SqlMediaStore.layerSqlite(rest))
    }
    case "file": {
      const FileMediaStore = yield* Effect.promise(() => import("../file/FileMediaStore.ts"))
      return orUsage(Layer.provide(FileMediaStore.layer(rest), Layer.succeed(FileSystem.FileSystem, fs)))
    }
    case "pg": {
      const SqlMediaStore = yield* Effect.promise(() => import("../sql/SqlMediaStore.ts"))
      return orUsage(SqlMediaStore.layerPg({ url: Redacted.make(rest) }))
    }
    default:
      return yield* unknown
  }
})

// ---------------------------------------------------------------- helpers

/** The kind of a store and where it is. */
const partsOf = (text: string): readonly [kind: string, rest: string] => {
  const colon = text.indexOf(":")
  return [text.slice(0, Math.max(0, colon)), text.slice(colon + 1)]
}

/** Makes the folder a file will be in. */
const makeFolder = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* Effect.mapError(fs.makeDirectory(path.dirname(file), { recursive: true }), () =>
    usage(`the folder of ${excerpt(file, 80)} cannot be made`)
  )
})

const unknown = usage(`--store is ${forms}`)

const there = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const found = yield* Effect.orElseSucceed(fs.exists(path), () => false)
  if (!found) return yield* usage(`there is no store at ${excerpt(path, 80)}`)
})

const orUsage = <Service>(layer: Layer.Layer<Service, StoreError>): Layer.Layer<Service, CommandFailed> =>
  Layer.catch(layer, (error) =>
    Layer.effectContext<Service, CommandFailed, never>(
      Effect.fail(usage(`the store cannot be opened: ${excerpt(error.message, 300)}`))
    )
  )
