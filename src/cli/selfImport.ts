/**
 * Resolves `kernai` in a scenario file to this package.
 *
 * A scenario has to be created by the code that runs it, wherever its file is
 * and whatever `kernai` would mean there.
 */

import * as Effect from "effect/Effect"
import { registerHooks } from "node:module"

const extension = import.meta.url.endsWith(".ts") ? "ts" : "js"

let isRegistered = false

const register = Effect.sync(() => {
  if (isRegistered) return
  isRegistered = true
  registerHooks({
    resolve: (specifier, context, next) => {
      // Folders are lower-case, modules begin with a capital.
      const found = /^kernai(\/[a-z]+)?(\/[A-Z]\w*)?$/.exec(specifier)
      if (found === null) return next(specifier, context)
      const [, folder = "", module = "/index"] = found
      return { url: new URL(`..${folder}${module}.${extension}`, import.meta.url).href, shortCircuit: true }
    }
  })
})

/** Imports a module by its URL. */
export const load = (url: string): Effect.Effect<{ readonly [name: string]: unknown }, { readonly message: string }> =>
  Effect.andThen(
    register,
    Effect.tryPromise({
      try: (): Promise<{ readonly [name: string]: unknown }> => import(url),
      catch: (error) => ({ message: error instanceof Error ? error.message : String(error) })
    })
  )
