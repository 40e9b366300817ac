/**
 * Lets a module that is loaded here import `kernai`, or a folder or module of it, and get this very package.
 *
 * A file of the user's may stand anywhere, a clone may not be built: whatever
 * `kernai` would mean there, a scenario has to be made by the code that runs it.
 */

import * as Effect from "effect/Effect"
import { registerHooks } from "node:module"

const extension = import.meta.url.endsWith(".ts") ? "ts" : "js"

let isSet = false

const setUp = Effect.sync(() => {
  if (isSet) return
  isSet = true
  registerHooks({
    resolve: (specifier, context, next) => {
      // A folder is written small, a module with a capital; what is internal is neither.
      const found = /^kernai(\/[a-z]+)?(\/[A-Z]\w*)?$/.exec(specifier)
      if (found === null) return next(specifier, context)
      const [, folder = "", module = "/index"] = found
      return { url: new URL(`..${folder}${module}.${extension}`, import.meta.url).href, shortCircuit: true }
    }
  })
})

/** Loads a module by its URL. */
export const load = (url: string): Effect.Effect<{ readonly [name: string]: unknown }, { readonly message: string }> =>
  Effect.andThen(
    setUp,
    Effect.tryPromise({
      try: (): Promise<{ readonly [name: string]: unknown }> => import(url),
      catch: (error) => ({ message: error instanceof Error ? error.message : String(error) })
    })
  )
