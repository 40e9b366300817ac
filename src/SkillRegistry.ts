/**
 * All skills by name, whatever their source.
 *
 * Every registration is scoped and atomic: its skills are added together, replaced together, and removed when its scope
 * closes. A skill keeps the services of the place it was registered in; those of the run take precedence.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { perObject } from "./kit/perObject.ts"
import { closeOver } from "./kit/foreignCode.ts"
import { jsonObject } from "./kit/json.ts"
import { wordsOf } from "./kit/text.ts"
import { closedSkill, withCall } from "./internal/skill/withCall.ts"
import { misnamed } from "./internal/words/ids.ts"
import { DefinitionInvalid, ToolNameConflict } from "./KernelError.ts"
import type { Model } from "./Model.ts"
import type { AnySkill, SkillTypes, Source } from "./Skill.ts"

export { DefinitionInvalid, ToolNameConflict }

/**
 * Skills that belong together: those of a server, a store or a folder.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillSource<out R = never> {
  readonly source: Source
  readonly skills: ReadonlyArray<AnySkill<R>>
}

/**
 * A registered source. It lives until the scope it was registered in closes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Registration<in R = never> {
  /**
   * Replaces all skills of the source at once, or fails and changes nothing. Does nothing after the scope has closed.
   */
  readonly replace: (skills: ReadonlyArray<AnySkill<R>>) => Effect.Effect<void, ToolNameConflict | DefinitionInvalid>
}

/**
 * The service of `SkillRegistry`.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillRegistryShape {
  /** Adds a skill until the scope closes. */
  readonly register: <R>(
    skill: AnySkill<R>
  ) => Effect.Effect<void, ToolNameConflict | DefinitionInvalid, R | Scope.Scope>
  /** Adds the skills of a source until the scope closes. The source can replace them as a whole. */
  readonly registerSource: <R = never>(
    source: SkillSource<R>
  ) => Effect.Effect<Registration<R>, ToolNameConflict | DefinitionInvalid, R | Scope.Scope>
  /** Returns the skill with exactly this name, or else the one that had it before (`aliases`). */
  readonly find: (name: string) => Option.Option<AnySkill>
  /**
   * All skills: native ones in order of registration, then those of MCP servers, of agents of other services, and of
   * skill packs.
   */
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
 * Creates a registry of skills, which requires their services.
 *
 * A repeated name fails with `ToolNameConflict`. A name no skill can have is a bug and dies with `DefinitionInvalid`.
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
 * The facts that decide which skills an agent can use.
 *
 * @category models
 * @since 0.1.0
 */
export interface Access {
  /** The agent's list: undefined for none. */
  readonly agentSkills: "all" | ReadonlyArray<string> | undefined
  /** Skills that require more capabilities are not available. */
  readonly model?: Model | undefined
  /** The host's own list, which applies to every agent. */
  readonly allowed?: ReadonlyArray<string> | undefined
}

/**
 * Returns why a skill is not available: `is not allowed`, `requires vision`.
 *
 * Listing and calls share this rule, so a hidden skill cannot be called by guessing its name.
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
 * Returns the available skills in the order of the agent's list.
 *
 * @category combinators
 * @since 0.1.0
 */
export const visible: {
  (access: Access): (skills: ReadonlyArray<AnySkill>) => ReadonlyArray<AnySkill>
  (skills: ReadonlyArray<AnySkill>, access: Access): ReadonlyArray<AnySkill>
} = /* @__PURE__ */ dual(2, (skills: ReadonlyArray<AnySkill>, access: Access): ReadonlyArray<AnySkill> => {
  const { agentSkills } = access
  if (agentSkills === undefined) return []
  const byName = new Map(skills.map((skill) => [skill.name, skill]))
  const listed = agentSkills === "all" ? skills : agentSkills.flatMap((name) => byName.get(name) ?? [])
  // These are on the list already; looking up each one in a long list would take quadratic time.
  return listed.filter((skill) => allowed(skill, { ...access, agentSkills: "all" }) === undefined)
})

/**
 * Returns at most `limit` skills whose names, descriptions and inputs match the words, best first. Returns none if no
 * word matches.
 *
 * @category getters
 * @since 0.1.0
 */
export const search = (
  skills: ReadonlyArray<AnySkill>,
  words: string,
  limit: number = usualHits
): ReadonlyArray<AnySkill> => {
  const asked = termsOf(words)
  const indexed = skills.map((skill) => ({ skill, terms: indexOf(skill) }))
  const weights = asked.map((term) => {
    const found = indexed.filter(({ terms }) => terms.has(term)).length
    return [term, Math.log(1 + (skills.length - found + 0.5) / (found + 0.5))] as const
  })
  return indexed
    .map(({ skill, terms }) => ({
      skill,
      score: weights.reduce((score, [term, weight]) => score + weight * (terms.get(term) ?? 0), 0)
    }))
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
    .slice(0, limit)
    .map(({ skill }) => skill)
}

/**
 * Returns the text of `/skills`.
 *
 * @category rendering
 * @since 0.1.0
 */
export const listing = (skills: ReadonlyArray<AnySkill>, model?: Model): string => {
  const shown = visible(skills, { agentSkills: "all", model })
  return shown.length === 0 ? "No skills available." : shown.map((skill) => skill.listing).join("\n")
}

/**
 * Returns a registry whose skills are called through `around`, such as to count, delay or record their calls. Everything
 * else about the skills stays the same.
 *
 * @example
 * const timed = SkillRegistry.aroundCalls(registry, (skill) => (input, scope) =>
 *   Effect.withSpan(skill.call(input, scope), skill.name)
 * )
 *
 * @category combinators
 * @since 0.1.0
 */
export const aroundCalls: {
  (around: (skill: AnySkill) => AnySkill["call"]): (registry: SkillRegistryShape) => SkillRegistryShape
  (registry: SkillRegistryShape, around: (skill: AnySkill) => AnySkill["call"]): SkillRegistryShape
} = /* @__PURE__ */ dual(
  2,
  (registry: SkillRegistryShape, around: (skill: AnySkill) => AnySkill["call"]): SkillRegistryShape => {
    const wrap = perObject((skill: AnySkill) => withCall(skill, { ...skill, call: around(skill) }))
    return {
      ...registry,
      find: (name) => Option.map(registry.find(name), wrap),
      all: Effect.map(registry.all, (all) => all.map(wrap))
    }
  }
)

const sources: ReadonlyArray<Source> = ["native", "mcp", "a2a", "skill-pack"]

const make = (): SkillRegistryShape => {
  const table = new SkillTable()

  const registerSource = <R = never>(source: SkillSource<R>) =>
    Effect.gen(function* () {
      const provide = closeOver(yield* Effect.context<R>())
      const closed = (skill: AnySkill<R>) => closedSkill(skill, provide, source.source)
      const swap = (skills: ReadonlyArray<AnySkill<R>>) =>
        Effect.suspend(() => Effect.fromResult(table.swap(registration, skills.map(closed)))).pipe(
          Effect.andThen(warnOfPatterns(skills))
        )
      const registration: Registration<R> = {
        // A source whose scope has closed is no longer registered.
        replace: (skills) => Effect.suspend(() => (table.has(registration) ? swap(skills) : Effect.void))
      }
      yield* Effect.acquireRelease(swap(source.skills), () => Effect.sync(() => table.delete(registration)))
      return registration
    })

  return {
    register: (skill) => Effect.asVoid(registerSource({ source: skill.source, skills: [skill] })),
    registerSource,
    find: (name) => Option.fromUndefinedOr(table.find(name)),
    all: Effect.sync(() => table.all())
  }
}

/** Logs the patterns that models do not see. */
const warnOfPatterns = (skills: ReadonlyArray<AnySkill<unknown>>): Effect.Effect<void> =>
  Effect.forEach(
    skills.flatMap(({ lostPatterns = [], name }) => lostPatterns.map((lost) => `skill '${name}': ${lost}`)),
    (warning) => Effect.logWarning(warning),
    { discard: true }
  )

/** Skills by name and by registration. */
class SkillTable {
  /** The skills of each registration, in order of registration. */
  readonly #groups = new Map<object, ReadonlyArray<AnySkill>>()
  readonly #byName = new Map<string, AnySkill>()
  /** Computed on demand. */
  #all: ReadonlyArray<AnySkill> | undefined

  has(owner: object): boolean {
    return this.#groups.has(owner)
  }

  find(name: string): AnySkill | undefined {
    return this.#byName.get(name) ?? this.all().find(({ aliases }) => aliases?.includes(name) === true)
  }

  all(): ReadonlyArray<AnySkill> {
    const skills = () => [...this.#groups.values()].flat()
    return (this.#all ??= sources.flatMap((source) => skills().filter((skill) => skill.source === source)))
  }

  /** Replaces the skills of a registration, or adds them. Fails without changing anything. */
  swap(owner: object, skills: ReadonlyArray<AnySkill>): Result.Result<void, ToolNameConflict | DefinitionInvalid> {
    const own = new Set(this.#groups.get(owner))
    const added = new Map<string, AnySkill>()
    for (const skill of skills) {
      const { name, source } = skill
      const fault = misnamed(name)
      if (fault !== undefined) return Result.fail(fault)
      const known = this.#byName.get(name)
      const existing = known === undefined || own.has(known) ? added.get(name) : known
      if (existing !== undefined) {
        return Result.fail(new ToolNameConflict({ name, existing: existing.source, incoming: source }))
      }
      added.set(name, skill)
    }
    this.#remove(own)
    for (const [name, skill] of added) this.#byName.set(name, skill)
    this.#groups.set(owner, skills)
    return Result.void
  }

  delete(owner: object): void {
    this.#remove(this.#groups.get(owner) ?? [])
    this.#groups.delete(owner)
  }

  #remove(skills: Iterable<AnySkill>): void {
    for (const { name } of skills) this.#byName.delete(name)
    this.#all = undefined
  }
}

/** How many skills a search returns unless it is asked for fewer. */
const usualHits = 8

/**
 * The terms of a skill and their weight. Skills do not change, so each is read once.
 *
 * In a search a word counts by how rare it is among the skills, and by where it stands: in the name, in the description,
 * or among the names of the inputs. Words are compared without their endings.
 */
const indexOf = perObject(({ description, inputSchema, name }: AnySkill): ReadonlyMap<string, number> => {
  const terms = new Map<string, number>()
  const add = (text: string, weight: number) => {
    for (const term of termsOf(text)) terms.set(term, Math.max(weight, terms.get(term) ?? 0))
  }
  add(Object.keys(jsonObject(inputSchema["properties"])).join(" "), 0.5)
  add(description, 1)
  add(name, 2)
  return terms
})

/** The terms of a text, without endings. `createIssue` and `create_issue` are two words. */
const termsOf = (text: string): ReadonlyArray<string> => [
  ...new Set(wordsOf(text.replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2"), maxTerms).map(stem))
]

const maxTerms = 1_000

/** A word without the common endings of English; other words stay as they are. */
const stem = (word: string): string => {
  for (const [ending, instead] of endings) {
    if (word.length > ending.length + 2 && word.endsWith(ending)) return word.slice(0, -ending.length) + instead
  }
  return word
}

const endings = [
  ["ies", "y"],
  ["ing", ""],
  ["ed", ""],
  ["es", ""],
  ["s", ""],
  ["e", ""]
] as const
