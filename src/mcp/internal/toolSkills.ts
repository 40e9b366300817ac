/**
 * Registers the tools of all servers as skills, and keeps the status of the servers.
 */

import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { jsonObject } from "../../kit/json.ts"
import { shorten, visible } from "../../kit/text.ts"
import { Limits } from "../../Limits.ts"
import * as Skill from "../../Skill.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import type { HiddenTool, ServerStatus } from "../McpHub.ts"
import * as Call from "./callTool.ts"
import * as Definition from "./definition.ts"
import type { HubServer, HubTool } from "./hubServer.ts"
import * as Names from "./toolNames.ts"

export interface ToolSkills {
  /** Returns the name of a tool's skill, or undefined if it has none. */
  readonly nameOf: (server: string, tool: string) => string | undefined
  /** Updates the registry and the status from the current state of the servers. */
  readonly publish: Effect.Effect<void>
  readonly status: SubscriptionRef.SubscriptionRef<ReadonlyArray<ServerStatus>>
}

/** Registers the skills of the servers until the scope closes, or none if `areSkills` is false. */
export const make = Effect.fnUntraced(function* (
  servers: ReadonlyArray<HubServer>,
  areSkills: boolean
): Effect.fn.Return<ToolSkills, never, Scope.Scope | SkillRegistry> {
  const limits = yield* Limits
  const registry = yield* SkillRegistry
  const status = yield* SubscriptionRef.make<ReadonlyArray<ServerStatus>>([])
  const names = new Map<string, string>()
  const nameOf = (server: string, tool: string) => names.get(keyOf({ server, tool }))

  // One source for all servers, so that their skills change together and stay in the order of the config.
  const registration = yield* Effect.orDie(registry.registerSource({ source: "mcp", skills: [] }))
  // A skill is reused as long as its tool is the same, so that a change to one tool does not recreate the others.
  const made = new WeakMap<McpSchema.Tool, Skill.AnySkill>()
  const skillOf = ({ name, server, tool }: { server: HubServer; tool: HubTool; name: string }): Skill.AnySkill => {
    const before = made.get(tool.tool)
    const skill = before?.name === name ? before : skillOfTool(server, tool, name, limits)
    made.set(tool.tool, skill)
    return skill
  }
  let registered = ""
  const register = Effect.gen(function* () {
    const shown = areSkills ? servers.flatMap((server) => server.shown.map((tool) => ({ server, tool }))) : []
    const tools = shown.map(({ server, tool }) => ({ server: server.name, tool: tool.tool.name }))
    yield* nameAll(names, tools, registry)
    const named = shown.flatMap(({ server, tool }) => {
      const name = nameOf(server.name, tool.tool.name)
      return name === undefined ? [] : [{ server, tool, name }]
    })
    const next = named.map(({ name, tool }) => `${name} ${tool.hash}`).join()
    if (next === registered) return
    yield* registration.replace(named.map(skillOf))
    registered = next
  })
  // Another registration may take a name in between. The tool then gets another name.
  const publish = Effect.tapError(register, ({ name }) => Effect.sync(() => forget(names, name))).pipe(
    Effect.retry({ times: 3 }),
    Effect.flatMap(() =>
      Effect.suspend(() =>
        SubscriptionRef.set(
          status,
          servers.map((server) => statusOf(server, nameOf, limits))
        )
      )
    ),
    Effect.catch((error) => Effect.logError(`the tools of MCP servers were not registered: ${error.message}`)),
    Semaphore.makeUnsafe(1).withPermits(1)
  )
  return { nameOf, publish, status }
})

const keyOf = ({ server, tool }: Names.Remote): string => JSON.stringify([server, tool])

/** Names new tools and keeps the names of the others. The name of a removed tool becomes free. */
const nameAll = Effect.fnUntraced(function* (
  names: Map<string, string>,
  tools: ReadonlyArray<Names.Remote>,
  registry: SkillRegistry["Service"]
) {
  const keys = new Set(tools.map(keyOf))
  for (const key of names.keys()) if (!keys.has(key)) names.delete(key)
  const held = new Set(names.values())
  const fresh = tools.filter((tool) => !names.has(keyOf(tool)))
  const given = yield* Names.assign(fresh, (name) => held.has(name) || Option.isSome(registry.find(name)))
  for (const [index, remote] of fresh.entries()) {
    const name = given[index]
    if (name !== undefined) names.set(keyOf(remote), name)
    else yield* Effect.logWarning(`MCP server '${remote.server}': no name is left for the tool '${remote.tool}'`)
  }
})

const forget = (names: Map<string, string>, lost: string): void => {
  for (const [key, name] of names) if (name === lost) names.delete(key)
}

/** Creates the skill of a tool under its local name. On the wire the tool has its own name. */
const skillOfTool = (server: HubServer, tool: HubTool, name: string, limits: Limits): Skill.AnySkill => {
  const { annotations: hints, description, title } = tool.tool
  const label = hints?.title ?? title
  return Skill.dynamic(name, {
    description: Definition.line(description ?? title ?? "", limits.descriptionLength),
    inputSchema: jsonObject(Definition.readable(tool.parts["inputSchema"] ?? {}, limits.descriptionLength)),
    source: "mcp",
    effects: Call.effectsOf(server, tool),
    annotations: {
      readonly: hints?.readOnlyHint ?? false,
      destructive: hints?.destructiveHint ?? true,
      idempotent: hints?.idempotentHint ?? false,
      openWorld: hints?.openWorldHint ?? true,
      ...(label === undefined ? {} : { title: Definition.line(label, limits.descriptionLength) })
    },
    timeout: server.timeout(limits),
    execute: (input, scope) =>
      Effect.flatMap(Call.callTool(server, tool, input, scope, scope.progress), Call.contentOf(server.name))
  })
}

/** Returns a text for the person who decides: one line without hidden characters, cut at the limit of a description. */
const shownTo = (text: string, { descriptionLength }: Limits): string =>
  visible(shorten(text.trim(), descriptionLength).replace(/\s+/g, " "))

const statusOf = (server: HubServer, nameOf: ToolSkills["nameOf"], limits: Limits): ServerStatus => {
  const { config, info, name, problem, shown, tools } = server
  const unavailable = problem?.reason === "needs_sign_in" ? "needs-sign-in" : "unavailable"
  const skills = shown.flatMap(({ tool }) => {
    const skill = nameOf(name, tool.name)
    return skill === undefined ? [] : [[tool.name, skill] as const]
  })
  const hidden = tools.flatMap(({ hash, hidden: reason, tool }): ReadonlyArray<HiddenTool> =>
    reason === undefined
      ? []
      : [{ server: name, tool: tool.name, reason, description: shownTo(tool.description ?? "", limits), hash }]
  )
  const state = problem === undefined ? "connected" : unavailable
  return { name, transport: config.transport, state, problem, info, skills: new Map(skills), hidden }
}
