/**
 * Scenarios in files, the models that play them, and their MCP servers.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import type * as Scope from "effect/Scope"
import type { JsonObject } from "../kit/json.ts"
import * as Model from "../Model.ts"
import * as Scenario from "../testing/Scenario.ts"
import { unreadable, usage } from "./exit.ts"
import type { Registries } from "./kernelLayer.ts"
import * as Text from "./terminalText.ts"
import { exportsOf } from "./userModules.ts"

/** Returns the scenario files of paths. Those of a folder are sorted by name. */
export const filesOf = Effect.fnUntraced(function* (paths: ReadonlyArray<string>) {
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const files = yield* Effect.forEach(paths, (name) =>
    Effect.gen(function* () {
      if ((yield* fs.stat(name)).type !== "Directory") return [name]
      const names = (yield* fs.readDirectory(name)).filter(isScenarioFile).toSorted()
      return names.map((file) => path.join(name, file))
    }).pipe(Effect.mapError((error) => unreadable(Text.excerpt(name, 200), error)))
  )
  const found = files.flat()
  return found.length === 0 ? yield* usage(`no scenario in ${Text.excerpt(paths.join(", "), 200)}`) : found
})

/** Returns true if a file of this name may export scenarios. */
const isScenarioFile = (name: string): boolean =>
  /\.m?[jt]s$/.test(name) && !/^[._]/.test(name) && !/\.d\.m?ts$/.test(name)

/** Imports a file and returns the scenarios that it exports. */
export const open = Effect.fnUntraced(function* (file: string) {
  const name = Text.excerpt(file, 200)
  const exports = yield* exportsOf(file)
  const scenarios = new Set(Object.values(exports).flat().filter(Scenario.isScenario))
  return scenarios.size === 0 ? yield* usage(`${name} exports no scenario`) : [...scenarios]
})

const styles: ReadonlyArray<Scenario.Style> = ["whole", "words", "chars"]

/** Runs a scenario with the named model, otherwise offline, otherwise with the default model of Ollama. */
export const runOptions = Effect.fnUntraced(function* (scenario: Scenario.Scenario, named: string | undefined) {
  const services = yield* Effect.context<FileSystem.FileSystem | ChildProcessSpawner>()
  const connect = (mcp: string | JsonObject) => Effect.provideContext(connectServers(mcp), services)
  const name = named ?? (scenario.offline === undefined ? `ollama/${Model.llama31.id}` : undefined)
  if (name === undefined) return { connect }
  const style = styles.find((style) => name === `script/${style}`)
  if (style === undefined) {
    const { resolve } = yield* Effect.promise(() => import("./models.ts"))
    return { connect, cast: yield* resolve(name) }
  }
  const cast = Scenario.offline(scenario, style)
  return cast === undefined
    ? { connect }
    : { connect, cast: yield* Effect.mapError(cast, ({ message }) => usage(message)) }
})

/** Connects the MCP servers of a scenario. Fails, and so skips the scenario, if one is not available. */
const connectServers = Effect.fnUntraced(function* (
  mcp: string | JsonObject
): Effect.fn.Return<
  void,
  { readonly message: string },
  Registries | FileSystem.FileSystem | ChildProcessSpawner | Scope.Scope
> {
  const { layerConfig, McpHub } = yield* Effect.promise(() => import("../mcp/McpHub.ts"))
  const context = yield* Layer.build(Layer.provide(layerConfig(mcp), FetchHttpClient.layer))
  const away = (yield* Context.get(context, McpHub).status).find(({ state }) => state !== "connected")
  if (away === undefined) return
  const why = away.problem === undefined ? "" : `: ${away.problem.message}`
  return yield* Effect.fail({ message: `MCP server '${away.name}' is ${away.state}${why}` })
})
