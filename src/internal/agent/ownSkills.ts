/**
 * Skills that agents hold as values, beside those of a registry.
 */

import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { closeOver } from "../../kit/foreignCode.ts"
import { AgentConfigInvalid } from "../../KernelError.ts"
import { nearestKey } from "../../kit/fault.ts"
import type { AnySkill } from "../../Skill.ts"
import type { SkillRegistryShape } from "../../SkillRegistry.ts"
import { closedSkill } from "../skill/withCall.ts"

/** An agent whose instructions and skill values need services. */
interface Holder<out R> {
  readonly name: string
  readonly instructions: string | Effect.Effect<string, never, R>
  readonly skills: ReadonlyArray<AnySkill<unknown> | string> | "all" | undefined
}

/**
 * Returns a registry with the skill values of agents added, provided with services. Names of the registry win.
 * `Agent.make` guarantees that `R` includes what skill values need.
 */
export function withOwnSkills<R>(
  registry: SkillRegistryShape,
  agents: ReadonlyArray<Holder<R>>,
  services: Context.Context<R>
): SkillRegistryShape
export function withOwnSkills(
  registry: SkillRegistryShape,
  agents: ReadonlyArray<Holder<unknown>>,
  services: Context.Context<unknown>
): SkillRegistryShape {
  const provide = closeOver(services)
  const own = new Map<string, AnySkill>()
  for (const { skills } of agents) {
    for (const skill of skills === undefined || skills === "all" ? [] : skills) {
      if (typeof skill !== "string") own.set(skill.name, closedSkill(skill, provide))
    }
  }
  if (own.size === 0) return registry
  const listed = Array.from(own.values())
  const renamed = new Map(listed.flatMap((skill) => (skill.aliases ?? []).map((alias) => [alias, skill])))
  const isNew = ({ name }: AnySkill) => Option.isNone(registry.find(name))
  return {
    ...registry,
    find: (name) =>
      Option.orElse(registry.find(name), () => Option.fromUndefinedOr(own.get(name) ?? renamed.get(name))),
    all: Effect.map(registry.all, (registered) => {
      const added = listed.filter(isNew)
      return added.length === 0 ? registered : registered.concat(added)
    })
  }
}

/**
 * Fails if an agent of a team lists the name of a skill that nobody has. The tools of a server that is away have no
 * skills; their names begin with the source.
 */
export const checkNames = (
  registry: SkillRegistryShape,
  first: string,
  team: Iterable<Holder<unknown>>
): Effect.Effect<void, AgentConfigInvalid> => {
  for (const { name: agent, skills } of team) {
    if (skills === undefined || skills === "all") continue
    const own = skills.flatMap((skill) => (typeof skill === "string" ? [] : [skill.name, ...(skill.aliases ?? [])]))
    const isKnown = (name: string) => own.includes(name) || Option.isSome(registry.find(name)) || isRemote.test(name)
    const index = skills.findIndex((skill) => typeof skill === "string" && !isKnown(skill))
    const unknown = skills[index]
    if (typeof unknown !== "string") continue
    return Effect.flatMap(registry.all, (registered) => {
      const known = [...own, ...registered.slice(0, mostNames).map(({ name }) => name)]
      const path = `${agent === first ? "" : `${agent}.`}skills[${index}]`
      return Effect.fail(
        new AgentConfigInvalid({ path, reason: `no skill '${unknown}'${nearestKey(unknown, known, "registered")}` })
      )
    })
  }
  return Effect.void
}

/** The names of tools of MCP servers and of agents of other services. */
const isRemote = /^(?:mcp|a2a)_/

/** How many registered names an error compares with an unknown one. */
const mostNames = 200
