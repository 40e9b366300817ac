/** Serves the agents of a module in the studio, and loads the module again when one of its files changes. */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { random } from "../../kit/secrets.ts"
import type { DevFlags } from "../commands/devFlags.ts"
import { usage } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"
import { openBrowser } from "../studio/browser.ts"
import { prepare, serveStudio } from "../studio/serveStudio.ts"
import * as Text from "../terminalText.ts"
import * as UserModules from "../userModules.ts"

/** Prints the address, and serves until the process ends. A module with a mistake leaves the agents as they were. */
export const dev = Effect.fnUntraced(function* (input: DevFlags) {
  const screen = yield* Screen
  const settings = yield* Settings.ofFlags({ ...input, agent: input.agents ?? (yield* usualPlace) })
  const store = yield* Store.builtOf(yield* Store.openNamed(input))
  const token = yield* random
  let served: Served | undefined
  while (true) {
    const before = served
    const started = yield* Clock.currentTimeMillis
    served = yield* load({ settings, store, token, before, port: input.port })
    if (served !== before && served !== undefined) {
      const took = Text.duration((yield* Clock.currentTimeMillis) - started)
      if (before === undefined) screen.out(`${input.json ? Text.json({ url: served.url }) : served.url}\n`)
      screen.progress(`${before === undefined ? "serving" : "reloaded"} ${served.names.join(", ")} (${took})\n`)
      if (input.open && before === undefined) yield* openBrowser(served.url)
    }
    yield* changed
  }
}, Effect.scoped)

/** Agents that are served until their scope closes. */
interface Served {
  readonly scope: Scope.Closeable
  readonly url: string
  readonly names: ReadonlyArray<string>
}

interface Loading {
  readonly settings: Settings.Settings
  readonly store: Store.Store
  readonly token: Redacted.Redacted
  readonly before: Served | undefined
  readonly port: number | undefined
}

/** Serves the agents as they are now. Reports why they cannot be loaded, and returns those before. */
const load = Effect.fnUntraced(function* ({ before, port, settings, store, token }: Loading) {
  const screen = yield* Screen
  const scope = yield* Scope.fork(yield* Effect.scope)
  UserModules.renew()
  UserModules.watch((settings.agent ?? "").replace(/#.*$/s, ""))
  return yield* Effect.gen(function* () {
    const prepared = yield* prepare(settings, store, { names: [] })
    if (before !== undefined) yield* Scope.close(before.scope, Exit.void)
    // Pages that are open find the agents where they were.
    const url = yield* serveStudio(before === undefined ? port : Number(new URL(before.url).port), prepared, { token })
    const next: Served = { scope, url, names: prepared.agents.map(({ name }) => Text.excerpt(name, 40)) }
    return next
  }).pipe(
    Scope.provide(scope),
    Effect.catchCause((cause) => {
      if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
      UserModules.watchFolders()
      const error = Cause.squash(cause)
      screen.error(`kernai: ${Text.flat(error instanceof Error ? error.message : String(error))}\n`)
      return Effect.as(Scope.close(scope, Exit.void), before)
    })
  )
})

const places = ["agents", "agent", "src/agents", "src/agent"].flatMap((name) => [`${name}.ts`, `${name}.js`])

/** Returns the module that agents usually stand in. */
const usualPlace = Effect.gen(function* () {
  const fs = yield* FileSystem.FileSystem
  const found = yield* Effect.findFirst(places, (place) => Effect.orElseSucceed(fs.exists(place), () => false))
  if (Option.isSome(found)) return found.value
  return yield* usage("there is no agents.ts here: name the module, as in kernai dev ./agents.ts")
})

/** Waits until a file of the module was written. */
const changed = Effect.repeat(Effect.sync(UserModules.isChanged), {
  while: (isChanged) => !isChanged,
  schedule: Schedule.spaced("200 millis")
})
