/**
 * The settings of skills: configuration and credentials.
 *
 * A skill declares keys, and resolvers return the values. Values are resolved when a skill reads them, each key at most
 * once per execution. Credentials stay `Redacted`.
 */

import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { CredentialMissing, SkillSettingInvalid } from "../../KernelError.ts"
import { isRecord, own } from "../../kit/json.ts"

/** The value of a configuration key. */
type SettingValue = string | number | boolean | null

/**
 * A configuration key: its type (default: `string`), and its value when it is not set. A `boolean` is true for `1`,
 * `true`, `yes` and `on`, and false for any other text.
 */
export interface ConfigSpec {
  readonly type?: "string" | "number" | "integer" | "boolean"
  readonly default?: SettingValue
}

/** A credential. With `required`, its absence is an error. */
export interface CredentialSpec {
  readonly required?: boolean
}

/** The configuration keys of a skill. */
export interface Configs {
  readonly [key: string]: ConfigSpec
}

/** The credentials of a skill. */
export interface Credentials {
  readonly [key: string]: CredentialSpec
}

/** Rejects unknown fields in declarations. */
export type Exactly<Declared, Spec> = {
  readonly [Key in keyof Declared]: { readonly [Field in Exclude<keyof Declared[Key], keyof Spec>]: never }
}

/** The values of configuration keys: of the declared type, or the default, or null without one. */
type ConfigValues<C extends Configs> = {
  readonly [Key in keyof C]:
    | TypeOf<C[Key]["type"]>
    | (C[Key] extends { readonly default: infer Default } ? Default : null)
}

type TypeOf<Word> = Word extends "number" | "integer" ? number : Word extends "boolean" ? boolean : string

/** The values of credentials: null only if not required. */
type CredentialValues<K extends Credentials> = {
  readonly [Key in keyof K]: Redacted.Redacted<string> | (K[Key] extends { readonly required: true } ? never : null)
}

/** Returns the text of a configuration key of a skill, or null. */
export interface ConfigResolver {
  readonly resolve: (skill: string, key: string) => Effect.Effect<string | null>
}

/** Returns a credential of a skill, or null. */
export interface CredentialResolver {
  readonly resolve: (skill: string, key: string) => Effect.Effect<Redacted.Redacted<string> | null>
}

/** The declared keys. In a generator function the compiler infers `never`, which would have every key. */
type KeyOf<Declared> = [Declared] extends [never] ? never : keyof Declared & string

/**
 * Reads the settings of a skill. Declared as methods, so that a function that takes any settings accepts those of one
 * skill.
 */
export interface Settings<C extends Configs = Configs, K extends Credentials = Credentials> {
  /** Returns a declared credential, or null if it is not set. Fails with `CredentialMissing` if it is required. */
  credential<Key extends KeyOf<K>>(
    key: Key
  ): Effect.Effect<CredentialValues<K>[Key], CredentialMissing | SkillSettingInvalid>
  /** Returns a declared configuration value in its type; its default, or null, if it is not set. */
  config<Key extends KeyOf<C>>(key: Key): Effect.Effect<ConfigValues<C>[Key], SkillSettingInvalid>
}

/** Settings whose declarations are unknown to the compiler. */
export interface AnySettings {
  readonly credential: (
    key: string
  ) => Effect.Effect<Redacted.Redacted<string> | null, CredentialMissing | SkillSettingInvalid>
  readonly config: (key: string) => Effect.Effect<SettingValue, SkillSettingInvalid>
}

/** Values by key, or by skill and key, which takes precedence. */
export type SettingRecord<A> = { readonly [key: string]: A | { readonly [key: string]: A } }

/**
 * Returns the environment variable of a key: `KERNAI_SKILL_<SKILL>_<KEY>`, with `_` for characters that shells do not
 * allow.
 */
const variable = (skill: string, key: string): string =>
  `KERNAI_SKILL_${skill}_${key}`.toUpperCase().replace(/[^A-Z0-9_]/g, "_")

// Reads the raw text. A `Config` would add its decoders to every bundle.
const fromProvider = (skill: string, key: string): Effect.Effect<Redacted.Redacted<string> | null> =>
  ConfigProvider.ConfigProvider.use((provider) => provider.load([variable(skill, key)])).pipe(
    Effect.map((node) => (node?.value === undefined ? null : Redacted.make(node.value))),
    // Resolvers never fail: an unreadable value counts as not set.
    Effect.orElseSucceed(() => null)
  )

/** Resolves credentials. The default reads the variable `KERNAI_SKILL_<SKILL>_<KEY>` through the ConfigProvider. */
export const CredentialResolver: Context.Reference<CredentialResolver> = Context.Reference<CredentialResolver>(
  "kernai/Skill/CredentialResolver",
  {
    defaultValue: () => ({ resolve: fromProvider })
  }
)

/** Resolves configuration. The default reads the variable `KERNAI_SKILL_<SKILL>_<KEY>` through the ConfigProvider. */
export const ConfigResolver: Context.Reference<ConfigResolver> = Context.Reference<ConfigResolver>(
  "kernai/Skill/ConfigResolver",
  {
    defaultValue: () => ({
      resolve: (skill, key) =>
        Effect.map(fromProvider(skill, key), (value) => (value === null ? null : Redacted.value(value)))
    })
  }
)

/** Looks a key up in given values, first under the skill. */
export const lookUp = <A>(values: SettingRecord<A>, isValue: (value: unknown) => value is A) => {
  return (skill: string, key: string): A | null => {
    const group = own(values, skill)
    if (isRecord(group) && !isValue(group)) {
      const nested = own(group, key)
      if (isValue(nested)) return nested
    }
    const flat = own(values, key)
    return isValue(flat) ? flat : null
  }
}

interface Execution {
  readonly skill: string
  readonly configSpecs: ReadonlyMap<string, ConfigSpec>
  readonly credentialSpecs: ReadonlyMap<string, CredentialSpec>
  readonly configs: Map<string, SettingValue>
  readonly credentials: Map<string, Redacted.Redacted<string> | null>
}

/** Creates the settings of one execution, each with an empty cache. */
export const make = (skill: string, configs: Configs = {}, credentials: Credentials = {}): (() => AnySettings) => {
  const configSpecs = new Map(Object.entries(configs))
  const credentialSpecs = new Map(Object.entries(credentials))
  const openSettings = (): AnySettings => {
    const execution = { skill, configSpecs, credentialSpecs, configs: new Map(), credentials: new Map() }
    return { config: (key) => readConfig(execution, key), credential: (key) => readCredential(execution, key) }
  }
  // Without declarations there is nothing to cache, which is the case for most skills.
  const none = openSettings()
  return configSpecs.size + credentialSpecs.size === 0 ? () => none : openSettings
}

const readConfig = Effect.fnUntraced(function* (execution: Execution, key: string) {
  const { configs, configSpecs, skill } = execution
  const cached = configs.get(key)
  if (cached !== undefined) return cached
  const spec = configSpecs.get(key)
  if (spec === undefined) return yield* undeclared(skill, key, "configuration", configSpecs)
  const text = yield* (yield* ConfigResolver).resolve(skill, key)
  const type = spec.type ?? "string"
  // An untyped resolver may return `undefined`.
  const value = text == null ? (spec.default ?? null) : coerce(text, type)
  if (value === undefined) return yield* new SkillSettingInvalid({ skill, key, reason: `expected ${type}` })
  configs.set(key, value)
  return value
})

const readCredential = Effect.fnUntraced(function* (execution: Execution, key: string) {
  const { credentials, credentialSpecs, skill } = execution
  const cached = credentials.get(key)
  if (cached !== undefined) return cached
  const spec = credentialSpecs.get(key)
  if (spec === undefined) return yield* undeclared(skill, key, "credential", credentialSpecs)
  const value = (yield* (yield* CredentialResolver).resolve(skill, key)) ?? null
  if (value === null && spec.required === true) {
    return yield* new CredentialMissing({ skill, key, variable: variable(skill, key) })
  }
  credentials.set(key, value)
  return value
})

const undeclared = (skill: string, key: string, kind: string, declared: ReadonlyMap<string, unknown>) =>
  new SkillSettingInvalid({
    skill,
    key,
    reason: `no such ${kind} is declared; declared: ${declared.size === 0 ? "(none)" : Array.from(declared.keys()).join(", ")}`
  })

/** Parses a text as the declared type. Undefined if it does not fit. */
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
