/**
 * Lets a module that is loaded here import `kernai`, and get this very package.
 *
 * A file of the user's may stand anywhere, a clone may not be built: whatever
 * `kernai` would mean there, a scenario has to be made by the code that runs it.
 *
 * @since 0.1.0
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
      const door = /^kernai(?:\/([a-z]+))?$/.exec(specifier)
      if (door === null) return next(specifier, context)
      const folder = door[1] === undefined ? "" : `${door[1]}/`
      return { url: new URL(`../${folder}index.${extension}`, import.meta.url).href, shortCircuit: true }
    }
  })
})

/**
 * Loads a module by its URL.
 *
 * @category running
 * @since 0.1.0
 */
export const load = (url: string): Effect.Effect<{ readonly [name: string]: unknown }, { readonly message: string }> =>
  Effect.andThen(
    setUp,
    Effect.tryPromise({
      try: (): Promise<{ readonly [name: string]: unknown }> => import(url),
      catch: (error) => ({ message: error instanceof Error ? error.message : String(error) })
    })
  )
