/** Modules as Node finds them elsewhere. */
import { Effect, type Scope } from "effect"
import { registerHooks, type RegisterHooksOptions } from "node:module"

const hooked = (hooks: RegisterHooksOptions): Effect.Effect<void, never, Scope.Scope> =>
  Effect.asVoid(
    Effect.acquireRelease(
      Effect.sync(() => registerHooks(hooks)),
      (hooks) => Effect.sync(() => hooks.deregister())
    )
  )

const made = new Map<string, object>()
const madeKey = "kernai/test/modules"
Reflect.set(globalThis, Symbol.for(madeKey), made)

/** Lets modules import a package by its name, as if it were installed and had these exports. */
export const installed = (name: string, exports: object): Effect.Effect<void, never, Scope.Scope> =>
  Effect.suspend(() => {
    made.set(name, exports)
    const names = Object.keys(exports).join(", ")
    const source = `export const { ${names} } = globalThis[Symbol.for("${madeKey}")].get("${name}")`
    const url = `test:${name}`
    return hooked({
      resolve: (specifier, context, next) =>
        specifier === name ? { url, shortCircuit: true } : next(specifier, context),
      load: (asked, context, next) =>
        asked === url ? { format: "module", source, shortCircuit: true } : next(asked, context)
    })
  })

let copies = 0

/** Loads a module anew, with all it imports by a path. */
export const copied = (url: string): Effect.Effect<unknown, never, Scope.Scope> =>
  Effect.suspend(() => {
    const mark = `?copy=${++copies}`
    return Effect.andThen(
      hooked({
        resolve: (specifier, context, next) => {
          const found = next(specifier, context)
          const isOfCopy = context.parentURL?.endsWith(mark) === true && /^\.\.?\//.test(specifier)
          return isOfCopy ? { ...found, url: found.url + mark } : found
        }
      }),
      Effect.promise((): Promise<unknown> => import(url + mark))
    )
  })
