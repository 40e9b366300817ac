/**
 * The stores of the command line: `sqlite:FILE`, `file:FOLDER` or `pg:URL`. Errors never repeat a URL, which may contain a
 * password.
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Redacted from "effect/Redacted"
import type { StoreError } from "../KernelError.ts"
import * as MediaStore from "../MediaStore.ts"
import * as RunStore from "../RunStore.ts"
import { type CommandFailed, orUsage, usage } from "./exit.ts"
import { excerpt } from "./terminalText.ts"

/** The runs of a store, and the media of its runs. */
export interface Store {
  readonly runs: Layer.Layer<RunStore.RunStore, CommandFailed>
  readonly media: Layer.Layer<MediaStore.MediaStore, CommandFailed>
}

/** A store that ends with the process. */
export const memory: Store = { runs: RunStore.layerMemory, media: MediaStore.layerMemory }

/** Reads a plain path as the SQLite file of a store. */
export const fromPath = (text: string): string => (/^[a-z]{2,}:/.test(text) ? text : `sqlite:${text}`)

/** Opens a store that has to exist. */
export const openExisting = (text: string) => open(text, true)

/** Opens a store; a file is created, with its folder. */
export const openOrCreate = (text: string) => open(text, false)

const open = Effect.fnUntraced(function* (
  text: string,
  mustExist: boolean
): Effect.fn.Return<Store, CommandFailed, FileSystem.FileSystem | Path.Path> {
  const [, kind, place = ""] = /^(sqlite|file|pg):(.+)$/s.exec(text) ?? []
  if (mustExist && kind !== "pg" && place !== "") yield* checkExists(place)
  switch (kind) {
    case "sqlite": {
      if (!mustExist) yield* makeFolderOf(place)
      const { layerSqlite } = yield* Effect.promise(() => import("../sql/SqlRunStore.ts"))
      const SqlMediaStore = yield* Effect.promise(() => import("../sql/SqlMediaStore.ts"))
      return storeOf(layerSqlite(place), SqlMediaStore.layerSqlite(place))
    }
    case "file": {
      const files = Layer.succeed(FileSystem.FileSystem, yield* FileSystem.FileSystem)
      const FileRunStore = yield* Effect.promise(() => import("../file/FileRunStore.ts"))
      const FileMediaStore = yield* Effect.promise(() => import("../file/FileMediaStore.ts"))
      return storeOf(Layer.provide(FileRunStore.layer(place), files), Layer.provide(FileMediaStore.layer(place), files))
    }
    case "pg": {
      if (!/^postgres(ql)?:\/\//.test(place)) return yield* usage("--store pg: needs a URL, postgres://host/database")
      const PgRunStore = yield* Effect.promise(() => import("../sql/PgRunStore.ts"))
      const SqlMediaStore = yield* Effect.promise(() => import("../sql/SqlMediaStore.ts"))
      const url = Redacted.make(place)
      return storeOf(PgRunStore.layer({ url }), SqlMediaStore.layerPg({ url }))
    }
    default:
      return yield* usage("--store is sqlite:FILE, file:FOLDER or pg:URL")
  }
})

const storeOf = (
  runs: Layer.Layer<RunStore.RunStore, StoreError>,
  media: Layer.Layer<MediaStore.MediaStore, StoreError>
): Store => ({ runs: orUsage(runs, problem), media: orUsage(media, problem) })

const problem = "the store cannot be opened: "

const makeFolderOf = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* Effect.mapError(fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 }), () =>
    usage(`the folder of ${excerpt(file, 80)} cannot be created`)
  )
})

const checkExists = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const exists = yield* Effect.orElseSucceed(fs.exists(path), () => false)
  if (!exists) return yield* usage(`there is no store at ${excerpt(path, 80)}`)
})
