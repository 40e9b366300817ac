/**
 * The agents of a run, each with what it uses: its model, its provider and its skills.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Agent } from "../../Agent.ts"
import * as Agents from "../../Agent.ts"
import type { DialectName } from "../../Dialect.ts"
import { AgentConfigInvalid } from "../../KernelError.ts"
import type { CommonOptions } from "../../RunOptions.ts"
import type { AnySkill } from "../../Skill.ts"
import { SkillRegistry, type SkillRegistryShape } from "../../SkillRegistry.ts"
import * as Team from "../agent/team.ts"
import { closeOver } from "../base/foreignCode.ts"
import { closedSkill } from "../skill/withCall.ts"
import { callablesOf } from "./callables.ts"
import { dialectOf, modelOf } from "./resolveModel.ts"
import type { AnyAgent, AskedAgent, Environment, Member } from "./run.ts"
import type { MemberError } from "./stepErrors.ts"

type OpenAgent<R> = Agent<unknown, AnySkill<unknown>, R, unknown>

/** Finds what the agents of a team use, each once per run. */
export const membersOf = <R>(
  built: Context.Context<SkillRegistry>,
  first: OpenAgent<R>,
  options: CommonOptions,
  current: Context.Context<R>
): Environment["member"] => {
  const open = Team.of<OpenAgent<R>>(first).members
  const team = new Map(Array.from(open, ([name, agent]) => [name, closed(agent, current)] as const))
  const known = new Map<string, Member>()
  const find = (name: string): Effect.Effect<Member, MemberError> => {
    const agent = team.get(name)
    const source = open.get(name)
    if (agent === undefined || source === undefined) return Effect.fail(unknown(name, first))
    return Effect.flatMap(modelOf(built, current, agent, options.provider, source === first), (found) => {
      const unpriced = needsPrice(first) || needsPrice(agent) ? Agents.unpriced(found.model) : undefined
      if (unpriced !== undefined) return Effect.fail(unpriced)
      const member: Member = {
        ...found,
        agent: inDialect(agent, dialectOf(agent, found.model, found.provider.name)),
        isListed: agent.dialect === "auto",
        skills: withOwn(Context.get(built, SkillRegistry), ownSkills(source, current)),
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

/** Provides the instructions of an agent with their services, so that the agent needs nothing any more. */
const closed = <R>(agent: OpenAgent<R>, services: Context.Context<R>): AnyAgent => {
  const { instructions } = agent
  if (typeof instructions !== "string") {
    const own = Effect.updateContext(instructions, (current: Context.Context<never>) =>
      Context.merge(services, current)
    )
    return { ...agent, ...namesOf(agent), instructions: own }
  }
  // One copy per agent, so that whatever is derived from an agent is found again in its next run.
  let plain = plainAgents.get(agent)
  if (plain === undefined) plainAgents.set(agent, (plain = { ...agent, ...namesOf(agent), instructions }))
  return plain
}

/** Agents know each other by their names: the team finds them. */
const namesOf = <R>({ agents, handoffs }: OpenAgent<R>) => ({
  agents: agents.map(Team.nameOf),
  handoffs: handoffs.map(Team.nameOf)
})

/** The agent in a dialect. One copy per agent and dialect, for the same reason. */
const inDialect = (agent: AnyAgent, dialect: DialectName): AskedAgent => {
  let asked = askedAgents[dialect].get(agent)
  if (asked === undefined) askedAgents[dialect].set(agent, (asked = { ...agent, dialect }))
  return asked
}

const askedAgents = {
  blocks: new WeakMap<AnyAgent, AskedAgent>(),
  tools: new WeakMap<AnyAgent, AskedAgent>()
}

const plainAgents = new WeakMap<object, AnyAgent>()

// ---------------------------------------------------------------- skills

/** The skill values of an agent, with the services of the run that calls them. `R` holds them by how agents are made. */
function ownSkills<R>(agent: OpenAgent<R>, services: Context.Context<R>): ReadonlyArray<AnySkill>
function ownSkills(agent: OpenAgent<unknown>, services: Context.Context<unknown>): ReadonlyArray<AnySkill> {
  const { skills } = agent
  if (skills === undefined || skills === "all") return []
  const provide = closeOver(services)
  return skills.flatMap((skill) => (typeof skill === "string" ? [] : [closedSkill(skill, provide)]))
}

/** A registry, and the skill values of all agents of a team that are not in it. */
export const withTeamSkills = <R>(
  registry: SkillRegistryShape,
  first: OpenAgent<R>,
  services: Context.Context<R>
): SkillRegistryShape => {
  const members = Array.from(Team.of<OpenAgent<R>>(first).members.values())
  return withOwn(
    registry,
    members.flatMap((member) => ownSkills(member, services))
  )
}

/** A registry, and the skill values of an agent that are not in it. */
const withOwn = (registry: SkillRegistryShape, skills: ReadonlyArray<AnySkill>): SkillRegistryShape => {
  if (skills.length === 0) return registry
  const own = new Map(skills.map((skill) => [skill.name, skill]))
  const listed = Array.from(own.values())
  const isNew = ({ name }: AnySkill) => Option.isNone(registry.find(name))
  return {
    ...registry,
    find: (name) => Option.orElse(registry.find(name), () => Option.fromUndefinedOr(own.get(name))),
    all: Effect.map(registry.all, (registered) => {
      const added = listed.filter(isNew)
      return added.length === 0 ? registered : registered.concat(added)
    })
  }
}
