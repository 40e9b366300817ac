/**
 * All skills by name, whatever their source (AC-12).
 *
 * Every registration is scoped and whole: its skills appear together, are
 * replaced together and leave when its scope closes. Readers look at one
 * immutable snapshot, so nobody ever sees half a reload. A skill keeps the
 * services of the place it was registered in; what the run brings wins.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { closeOver } from "./internal/base/effects.ts"
import type { JsonObject } from "./internal/base/json.ts"
import { misnamed } from "./internal/base/ids.ts"
import { withCall } from "./internal/skill/withCall.ts"
import { DefinitionInvalid, ToolNameConflict } from "./KernelError.ts"
import type { Model } from "./Model.ts"
import type { AnySkill, CallScope, SkillTypes, Source } from "./Skill.ts"

export { DefinitionInvalid, ToolNameConflict }

/**
 * Skills that belong together: a server, a store, a folder.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillSource<out R = never> {
  readonly source: Source
  readonly skills: ReadonlyArray<AnySkill<R>>
}

/**
 * A registered source. It lives as long as the scope it was registered in.
 *
 * @category models
 * @since 0.1.0
 */
export interface Registration<in R = never> {
  /**
   * Puts other skills in the place of all of the source's, at once or not at all. Does nothing once its scope is closed.
   */
  readonly replace: (skills: ReadonlyArray<AnySkill<R>>) => Effect.Effect<void, ToolNameConflict | DefinitionInvalid>
}

/**
 * What a registry does.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillRegistryShape {
  /** Adds a skill until the scope closes. */
  readonly register: <R>(
    skill: AnySkill<R>
  ) => Effect.Effect<void, ToolNameConflict | DefinitionInvalid, R | Scope.Scope>
  /** Adds the skills of a source until the scope closes; the source can replace them as a whole. */
  readonly registerSource: <R = never>(
    source: SkillSource<R>
  ) => Effect.Effect<Registration<R>, ToolNameConflict | DefinitionInvalid, R | Scope.Scope>
  /** The skill of exactly this name. */
  readonly find: (name: string) => Option.Option<AnySkill>
  /** Every skill: native ones as registered, then by MCP server, then of skill packs. */
  readonly all: Effect.Effect<ReadonlyArray<AnySkill>>
}

/**
 * The skills a run can call.
 *
 * @category services
 * @since 0.1.0
 */
export class SkillRegistry extends Context.Service<SkillRegistry, SkillRegistryShape>()("kernai/SkillRegistry") {}

/**
 * A registry of these skills; it needs what they need.
 *
 * A name given twice fails with `ToolNameConflict`. A name no skill may have is
 * a mistake in code and dies with `DefinitionInvalid`.
 *
 * @category layers
 * @since 0.1.0
 */
export function layer<const Skills extends ReadonlyArray<AnySkill<unknown>>>(
  ...skills: Skills
): Layer.Layer<SkillRegistry, ToolNameConflict, SkillTypes.Services<Skills[number]>>
export function layer(
  ...skills: ReadonlyArray<AnySkill<unknown>>
): Layer.Layer<SkillRegistry, ToolNameConflict, unknown> {
  return Layer.effect(
    SkillRegistry,
    Effect.gen(function* () {
      const registry = make()
      for (const source of sources) {
        const group = { source, skills: skills.filter((skill) => skill.source === source) }
        yield* Effect.catchTag(registry.registerSource(group), "DefinitionInvalid", Effect.die)
      }
      return registry
    })
  )
}

/**
 * Who asks: what decides which skills are there for them (AC-18).
 *
 * @category models
 * @since 0.1.0
 */
export interface Access {
  /** The agent's list: undefined for nothing (BP-94). */
  readonly agentSkills: "all" | ReadonlyArray<string> | undefined
  /** Skills that require more than it can do are not there. */
  readonly model?: Model | undefined
  /** The host's own list, over every agent (BP-65). */
  readonly allowed?: ReadonlyArray<string> | undefined
}

/**
 * Tells why a skill is not there for whoever asks: `is not allowed`, `requires vision`.
 *
 * One rule for the listing and for the call, so that what is hidden cannot be
 * called by guessing its name (S-15).
 *
 * @category guards
 * @since 0.1.0
 */
export const allowed = (skill: AnySkill, access: Access): string | undefined => {
  const { agentSkills, model } = access
  if (agentSkills !== "all" && !agentSkills?.includes(skill.name)) return "is not allowed"
  if (access.allowed?.includes(skill.name) === false) return "is not allowed"
  const missing = skill.requires.filter((capability) => model?.capabilities.includes(capability) === false)
  return missing.length === 0 ? undefined : `requires ${missing.join(", ")}`
}

/**
 * The skills that are there for whoever asks, in the order of the agent's list (BP-94).
 *
 * @category combinators
 * @since 0.1.0
 */
export const visible = (skills: ReadonlyArray<AnySkill>, access: Access): ReadonlyArray<AnySkill> => {
  const { agentSkills } = access
  if (agentSkills === undefined) return []
  const byName = new Map(skills.map((skill) => [skill.name, skill]))
  const listed = agentSkills === "all" ? skills : agentSkills.flatMap((name) => byName.get(name) ?? [])
  // Those of a long list are on it: each of them would look for itself in all of it.
  return listed.filter((skill) => allowed(skill, { ...access, agentSkills: "all" }) === undefined)
}

/**
 * The text of `/skills`: what a model is told of these skills (BP-94).
 *
 * @category combinators
 * @since 0.1.0
 */
export const listing = (skills: ReadonlyArray<AnySkill>, model?: Model): string => {
  const shown = visible(skills, { agentSkills: "all", model })
  return shown.length === 0 ? "No skills available." : shown.map((skill) => skill.listing).join("\n")
}

const sources: ReadonlyArray<Source> = ["native", "mcp", "skill-pack"]

const make = (): SkillRegistryShape => {
  /** The skills of each registration, in the order of these. */
  const groups = new Map<object, ReadonlyArray<AnySkill>>()
  const byName = new Map<string, AnySkill>()
  /** Put together when somebody asks. */
  let all: ReadonlyArray<AnySkill> | undefined

  /** Puts skills in the place of those of the same registration, or adds them. */
  const swap = (owner: object, skills: ReadonlyArray<AnySkill>) =>
    Effect.suspend((): Effect.Effect<void, ToolNameConflict | DefinitionInvalid> => {
      const own = new Set(groups.get(owner))
      const added = new Map<string, AnySkill>()
      for (const skill of skills) {
        const { name, source } = skill
        const fault = misnamed(name)
        if (fault !== undefined) return Effect.fail(fault)
        const there = byName.get(name)
        const existing = there === undefined || own.has(there) ? added.get(name) : there
        if (existing !== undefined) {
          return Effect.fail(new ToolNameConflict({ name, existing: existing.source, incoming: source }))
        }
        added.set(name, skill)
      }
      remove(own)
      for (const [name, skill] of added) byName.set(name, skill)
      groups.set(owner, skills)
      return Effect.void
    })

  const remove = (skills: Iterable<AnySkill>) => {
    for (const { name } of skills) byName.delete(name)
    all = undefined
  }

  const registerSource = <R = never>(source: SkillSource<R>) =>
    Effect.gen(function* () {
      const provide = closeOver(yield* Effect.context<R>())
      // Nothing is left for a skill to need.
      const closed = (skill: AnySkill<R>): AnySkill => {
        const { normalize } = skill
        const calls = {
          call: (input: JsonObject, scope: CallScope) => provide(skill.call(input, scope)),
          ...(normalize === undefined ? {} : { normalize: (input: JsonObject) => provide(normalize(input)) })
        }
        return withCall(skill, calls, source.source)
      }
      const registration: Registration<R> = {
        // A source whose scope closed has no place to put anything.
        replace: (skills) =>
          Effect.suspend(() => (groups.has(registration) ? swap(registration, skills.map(closed)) : Effect.void))
      }
      yield* Effect.acquireRelease(
        Effect.suspend(() => swap(registration, source.skills.map(closed))),
        () =>
          Effect.sync(() => {
            remove(groups.get(registration) ?? [])
            groups.delete(registration)
          })
      )
      return registration
    })

  return {
    register: (skill) => Effect.asVoid(registerSource({ source: skill.source, skills: [skill] })),
    registerSource,
    find: (name) => Option.fromUndefinedOr(byName.get(name)),
    all: Effect.sync(
      () =>
        (all ??= sources.flatMap((source) => [...groups.values()].flat().filter((skill) => skill.source === source)))
    )
  }
}
