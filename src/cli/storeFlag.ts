/**
 * The stores of the command line: `sqlite:FILE` or just the file, `file:FOLDER`, or `pg:URL`. Errors never contain a
 * URL, which may hold a password.
 */

import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as Redacted from "effect/Redacted"
import type { StoreError } from "../KernelError.ts"
import * as MediaStore from "../MediaStore.ts"
import * as RunStore from "../RunStore.ts"
import { type CommandFailed, asFailure, orUsage, usage } from "./exit.ts"
import { excerpt } from "./terminalText.ts"

/** The runs of a store, and the media of its runs. */
export interface Store {
  readonly runs: Layer.Layer<RunStore.RunStore, CommandFailed>
  readonly media: Layer.Layer<MediaStore.MediaStore, CommandFailed>
}

/** The services for opening stores. */
export type Files = FileSystem.FileSystem | Path.Path

/** A store in memory. */
export const memory: Store = { runs: RunStore.layerMemory, media: MediaStore.layerMemory }

/** Opens a store once, for several uses in a scope. */
export const builtOf = Effect.fnUntraced(function* ({ media, runs }: Store) {
  const context = yield* Layer.build(Layer.merge(runs, media))
  return {
    runs: Layer.succeed(RunStore.RunStore, Context.get(context, RunStore.RunStore)),
    media: Layer.succeed(MediaStore.MediaStore, Context.get(context, MediaStore.MediaStore))
  }
})

const ofEnvironment = Effect.orElseSucceed(
  Effect.suspend(() => Config.String("KERNAI_STORE")),
  () => undefined
)

/** Returns a command to paste, with its store unless the environment names it, and without a password. */
export const command = Effect.fnUntraced(function* (words: ReadonlyArray<string>, store: string) {
  return ["kernai", ...words, ...((yield* ofEnvironment) === store ? [] : ["--store", withoutPassword(store)])]
    .map(quoted)
    .join(" ")
})

const withoutPassword = (store: string): string => {
  if (!store.startsWith("pg:")) return store
  const url = URL.parse(store.slice("pg:".length))
  if (url === null || !url.protocol.startsWith("postgres")) return "pg:URL"
  url.password = ""
  url.search = ""
  return `pg:${url.href}`
}

const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)

/** Opens an existing store. */
export const openExisting = (text: string) => open(text, "")

/** Opens an existing store for an effect on its runs, whose failure ends the command. */
export const onRuns = Effect.fnUntraced(function* <A, E extends { readonly _tag: string; readonly message: string }, R>(
  text: string,
  effect: Effect.Effect<A, E, R>
) {
  const { runs } = yield* openExisting(text)
  return yield* effect.pipe(Effect.mapError(asFailure), Effect.provide(runs))
})

/** Opens a store. A file and its folder are created on first use. */
export const openOrCreate = (text: string) => open(text)

/**
 * Opens the store of a command that stores runs. One that `--store` names must exist unless `--create` is given, since a
 * misspelt name would look like an empty store. That of the environment and those in `.kernai`, where commands keep what
 * has no other place, are created on first use.
 */
export const openNamed = Effect.fnUntraced(function* (given: { readonly store: string; readonly create: boolean }) {
  const isUsual = given.store.startsWith(".kernai/") || given.store === (yield* ofEnvironment)
  return yield* open(given.store, given.create || isUsual ? undefined : "; --create creates it")
})

/** Opens a store. With an advice it must exist; the advice is for those whose store does not. */
const open = Effect.fnUntraced(function* (
  text: string,
  advice?: string
): Effect.fn.Return<Store, CommandFailed, Files> {
  const [, kind, place = ""] = /^(?:([a-z]{2,}):)?(.+)$/s.exec(text) ?? []
  if (advice !== undefined && isLocal(kind)) yield* checkExists(place, advice)
  switch (kind) {
    case undefined:
    case "sqlite": {
      const { layerSqlite } = yield* Effect.promise(() => import("../sql/SqlRunStore.ts"))
      const SqlMediaStore = yield* Effect.promise(() => import("../sql/SqlMediaStore.ts"))
      const services = yield* Effect.context<Files>()
      const folder = advice !== undefined ? Effect.void : Effect.provideContext(makeFolderOf(place), services)
      const inFolder = <A, E>(layer: Layer.Layer<A, E>) => Layer.unwrap(Effect.as(folder, layer))
      return storeOf(inFolder(layerSqlite(place)), inFolder(SqlMediaStore.layerSqlite(place)))
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
      return yield* usage("--store must be sqlite:FILE, file:FOLDER or pg:URL")
  }
})

const isLocal = (kind: string | undefined): boolean => kind === undefined || kind === "sqlite" || kind === "file"

const storeOf = (
  runs: Layer.Layer<RunStore.RunStore, StoreError | CommandFailed>,
  media: Layer.Layer<MediaStore.MediaStore, StoreError | CommandFailed>
): Store => ({ runs: orUsage(runs, problem), media: orUsage(media, problem) })

const problem = "the store cannot be opened: "

const makeFolderOf = Effect.fnUntraced(function* (file: string) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  yield* Effect.mapError(fs.makeDirectory(path.dirname(file), { recursive: true, mode: 0o700 }), () =>
    usage(`the folder of ${excerpt(file, 80)} cannot be created`)
  )
})

const checkExists = Effect.fnUntraced(function* (path: string, advice: string) {
  const fs = yield* FileSystem.FileSystem
  const exists = yield* Effect.orElseSucceed(fs.exists(path), () => false)
  if (!exists) return yield* usage(`there is no store at ${excerpt(path, 80)}${advice}`)
})
