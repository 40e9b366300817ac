/**
 * Resolves the agents of a run: the model, the provider, the skills of each, and the agents that it can call or hand
 * the conversation over to. The model sees such agents as skills with a name, a description and an input schema.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as Agents from "../../Agent.ts"
import type { Agent } from "../../Agent.ts"
import type { DialectName } from "../../Dialect.ts"
import { AgentConfigInvalid, type ModelError, type ProgramError, ProviderError } from "../../KernelError.ts"
import * as Models from "../../Model.ts"
import type { Model } from "../../Model.ts"
import { ModelRegistry, modelOf as modelByName } from "../../ModelRegistry.ts"
import { Provider, type ProviderShape } from "../../Provider.ts"
import type { CommonOptions } from "../../RunOptions.ts"
import * as Skills from "../../Skill.ts"
import type { AnySkill } from "../../Skill.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import * as Team from "../agent/team.ts"
import { nameOf, transferTo } from "../agent/team.ts"
import { withOwnSkills } from "../agent/ownSkills.ts"
import type { AnyAgent, AskedAgent, Callable, Callables, Environment, Member, MemberError, Served } from "./run.ts"
import * as Medias from "../../Media.ts"
import * as InstructionBuilder from "../../InstructionBuilder.ts"
import { isRecord, jsonObject } from "../../kit/json.ts"
import { perObject } from "../../kit/perObject.ts"

type OpenAgent<R> = Agent<unknown, AnySkill<unknown>, R, unknown>

/** Returns a lookup for the agents of a team, which resolves each once per run. */
export const membersOf = <R>(
  built: Context.Context<SkillRegistry>,
  first: OpenAgent<R>,
  options: CommonOptions,
  current: Context.Context<R | Scope.Scope>
): Environment["member"] => {
  const open = Team.of<OpenAgent<R>>(first).members
  const team = new Map(Array.from(open, ([name, agent]) => [name, closed(agent, current)] as const))
  const known = new Map<string, Member>()
  const named = Team.byName(Array.from(open.values()))
  const find = (name: string): Effect.Effect<Member, MemberError> => {
    const source = named.get(name)
    const agent = team.get(source?.name ?? name)
    if (agent === undefined || source === undefined) return Effect.fail(unknown(name, first))
    return Effect.flatMap(modelOf(built, current, agent, options.provider, source === first), (found) => {
      const unpriced = needsPrice(first) || needsPrice(agent) ? Agents.unpriced(found.model) : undefined
      if (unpriced !== undefined) return Effect.fail(unpriced)
      const member: Member = {
        ...found,
        agent: inDialect[dialectOf(agent, found.model, found.provider.name)](agent),
        isListed: agent.dialect === "auto",
        skills: withOwnSkills(Context.get(built, SkillRegistry), [source], current),
        callables: callablesOf(agent, team)
      }
      known.set(name, member)
      return Effect.succeed(member)
    })
  }
  return (name) => {
    const member = known.get(name)
    return member === undefined ? find(name) : Effect.succeed(member)
  }
}

const unknown = (name: string, { name: first }: { readonly name: string }) =>
  new AgentConfigInvalid({
    path: "handoffs",
    reason: `the run belongs to the agent '${name}', which '${first}' does not reach`
  })

const needsPrice = ({ budget }: { readonly budget: AnyAgent["budget"] }): boolean => budget.maxCostUsd !== undefined

// ---------------------------------------------------------------- agents

/** Replaces the team of an agent by names, and provides its code with services. */
const closed = <R>(agent: OpenAgent<R>, services: Context.Context<R | Scope.Scope>): AnyAgent => {
  if (isPlain(agent)) return plain(agent)
  const { instructions, provider, until } = agent
  const provide = <A, E>(effect: Effect.Effect<A, E, R | Scope.Scope>): Effect.Effect<A, E> =>
    Effect.updateContext(effect, (current: Context.Context<never>) => Context.merge(services, current))
  return {
    ...agent,
    ...namesOf(agent),
    instructions: typeof instructions === "string" ? instructions : provide(instructions),
    // It belongs to the scope of the run and is released there, whichever fiber needed it first.
    provider: provider === undefined ? undefined : Effect.updateContext(provider, () => services),
    until: until === undefined ? undefined : (answer, reply) => provide(until(answer, reply))
  }
}

/** An agent without code that needs services. */
type PlainAgent<R> = OpenAgent<R> & {
  readonly instructions: string
  readonly provider: undefined
  readonly until: undefined
}

const isPlain = <R>(agent: OpenAgent<R>): agent is PlainAgent<R> =>
  typeof agent.instructions === "string" && agent.provider === undefined && agent.until === undefined

/** One copy per agent, so that values cached by agent are found in its next run. */
const plain = perObject((agent: PlainAgent<unknown>): AnyAgent => ({ ...agent, ...namesOf(agent) }))

/** Replaces agents by their names, which the team looks up. */
const namesOf = <R>({ agents, handoffs }: OpenAgent<R>) => ({
  agents: agents.map(Team.nameOf),
  handoffs: handoffs.map(Team.nameOf)
})

/** Returns the agent with a dialect. One copy per agent and dialect, for the same reason. */
const inDialect = {
  blocks: perObject((agent: AnyAgent): AskedAgent => ({ ...agent, dialect: "blocks" })),
  tools: perObject((agent: AnyAgent): AskedAgent => ({ ...agent, dialect: "tools" }))
}

// ---------------------------------------------------------------- agents to call

/** Looks up the agents that an agent lists in the team. */
const callablesOf = (agent: AnyAgent, team: ReadonlyMap<string, AnyAgent>): Callables => {
  if (agent.agents.length + agent.handoffs.length === 0) return noCallables
  const found = new Map<string, Callable>()
  for (const entry of agent.agents) {
    const other = team.get(nameOf(entry))
    if (other !== undefined) found.set(other.name, { kind: "agent", agent: other, skill: asSkill(other) })
  }
  for (const entry of agent.handoffs) {
    const other = team.get(nameOf(entry))
    if (other !== undefined) {
      found.set(transferTo(other.name), { kind: "handoff", agent: other, skill: asTransfer(other) })
    }
  }
  return found
}

const noCallables: Callables = new Map()

const asSkill = perObject((agent: AnyAgent): AnySkill => (agent.background ? backgrounded : identity)(callOf(agent)))

/** Adds the parameter with which a call runs in the background. */
const backgrounded = (skill: AnySkill): AnySkill => {
  const { inputSchema, listing } = skill
  const background = { type: "boolean", description: `If true, it ${InstructionBuilder.background}.` }
  return {
    ...skill,
    inputSchema: { ...inputSchema, properties: { ...jsonObject(inputSchema["properties"]), background } },
    listing: `${listing}\n  With "background": true in its JSON, it ${InstructionBuilder.background}.`
  }
}

const callOf = (agent: AnyAgent): AnySkill => {
  const input = agent.input ?? Schema.String
  const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(input))
  return Skills.make(agent.name, {
    description: agent.description ?? `Asks the agent '${agent.name}' and returns its answer.`,
    input,
    effects: "idempotent",
    // The text of the first message, and the ids of the media that it names.
    execute: (value) =>
      typeof value === "string"
        ? Effect.succeed([value])
        : Effect.map(encode(value), (json) => [JSON.stringify(json), ...mediaIn(value)])
  })
}

/** Returns the ids of the media in lists and objects of a value. */
const mediaIn = (value: unknown): ReadonlyArray<string> => {
  if (Medias.isMedia(value)) return value.id === undefined ? [] : [value.id]
  if (Array.isArray(value)) return value.flatMap(mediaIn)
  return isRecord(value) ? Object.values(value).flatMap(mediaIn) : []
}

const asTransfer = perObject(({ description, name }: AnyAgent): AnySkill =>
  Skills.make(transferTo(name), {
    description: `Hands the conversation over to the agent '${name}', who answers from then on.${description === undefined ? "" : ` ${description}`}`,
    input: Schema.Struct({ reason: Schema.optionalKey(Schema.String) }),
    effects: "idempotent",
    execute: () => Effect.succeed(`The conversation is handed over to '${name}'.`)
  })
)

// ---------------------------------------------------------------- models

/**
 * Returns the model and provider of an agent: the provider that it brings, else the given one, else the one that its
 * model string names, else the provider in context. The given provider applies to the first agent; others that name a
 * provider use theirs.
 */
const modelOf = (
  built: Context.Context<never>,
  current: Context.Context<Scope.Scope>,
  { model: named, provider: own }: AnyAgent,
  given: ProviderShape | undefined,
  isFirst: boolean
): Effect.Effect<Served, ModelError> => {
  const find = <I, S>(key: Context.Key<I, S>): S | undefined =>
    Context.getOrUndefined(current, key) ?? Context.getOrUndefined(built, key)
  const from = (provider: ProviderShape<ProgramError>) => ({ provider, model: modelFor(named, provider) })
  const registry = find(ModelRegistry)
  if (own !== undefined) {
    return Effect.provideService(Effect.map(own, from), Scope.Scope, Context.get(current, Scope.Scope))
  }
  if (given !== undefined && isFirst) return Effect.succeed(from(given))
  if (typeof named === "string" && named.includes("/") && registry !== undefined) return registry.resolve(named)
  if (given !== undefined) return Effect.succeed(from(given))
  const provider = find(Provider)
  if (provider !== undefined) return Effect.succeed(from(provider))
  return typeof named !== "string" && named.provider !== undefined && registry !== undefined
    ? Effect.map(registry.provider(named.provider), from)
    : Effect.fail(
        new ProviderError({
          provider: "none",
          reason: "not_configured",
          detail: "No provider configured: provide one, or a ModelRegistry for <provider>/<model>"
        })
      )
}

/**
 * Returns the provider of a model chosen for one turn: the run's own, unless the model names another in its `provider`,
 * or as `<provider>/<model>` if a `ModelRegistry` is provided.
 */
export const chooser = (built: Context.Context<never>, current: Context.Context<never>) => {
  const registry = Context.getOrUndefined(current, ModelRegistry) ?? Context.getOrUndefined(built, ModelRegistry)
  return (chosen: Model, own: Served): Effect.Effect<Served, ModelError> => {
    const { provider } = own
    const key = chosen.provider ?? prefixOf(chosen, own, registry !== undefined)
    if (key === undefined) return Effect.succeed({ provider, model: chosen })
    if (key === provider.name || key === own.model.provider) {
      const model = chosen.provider === undefined ? modelFor(chosen.id, provider) : chosen
      return Effect.succeed({ provider, model })
    }
    if (registry === undefined) {
      const detail = `the model '${chosen.id}' is of '${key}': provide a ModelRegistry`
      return Effect.fail(new ProviderError({ provider: key, reason: "not_configured", detail }))
    }
    return chosen.provider === undefined
      ? registry.resolve(chosen.id)
      : Effect.map(registry.provider(key), (provider) => ({ provider, model: chosen }))
  }
}

/** Returns the provider that an id names. Model ids of some providers contain a slash themselves. */
const prefixOf = ({ id }: Model, own: Served, hasRegistry: boolean): string | undefined => {
  const slash = id.indexOf("/")
  return hasRegistry && slash > 0 && !own.model.id.includes("/") ? id.slice(0, slash) : undefined
}

/** Returns the dialect of an agent, which may depend on its model. */
export const dialectOf = ({ dialect }: AnyAgent, model: Model, provider: string): DialectName =>
  dialect === "auto" ? Models.dialectOf({ provider, ...model }) : dialect

/** Returns a model by name. A prefix that names the provider itself is not sent to the vendor. */
const modelFor = (named: Model | string, provider: Pick<ProviderShape, "name">): Model => {
  if (typeof named !== "string") return named
  const own = `${provider.name}/`
  return modelByName(provider.name, named.startsWith(own) ? named.slice(own.length) : named)
}
