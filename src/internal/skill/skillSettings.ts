/**
 * What a skill reads from its surroundings: configuration and credentials (BP-92, BP-93).
 *
 * A skill declares its keys, a resolver knows the values. Nothing is looked up
 * before a skill asks, each key at most once per execution, and a credential
 * is never out of its `Redacted`.
 */

import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { CredentialMissing, SkillSettingInvalid } from "../../KernelError.ts"
import { isRecord, own } from "../base/json.ts"

/** What a configuration key can hold. */
export type SettingValue = string | number | boolean | null

/** A configuration key: its type (`string` by default) and what it is when nobody set it. */
export interface ConfigSpec {
  readonly type?: "string" | "number" | "integer" | "boolean"
  readonly default?: SettingValue
}

/** A credential key; `required` makes its absence an error. */
export interface CredentialSpec {
  readonly required?: boolean
}

/** The configuration keys a skill declares. */
export interface Configs {
  readonly [key: string]: ConfigSpec
}

/** The credential keys a skill declares. */
export interface Credentials {
  readonly [key: string]: CredentialSpec
}

/** Refuses fields that no declaration has: nobody would read them. */
export type Exactly<Declared, Spec> = {
  readonly [Key in keyof Declared]: { readonly [Field in Exclude<keyof Declared[Key], keyof Spec>]: never }
}

/** What each configuration key gives: its type, or its default, or null when it has none and nobody set it. */
type ConfigValues<C extends Configs> = {
  readonly [Key in keyof C]:
    | TypeOf<C[Key]["type"]>
    | (C[Key] extends { readonly default: infer Default } ? Default : null)
}

type TypeOf<Word> = Word extends "number" | "integer" ? number : Word extends "boolean" ? boolean : string

/** What each credential key gives: null only where nobody must have it. */
type CredentialValues<K extends Credentials> = {
  readonly [Key in keyof K]: Redacted.Redacted<string> | (K[Key] extends { readonly required: true } ? never : null)
}

/** Gives the text of a configuration key, or null. */
export interface ConfigResolver {
  readonly resolve: (skill: string, key: string) => Effect.Effect<string | null>
}

/** Gives a credential, or null. */
export interface CredentialResolver {
  readonly resolve: (skill: string, key: string) => Effect.Effect<Redacted.Redacted<string> | null>
}

/** The keys that were declared. In a generator no declarations are `never` to the compiler, which has every key. */
type KeyOf<Declared> = [Declared] extends [never] ? never : keyof Declared & string

/** How a skill asks for its settings. Methods, so that what takes any settings takes those of one skill. */
export interface Settings<C extends Configs = Configs, K extends Credentials = Credentials> {
  /** The credential declared under this key; null when nobody has it and it is not `required`. */
  credential<Key extends KeyOf<K>>(
    key: Key
  ): Effect.Effect<CredentialValues<K>[Key], CredentialMissing | SkillSettingInvalid>
  /** The configuration declared under this key, in its type; its `default`, or null, when nobody set it. */
  config<Key extends KeyOf<C>>(key: Key): Effect.Effect<ConfigValues<C>[Key], SkillSettingInvalid>
}

/** The same, where the declarations are not known to the compiler. */
export interface AnySettings {
  readonly credential: (
    key: string
  ) => Effect.Effect<Redacted.Redacted<string> | null, CredentialMissing | SkillSettingInvalid>
  readonly config: (key: string) => Effect.Effect<SettingValue, SkillSettingInvalid>
}

/** Values by key, or by skill and key; the nested ones win. */
export type SettingRecord<A> = { readonly [key: string]: A | { readonly [key: string]: A } }

/** The environment variable of a key: `KERNAI_SKILL_<SKILL>_<KEY>`, with `_` for what a shell cannot name. */
const variable = (skill: string, key: string): string =>
  `KERNAI_SKILL_${skill}_${key}`.toUpperCase().replace(/[^A-Z0-9_]/g, "_")

// The text as it stands: a `Config` would bring its decoders into every bundle, for nothing to decode.
const fromProvider = (skill: string, key: string): Effect.Effect<Redacted.Redacted<string> | null> =>
  ConfigProvider.ConfigProvider.use((provider) => provider.load([variable(skill, key)])).pipe(
    Effect.map((node) => (node?.value === undefined ? null : Redacted.make(node.value))),
    // A resolver never fails (BP-93): what cannot be read is not set.
    Effect.orElseSucceed(() => null)
  )

/** Knows credentials: those of the environment unless another is provided (BP-93). */
export const CredentialResolver: Context.Reference<CredentialResolver> = Context.Reference<CredentialResolver>(
  "kernai/Skill/CredentialResolver",
  {
    defaultValue: () => ({ resolve: fromProvider })
  }
)

/** Knows configuration: that of the environment unless another is provided (BP-93). */
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

/** Makes the settings of one execution: each begins with an empty cache. */
export const make = (skill: string, configs: Configs = {}, credentials: Credentials = {}): (() => AnySettings) => {
  const configSpecs = new Map(Object.entries(configs))
  const credentialSpecs = new Map(Object.entries(credentials))
  const begin = (): AnySettings => {
    const execution = { skill, configSpecs, credentialSpecs, configs: new Map(), credentials: new Map() }
    return { config: (key) => readConfig(execution, key), credential: (key) => readCredential(execution, key) }
  }
  // Nothing declared, nothing to keep: most skills never ask for settings.
  const none = begin()
  return configSpecs.size + credentialSpecs.size === 0 ? () => none : begin
}

const readConfig = Effect.fnUntraced(function* (execution: Execution, key: string) {
  const { configs, configSpecs, skill } = execution
  const cached = configs.get(key)
  if (cached !== undefined) return cached
  const spec = configSpecs.get(key)
  if (spec === undefined) return yield* undeclared(skill, key, "configuration", configSpecs)
  const text = yield* (yield* ConfigResolver).resolve(skill, key)
  const type = spec.type ?? "string"
  // A resolver without types may give `undefined` for what it has not.
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
