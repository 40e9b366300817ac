/**
 * A local ability a model can use: a name, a Schema for its input, an Effect that does it.
 *
 * `make` ties the three together, so that `execute` only ever sees decoded
 * input and the layer it is registered in asks for what it needs. `effects`
 * says once what a call does to the world: it decides resume, retry and
 * approval. Input is checked before anything runs, and a misfit is told to the
 * model in words it can act on (BP-87).
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { DialectName } from "./Dialect.ts"
import type { Json, JsonObject } from "./internal/base/json.ts"
import { faultOf } from "./internal/skill/skillFault.ts"
import * as Input from "./internal/skill/skillInput.ts"
import { listingOf } from "./internal/skill/skillListing.ts"
import * as Outputs from "./internal/skill/skillOutput.ts"
import * as Settings from "./internal/skill/skillSettings.ts"
import { CredentialMissing, InvalidArguments, SkillResultInvalid, SkillSettingInvalid } from "./KernelError.ts"
import type { Kind, Media } from "./Media.ts"
import type { Capability } from "./Model.ts"

export { CredentialMissing, InvalidArguments, SkillResultInvalid, SkillSettingInvalid }

/**
 * What a call does to the world: nothing (`read`), the same however often it
 * is made (`idempotent`), or something each time (`write`, the default).
 *
 * @category models
 * @since 0.1.0
 */
export type Effects = "read" | "idempotent" | "write"

/**
 * Where a skill comes from (AC-12).
 *
 * @category models
 * @since 0.1.0
 */
export type Source = "native" | "mcp" | "skill-pack"

/**
 * Hints for hosts and screens, with the meaning of effect/ai's tool annotations (AC-15).
 *
 * @category models
 * @since 0.1.0
 */
export interface Annotations {
  readonly title?: string
  readonly readonly: boolean
  readonly destructive: boolean
  readonly idempotent: boolean
  readonly openWorld: boolean
}

/**
 * Where a call happens: what the kernel tells a skill or a protocol.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallScope {
  readonly runId: string
  readonly rootRunId: string
  /**
   * As events and the journal tell it: unique in its turn. A vendor may give the same to a call of another turn or run.
   */
  readonly callId: string
  /** Unique over all runs, and the same over retries and resumes: for systems that do a thing once for each key (DR-17). */
  readonly idempotencyKey: string
  readonly step: number
  readonly depth: number
  readonly taskId: string | undefined
  /** The host's own state of the run (BP-153). */
  readonly runContext: Json
  /** How the model wrote the call: what is told of a misfit shows it in this form. Default: `blocks`. */
  readonly dialect?: DialectName
}

/**
 * What `execute` is given beside its input (BP-91), with the settings in the types that were declared. Without type
 * arguments it is that of any skill.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillContext<
  C extends Settings.Configs = Settings.Configs,
  K extends Settings.Credentials = Settings.Credentials
>
  extends CallScope, Settings.Settings<C, K> {}

/**
 * A skill as registry and kernel see it: input closed over, services still open.
 *
 * @category models
 * @since 0.1.0
 */
export interface AnySkill<out R = never> {
  readonly name: string
  readonly description: string
  readonly effects: Effects
  readonly annotations: Annotations
  /** What the model must be able to do (BP-90). */
  readonly requires: ReadonlyArray<Capability>
  /** What the results may hold; information only. */
  readonly produces: ReadonlyArray<Kind>
  readonly source: Source
  /** How long one call may take. Default: `Limits.skillTimeout`. */
  readonly timeout?: Duration.Duration
  /** JSON Schema (2020-12) of the input, always an object. Computed when first read. */
  readonly inputSchema: JsonObject
  /** The entry in `/skills` (BP-94). Computed when first read. */
  readonly listing: string
  /** Reads the text of a command block as parameters; never fails (BP-68). */
  readonly parameters: (text: string) => JsonObject
  /**
   * The input as it will be executed, in its JSON form: transformed, and with defaults (AC-19). Fails as `call` would
   * when it does not fit. Absent where the input is executed as it is.
   */
  readonly normalize?: (input: JsonObject) => Effect.Effect<JsonObject, InvalidArguments, R>
  /** Decodes, then executes: the one place where the input's type is known. */
  readonly call: (input: JsonObject, scope: CallScope) => Effect.Effect<unknown, unknown, R>
}

/**
 * A skill that remembers the types it was made with.
 *
 * @category models
 * @since 0.1.0
 */
export interface Made<out Name extends string, in out Input, out Output, out R> extends AnySkill<R> {
  readonly name: Name
  readonly "~kernai/Skill": {
    readonly _Input: (_: Input) => Input
    readonly _Output: (_: never) => Output
  }
}

/**
 * Reads the types back from a skill.
 *
 * @category models
 * @since 0.1.0
 */
export declare namespace SkillTypes {
  /** What the skill needs. */
  type Services<S> = S extends AnySkill<infer R> ? R : never
  /** Its name, literally. */
  type Name<S> = S extends { readonly name: infer N extends string } ? N : string
  /** What `execute` is given. */
  type Input<S> = S extends Made<string, infer I, infer _O, infer _R> ? I : unknown
  /** What `execute` returns. */
  type Output<S> = S extends Made<string, infer _I, infer O, infer _R> ? O : unknown
}

/**
 * What every skill is made of, whatever its input.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<
  C extends Settings.Configs = Settings.Configs,
  K extends Settings.Credentials = Settings.Credentials
> {
  readonly description: string
  /** Default: `write`. */
  readonly effects?: Effects | undefined
  /** What is left out follows from `effects`; `openWorld` is then true. */
  readonly annotations?: Partial<Annotations> | undefined
  /** What the model must be able to do. Default: nothing. */
  readonly requires?: ReadonlyArray<Capability> | undefined
  readonly produces?: ReadonlyArray<Kind> | undefined
  /** What `SkillContext.config` may be asked for. */
  readonly config?: (C & Settings.Exactly<C, Settings.ConfigSpec>) | undefined
  /** What `SkillContext.credential` may be asked for. */
  readonly credentials?: (K & Settings.Exactly<K, Settings.CredentialSpec>) | undefined
  /** How long one call may take. Default: `Limits.skillTimeout`. */
  readonly timeout?: Duration.Input | undefined
  /** Default: `native`. */
  readonly source?: Source | undefined
}

export type { Output, SkillResult } from "./internal/skill/skillOutput.ts"

/**
 * Makes a skill.
 *
 * The fields of an input struct are what the model writes. An input that is no
 * object schema (`Schema.String`) becomes the single input `input`. The model
 * writes JSON, so every field is read through its JSON form: a `Schema.Date`
 * from an ISO text, and a `Schema.Number` also from `"NaN"` or `"Infinity"`,
 * which a `Schema.Finite` does not offer. `execute` returns text, media, `result(…)`, contents, a
 * list of these, null for nothing (`undefined` is no result, R-22), or any JSON.
 * The text parts of a list are joined: for a list as JSON, return an object.
 *
 * @example
 * import { Effect, Schema } from "effect"
 * import { Skill } from "kernai"
 *
 * const shout = Skill.make("shout", {
 *   description: "Say it louder",
 *   input: Schema.Struct({ text: Schema.String }),
 *   effects: "read",
 *   execute: ({ text }) => Effect.succeed(text.toUpperCase())
 * })
 *
 * @category constructors
 * @since 0.1.0
 */
export function make<
  const Name extends string,
  S extends Schema.Constraint,
  A,
  E,
  R = never,
  const C extends Settings.Configs = {},
  const K extends Settings.Credentials = {}
>(
  name: Name,
  options: Options<C, K> & {
    readonly input: S
    readonly execute: (input: S["Type"], context: NoInfer<SkillContext<C, K>>) => Effect.Effect<A, E, R>
  }
): Made<Name, S["Type"], A, R | S["DecodingServices"] | S["EncodingServices"]>
export function make<const Name extends string, S extends Schema.Constraint, A, E, R>(
  name: Name,
  options: Options & {
    readonly input: S
    readonly execute: (input: S["Type"], context: CallScope & Settings.AnySettings) => Effect.Effect<A, E, R>
  }
): Made<Name, S["Type"], A, R | S["DecodingServices"] | S["EncodingServices"]> {
  const input = Input.fromSchema(options.input)
  const contextOf = contexts(name, options)
  const decode = (params: JsonObject, dialect?: DialectName) =>
    Effect.mapError(input.decode(params), (issue) => faultOf({ skill: name, input, params, issue, dialect }))
  return assemble(
    name,
    options,
    input,
    (params, scope) =>
      Effect.flatMap(decode(params, scope.dialect), (value) => options.execute(value, contextOf(scope))),
    // What cannot be written back stays as it came.
    (params) => Effect.flatMap(decode(params), (value) => Effect.orElseSucceed(input.encode(value), () => params))
  )
}

/**
 * Makes a skill whose input is described by JSON Schema alone: what a foreign
 * source offers. The input reaches `execute` as it is; the peer checks it.
 *
 * @category constructors
 * @since 0.1.0
 */
export function dynamic<
  const Name extends string,
  A,
  E,
  R = never,
  const C extends Settings.Configs = {},
  const K extends Settings.Credentials = {}
>(
  name: Name,
  options: Options<C, K> & {
    readonly inputSchema: JsonObject
    readonly execute: (input: JsonObject, context: NoInfer<SkillContext<C, K>>) => Effect.Effect<A, E, R>
  }
): Made<Name, JsonObject, A, R>
export function dynamic<const Name extends string, A, E, R>(
  name: Name,
  options: Options & {
    readonly inputSchema: JsonObject
    readonly execute: (input: JsonObject, context: CallScope & Settings.AnySettings) => Effect.Effect<A, E, R>
  }
): Made<Name, JsonObject, A, R> {
  const contextOf = contexts(name, options)
  return assemble(name, options, Input.fromJsonSchema(options.inputSchema), (params, scope) =>
    Effect.suspend(() => options.execute(params, contextOf(scope)))
  )
}

/**
 * Text with media and metadata, for a skill to return (BP-154).
 *
 * @category constructors
 * @since 0.1.0
 */
export const result: (
  text?: string,
  more?: {
    readonly media?: Media | ReadonlyArray<Media> | undefined
    readonly metadata?: JsonObject | undefined
  }
) => Outputs.SkillResult = Outputs.result

/**
 * Takes apart what a skill returned (BP-72, BP-73). What JSON cannot hold is
 * refused with its path.
 *
 * @category combinators
 * @since 0.1.0
 */
export const toOutput: (value: unknown) => Result.Result<Outputs.Output, SkillResultInvalid> = Outputs.toOutput

/**
 * Tells whether a value is a skill made by `make` or `dynamic`.
 *
 * @category guards
 * @since 0.1.0
 */
export const isSkill = (value: unknown): value is AnySkill<unknown> =>
  typeof value === "object" && value !== null && "~kernai/Skill" in value

export {
  type Configs,
  type ConfigSpec,
  type Credentials,
  type CredentialSpec,
  ConfigResolver,
  CredentialResolver,
  type SettingRecord
} from "./internal/skill/skillSettings.ts"

/**
 * Credentials given in code: by key, or by skill and key (BP-93).
 *
 * Provide it to a registry, for its skills, or to what runs under it; those of a run win. Beside the registry, in the
 * list of layers a kernel is given, no skill sees them.
 *
 * @example
 * const Skills = SkillRegistry.layer(search).pipe(Layer.provide(Skill.layerCredentials({ search: { token } })))
 *
 * @category layers
 * @since 0.1.0
 */
export const layerCredentials = (values: Settings.SettingRecord<Redacted.Redacted<string>>): Layer.Layer<never> => {
  const find = Settings.lookUp(values, (value): value is Redacted.Redacted<string> => Redacted.isRedacted(value))
  return Layer.succeed(Settings.CredentialResolver, { resolve: (skill, key) => Effect.sync(() => find(skill, key)) })
}

/**
 * Configuration given in code, as text: by key, or by skill and key (BP-93). It is provided where `layerCredentials` is.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (values: Settings.SettingRecord<string>): Layer.Layer<never> => {
  const find = Settings.lookUp(values, (value): value is string => typeof value === "string")
  return Layer.succeed(Settings.ConfigResolver, { resolve: (skill, key) => Effect.sync(() => find(skill, key)) })
}

/** Adds the settings a skill may ask for to the scope of a call. */
const contexts = (name: string, options: Options): ((scope: CallScope) => CallScope & Settings.AnySettings) => {
  const settings = Settings.make(name, options.config, options.credentials)
  return (scope) => ({ ...scope, ...settings() })
}

/** Builds a skill from its options, its input and its call. Every default is the most careful choice. */
const assemble = <Name extends string, I, A, R>(
  name: Name,
  options: Options,
  input: Input.Input,
  call: AnySkill<R>["call"],
  normalize?: AnySkill<R>["normalize"]
): Made<Name, I, A, R> => {
  const listing = Input.lazy(() => listingOf(name, options, input))
  const effects = options.effects ?? "write"
  return {
    "~kernai/Skill": { _Input: (_) => _, _Output: (_) => _ },
    name,
    description: options.description,
    effects,
    annotations: {
      readonly: effects === "read",
      destructive: effects === "write",
      idempotent: effects !== "write",
      openWorld: true,
      ...options.annotations
    },
    requires: options.requires ?? [],
    produces: options.produces ?? [],
    source: options.source ?? "native",
    ...(options.timeout === undefined ? {} : { timeout: Duration.fromInputUnsafe(options.timeout) }),
    get inputSchema() {
      return input.schema()
    },
    get listing() {
      return listing()
    },
    parameters: input.parameters,
    ...(normalize === undefined ? {} : { normalize }),
    call
  }
}
