/**
 * Modules of users, imported as Node runs them. They import `kernai` from this package, and may be imported again after
 * they changed.
 */

import * as Effect from "effect/Effect"
import * as Path from "effect/Path"
import { statSync } from "node:fs"
import * as Module from "node:module"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import { usage } from "./exit.ts"
import * as Text from "./terminalText.ts"

/** Imports a file, which may import kernai, and returns its exports. */
export const exportsOf = Effect.fnUntraced(function* (file: string) {
  const path = yield* Path.Path
  const name = Text.excerpt(file, 200)
  const url = yield* Effect.mapError(path.toFileUrl(path.resolve(file)), () => usage(`${name} is not a file`))
  return yield* Effect.mapError(load(url.href), (error) =>
    usage(`${name} cannot be loaded: ${Text.excerpt(error.message, 400)}`)
  )
})

const extension = import.meta.url.endsWith(".ts") ? "ts" : "js"

/**
 * Resolves `kernai` to this package, since a scenario must be created by the code that runs it, wherever its file is.
 * Marks other files with their edition, so that they are imported again.
 */
const resolve: Module.ResolveHookSync = (specifier, context, next) => {
  // Folders are lower-case; modules begin with a capital.
  const found = /^kernai(\/[a-z]+)?(\/[A-Z]\w*)?$/.exec(specifier)
  if (found === null) return marked(next(specifier, context))
  const [, folder = "", module = "/index"] = found
  return { url: new URL(`..${folder}${module}.${extension}`, import.meta.url).href, shortCircuit: true }
}

let hooks: Module.ModuleHooks | undefined

const load = (url: string) =>
  Effect.tryPromise({
    try: (): Promise<{ readonly [name: string]: unknown }> => {
      // Bun has no hooks: files import the `kernai` that is installed beside them there.
      hooks ??= Module.registerHooks?.({ resolve })
      return import(url)
    },
    catch: (error) => ({ message: error instanceof Error ? error.message : String(error) })
  })

/** Counts the times at which modules are imported again. */
let edition = 0

/** The times of change of the imported files, by path. */
const times = new Map<string, number>()

const marked = <A extends { readonly url: string }>(found: A): A => {
  if (edition === 0 || !isOfUser(found.url)) return found
  const url = new URL(found.url)
  watch(fileURLToPath(url))
  url.searchParams.set("edition", String(edition))
  return { ...found, url: url.href }
}

const ownFolder = new URL("..", import.meta.url).href

const isOfUser = (url: string): boolean =>
  url.startsWith("file:") && !url.includes("/node_modules/") && !url.startsWith(ownFolder)

/** Imports modules again from now on, also those that have been imported. Forgets which files are watched. */
export const renew = (): void => {
  edition++
  times.clear()
}

/** Watches a file besides the imported ones. */
export const watch = (file: string): void => {
  times.set(file, timeOf(file))
}

/** Watches the folders of all watched files, because a file that is missing may appear in one of them. */
export const watchFolders = (): void => {
  for (const folder of new Set([...times.keys()].map(dirname))) watch(folder)
}

/** Returns true if a watched file was written, removed or created. */
export const isChanged = (): boolean => [...times].some(([file, time]) => timeOf(file) !== time)

const timeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0
