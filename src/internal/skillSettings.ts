/**
 * What a skill reads from its surroundings: configuration and credentials (BP-92, BP-93).
 *
 * A skill declares its keys, a resolver knows the values. Nothing is looked up
 * before a skill asks, each key at most once per execution, and a credential
 * is never out of its `Redacted`.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import { CredentialMissing, SkillSettingInvalid } from "../KernelError.ts"

/** What a configuration key can hold. */
export type SettingValue = string | number | boolean | null

/** A configuration key: its type (`string` unless said) and what it is when nobody set it. */
export interface ConfigSpec {
  readonly type?: "string" | "number" | "integer" | "boolean"
  readonly default?: SettingValue
}

/** A credential key; `required` makes its absence an error. */
export interface CredentialSpec {
  readonly required?: boolean
}

/** Gives the text of a configuration key, or null. */
export interface ConfigResolver {
  readonly resolve: (skill: string, key: string) => Effect.Effect<string | null>
}

/** Gives a credential, or null. */
export interface CredentialResolver {
  readonly resolve: (skill: string, key: string) => Effect.Effect<Redacted.Redacted<string> | null>
}

/** How a skill asks for its settings. */
export interface Settings {
  readonly credential: (
    key: string
  ) => Effect.Effect<Redacted.Redacted<string> | null, CredentialMissing | SkillSettingInvalid>
  readonly config: (key: string) => Effect.Effect<SettingValue, SkillSettingInvalid>
}

/** Values by key, or by skill and key; the nested ones win. */
export type SettingRecord<A> = { readonly [key: string]: A | { readonly [key: string]: A } }

/** The environment variable of a key: `KERNAI_SKILL_<SKILL>_<KEY>`, with `_` for what a shell cannot name. */
export const variable = (skill: string, key: string): string =>
  `KERNAI_SKILL_${skill}_${key}`.toUpperCase().replace(/[^A-Z0-9_]/g, "_")

const fromProvider = (skill: string, key: string): Effect.Effect<Redacted.Redacted<string> | null> =>
  Config.option(Config.Redacted(variable(skill, key))).pipe(
    Effect.map(Option.getOrNull),
    // A resolver never fails (BP-93): what cannot be read is not set.
    Effect.orElseSucceed(() => null)
  )

export const CredentialResolver: Context.Reference<CredentialResolver> = Context.Reference<CredentialResolver>(
  "kernai/Skill/CredentialResolver",
  { defaultValue: () => ({ resolve: fromProvider }) }
)

export const ConfigResolver: Context.Reference<ConfigResolver> = Context.Reference<ConfigResolver>(
  "kernai/Skill/ConfigResolver",
  {
    defaultValue: () => ({
      resolve: (skill, key) =>
        Effect.map(fromProvider(skill, key), (value) => (value === null ? null : Redacted.value(value)))
    })
  }
)

/** Looks a key up among given values: under the skill first, then flat. */
export const lookUp = <A>(values: SettingRecord<A>, isValue: (value: unknown) => value is A) => {
  const own = (record: { readonly [key: string]: unknown }, key: string): unknown =>
    Object.hasOwn(record, key) ? record[key] : undefined
  return (skill: string, key: string): A | null => {
    const group = own(values, skill)
    if (typeof group === "object" && group !== null && !isValue(group)) {
      const nested = own({ ...group }, key)
      if (isValue(nested)) return nested
    }
    const flat = own(values, key)
    return isValue(flat) ? flat : null
  }
}

type Specs<Spec> = { readonly [key: string]: Spec }

/** Makes the settings of one execution: each call starts with an empty cache. */
export const make = (
  skill: string,
  configs: Specs<ConfigSpec>,
  credentials: Specs<CredentialSpec>
): (() => Settings) => {
  const configSpecs = new Map(Object.entries(configs))
  const credentialSpecs = new Map(Object.entries(credentials))
  return () => {
    const configCache = new Map<string, SettingValue>()
    const credentialCache = new Map<string, Redacted.Redacted<string> | null>()
    return {
      config: Effect.fnUntraced(function* (key) {
        const cached = configCache.get(key)
        if (cached !== undefined) return cached
        const spec = configSpecs.get(key)
        if (spec === undefined) return yield* undeclared(skill, key, "configuration", configSpecs)
        const resolver = yield* ConfigResolver
        const text = yield* resolver.resolve(skill, key)
        const value = text === null ? (spec.default ?? null) : coerce(text, spec.type ?? "string")
        if (value === undefined) {
          return yield* new SkillSettingInvalid({ skill, key, reason: `expected ${spec.type ?? "string"}` })
        }
        configCache.set(key, value)
        return value
      }),
      credential: Effect.fnUntraced(function* (key) {
        const cached = credentialCache.get(key)
        if (cached !== undefined) return cached
        const spec = credentialSpecs.get(key)
        if (spec === undefined) return yield* undeclared(skill, key, "credential", credentialSpecs)
        const resolver = yield* CredentialResolver
        const value = yield* resolver.resolve(skill, key)
        if (value === null && spec.required === true) {
          return yield* new CredentialMissing({ skill, key, variable: variable(skill, key) })
        }
        credentialCache.set(key, value)
        return value
      })
    }
  }
}

const undeclared = (skill: string, key: string, kind: string, declared: ReadonlyMap<string, unknown>) =>
  new SkillSettingInvalid({
    skill,
    key,
    reason: `no such ${kind} is declared; declared: ${declared.size === 0 ? "(none)" : Array.from(declared.keys()).join(", ")}`
  })

/** Reads a text as the declared type; undefined when it is none. */
const coerce = (text: string, type: NonNullable<ConfigSpec["type"]>): SettingValue | undefined => {
  switch (type) {
    case "string":
      return text
    case "boolean":
      return /^(1|true|yes|on)$/i.test(text)
    case "integer":
      return /^\s*[+-]?\d+\s*$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined
    case "number": {
      const value = text.trim() === "" ? NaN : Number(text)
      return Number.isFinite(value) ? value : undefined
    }
  }
}
