/**
 * Agents of modules: `--agent ./agents.ts#support`.
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Path from "effect/Path"
import * as Agents from "../Agent.ts"
import { isRecord } from "../kit/json.ts"
import { type CommandFailed, usage } from "./exit.ts"
import * as Text from "./terminalText.ts"
import { exportsOf } from "./userModules.ts"

/** Agents of a module, and the services of their skills. */
export interface Loaded {
  readonly agents: Arr.NonEmptyReadonlyArray<Agents.Agent<unknown>>
  readonly services: Layer.Layer<never, CommandFailed>
}

/**
 * Imports a module and returns one of its agents: that of the export, or else of the agent's name, behind `#`. Without
 * `#`, all of them for a command that runs several, else the default export or the only agent. The export `layer`
 * provides the services of their skills.
 */
export const load = Effect.fnUntraced(function* (
  place: string,
  several: boolean
): Effect.fn.Return<Loaded, CommandFailed, Path.Path> {
  const [, file = place, name] = /^(.*?\.[cm]?[jt]s)(?:#(.*))?$/s.exec(place) ?? []
  const exports = yield* exportsOf(file)
  const agents = several && name === undefined ? allOf(exports) : choose(exports, name)
  if (!Arr.isReadonlyArrayNonEmpty(agents)) {
    return yield* usage(`${Text.excerpt(place, 200)} names no agent: ${choices(exports)}`)
  }
  const problem = agents.map(Agents.problem).find((problem) => problem !== undefined)
  if (problem !== undefined) return yield* usage(Text.excerpt(problem.message, 400))
  return { agents, services: servicesOf(exports["layer"], Text.excerpt(file, 200)) }
})

type Exports = { readonly [name: string]: unknown }

const agentsOf = (exports: Exports): ReadonlyArray<readonly [name: string, agent: Agents.Agent<unknown>]> =>
  Object.entries(exports).flatMap(([name, value]) => (isAgent(value) ? [[name, value] as const] : []))

/** Returns each agent once, whatever exports it has. */
const allOf = (exports: Exports): ReadonlyArray<Agents.Agent<unknown>> => [
  ...new Set(agentsOf(exports).map(([, agent]) => agent))
]

/** Returns the chosen agent, or none. */
const choose = (exports: Exports, name = "default"): ReadonlyArray<Agents.Agent<unknown>> => {
  const found = agentsOf(exports)
  const chosen = found.find(([exported]) => exported === name) ?? found.find(([, agent]) => agent.name === name)
  if (chosen !== undefined) return [chosen[1]]
  const all = allOf(exports)
  return name === "default" && all.length === 1 ? all : []
}

const choices = (exports: Exports): string => {
  const names = agentsOf(exports).map(([name]) => `#${name}`)
  return names.length === 0 ? "the module exports none" : `choose one of ${Text.excerpt(names.join(", "), 300)}`
}

const isAgent = (value: unknown): value is Agents.Agent<unknown> =>
  isRecord(value) && typeof value["name"] === "string" && Array.isArray(value["handoffs"]) && "maxSteps" in value

const isClosedLayer = (value: unknown): value is Layer.Layer<never, unknown> => Layer.isLayer(value)

const servicesOf = (layer: unknown, file: string): Layer.Layer<never, CommandFailed> =>
  isClosedLayer(layer)
    ? Layer.catch(layer, (error) => {
        const reason = error instanceof Error ? error.message : String(error)
        return Layer.effectContext<never, CommandFailed, never>(
          Effect.fail(usage(`the layer of ${file} failed: ${Text.excerpt(reason, 300)}`))
        )
      })
    : Layer.empty
