/**
 * The tools of all servers as skills: named, registered together, and told in the status of their servers (AC-13).
 */

import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { Limits } from "../../Limits.ts"
import type { AnySkill } from "../../Skill.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import type { HiddenTool, ServerStatus } from "../McpHub.ts"
import * as Names from "./toolNames.ts"
import type { Station, StationTool } from "./mcpServer.ts"
import * as ToolSkill from "./toolSkill.ts"

/** The skills of a hub. */
export interface ToolSkills {
  /** The skill that a tool is; undefined while it is none. */
  readonly nameOf: (server: string, tool: string) => string | undefined
  /** Brings the registry and the status to where the servers are. */
  readonly publish: Effect.Effect<void>
  readonly status: SubscriptionRef.SubscriptionRef<ReadonlyArray<ServerStatus>>
}

/** The skills of these servers, for the time of a scope; none where `areSkills` is false. */
export const make = Effect.fnUntraced(function* (
  stations: ReadonlyArray<Station>,
  areSkills: boolean
): Effect.fn.Return<ToolSkills, never, Scope.Scope | SkillRegistry> {
  const limits = yield* Limits
  const registry = yield* SkillRegistry
  const status = yield* SubscriptionRef.make<ReadonlyArray<ServerStatus>>([])
  const names = new Map<string, string>()
  const nameOf = (server: string, tool: string) => names.get(keyOf(server, tool))

  // One source for all servers, so that their skills change together and stay in the order of the config.
  const registration = yield* Effect.orDie(registry.registerSource({ source: "mcp", skills: [] }))
  // One of thousands that is shown now makes no other anew.
  const made = new WeakMap<McpSchema.Tool, AnySkill>()
  const skillOf = ({ name, station, tool }: Named): AnySkill => {
    const before = made.get(tool.tool)
    if (before?.name === name) return before
    const skill = ToolSkill.make(station, tool, name, limits)
    made.set(tool.tool, skill)
    return skill
  }
  let registered = ""
  const register = Effect.gen(function* () {
    const shown = areSkills ? stations.flatMap((station) => station.shown.map((tool) => ({ station, tool }))) : []
    yield* nameAll(
      names,
      shown.map(({ station, tool }) => ({ server: station.name, tool: tool.tool.name })),
      registry
    )
    const named = shown.flatMap(({ station, tool }) => {
      const name = nameOf(station.name, tool.tool.name)
      return name === undefined ? [] : [{ station, tool, name }]
    })
    // Whoever follows the registry is not told of changes that are none.
    const next = named.map(({ name, tool }) => `${name} ${tool.hash}`).join()
    if (next === registered) return
    yield* registration.replace(named.map(skillOf))
    registered = next
  })
  const publish = Effect.gen(function* () {
    // Somebody may take a name between the look and the registration: then it is another one.
    const losing = Effect.tapError(register, ({ name }) => Effect.sync(() => forget(names, name)))
    yield* Effect.retry(losing, { times: 3 })
    yield* SubscriptionRef.set(
      status,
      stations.map((station) => statusOf(station, nameOf))
    )
  }).pipe(
    Effect.catch((error) => Effect.logError(`the tools of MCP servers were not registered: ${error.message}`)),
    Semaphore.makeUnsafe(1).withPermits(1)
  )
  return { nameOf, publish, status }
})

/** A tool and the name of its skill. */
interface Named {
  readonly station: Station
  readonly tool: StationTool
  readonly name: string
}

const keyOf = (server: string, tool: string): string => JSON.stringify([server, tool])

/** Gives every tool a name and keeps those that were given; a tool that is gone gives its name back. */
const nameAll = Effect.fnUntraced(function* (
  names: Map<string, string>,
  tools: ReadonlyArray<Names.Remote>,
  registry: SkillRegistry["Service"]
) {
  const keys = new Set(tools.map(({ server, tool }) => keyOf(server, tool)))
  for (const key of names.keys()) if (!keys.has(key)) names.delete(key)
  const held = new Set(names.values())
  const fresh = tools.filter(({ server, tool }) => !names.has(keyOf(server, tool)))
  const given = yield* Names.assign(fresh, (name) => held.has(name) || Option.isSome(registry.find(name)))
  for (const [index, { server, tool }] of fresh.entries()) {
    const name = given[index]
    if (name !== undefined) names.set(keyOf(server, tool), name)
    else yield* Effect.logWarning(`MCP server '${server}': no name is left for the tool ${JSON.stringify(tool)}`)
  }
})

const forget = (names: Map<string, string>, lost: string): void => {
  for (const [key, name] of names) if (name === lost) names.delete(key)
}

const statusOf = (station: Station, nameOf: ToolSkills["nameOf"]): ServerStatus => ({
  name: station.name,
  transport: station.server.transport,
  state:
    station.problem === undefined
      ? "connected"
      : station.problem.reason === "needs_sign_in"
        ? "needs-sign-in"
        : "unavailable",
  problem: station.problem,
  info: station.info,
  skills: new Map(
    station.shown.flatMap(({ tool }) => {
      const name = nameOf(station.name, tool.name)
      return name === undefined ? [] : [[tool.name, name] as const]
    })
  ),
  hidden: station.tools.flatMap(({ hash, hidden, tool }): ReadonlyArray<HiddenTool> =>
    hidden === undefined
      ? []
      : [{ server: station.name, tool: tool.name, reason: hidden, description: tool.description ?? "", hash }]
  )
})
