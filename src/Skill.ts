/**
 * A local ability a model can use: a name, a Schema for its input, and an Effect.
 *
 * `make` ties the three together, so that `execute` only sees decoded input, and the layer it is registered in requires
 * its services. `effects` declares the side effects of a call; resuming, retries and questions depend on it. Input is
 * checked before anything runs, and the model receives a message about what does not fit.
 *
 * @since 0.1.0
 */

import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { CallError, Effects } from "./Call.ts"
import type { Caller } from "./Caller.ts"
import type { DialectName } from "./Dialect.ts"
import { type Json, type JsonObject, jsonObject } from "./kit/json.ts"
import { valueSchema } from "./kit/jsonSchema.ts"
import { encoder, explain } from "./internal/skill/failureText.ts"
import { faultOf } from "./internal/skill/skillFault.ts"
import * as Input from "./internal/skill/skillInput.ts"
import { listingOf } from "./internal/skill/skillInput.ts"
import * as Outputs from "./internal/skill/skillOutput.ts"
import * as Settings from "./internal/skill/skillSettings.ts"
import { Asking, type Reply, type Sampled, type Sampling } from "./internal/words/asking.ts"
import {
  AnswerPending,
  CredentialMissing,
  InvalidArguments,
  SamplingRefused,
  SkillResultInvalid,
  SkillSettingInvalid
} from "./KernelError.ts"
import type { Kind, Media } from "./Media.ts"
import type { Capability } from "./Model.ts"
import type { Redactor } from "./Redaction.ts"

export { Asking }

export type { Effects, Reply, Sampled, Sampling }

export { AnswerPending, CredentialMissing, InvalidArguments, SamplingRefused, SkillResultInvalid, SkillSettingInvalid }

/**
 * The origin of a skill.
 *
 * @category models
 * @since 0.1.0
 */
export type Source = "native" | "mcp" | "a2a" | "skill-pack"

/**
 * Hints for hosts and user interfaces, with the meaning of tool annotations in effect/ai.
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
 * The circumstances of a call, passed to skills and protocols.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallScope {
  readonly runId: string
  readonly rootRunId: string
  /** The id in events and the journal, unique within its turn. A vendor may reuse it in another turn or run. */
  readonly callId: string
  /**
   * Unique over all runs, and stable over retries and resumes. Pass it to systems that deduplicate requests by a key.
   */
  readonly idempotencyKey: string
  /** The turn, counted from 0. */
  readonly step: number
  /** Levels of runs above this one; the root run has depth 0. */
  readonly depth: number
  readonly taskId: string | undefined
  /** The host's own state of the run. */
  readonly runContext: Json
  /** The caller who started the tree of the run. Absent if none was given, and outside of a run. */
  readonly caller?: Caller
  /** The dialect of the call, in which messages about wrong input show examples. Default: `blocks`. */
  readonly dialect?: DialectName
  /** The reason with which a person approved the call, and who did. Absent without one. */
  readonly approval?: { readonly reason: string; readonly by?: string }
  /** Receives reports of the call before its result. Absent if nothing listens. */
  readonly report?: (report: Report) => Effect.Effect<void>
  /**
   * Asks a person while the call runs. Absent if no person can be asked.
   *
   * In a run, the first call of `ask` fails with `AnswerPending`: the skill ends there, the run pauses with the
   * question, and the answer makes the skill run again from its beginning, where `ask` returns it. Ask before you act.
   * If a person is present, as behind an MCP client, `ask` waits for the answer.
   *
   * @since 0.1.0
   */
  readonly ask?: (asking: Asking) => Effect.Effect<Reply, AnswerPending>
  /**
   * The questions of this call that a person has answered, in the order in which earlier executions asked them. A skill
   * that must act before it asks can store the data it needs to continue in its question.
   *
   * @since 0.1.0
   */
  readonly answered?: ReadonlyArray<Asking>
  /**
   * Asks the model of the run for one reply, which counts toward the run's usage and budget. Absent if there is no
   * model.
   *
   * @since 0.1.0
   */
  readonly sample?: (sampling: Sampling) => Effect.Effect<Sampled, AnswerPending | SamplingRefused>
}

/**
 * A report of a call before its result: its progress, or a result that a later one replaces.
 *
 * @category models
 * @since 0.1.0
 */
export type Report =
  | { readonly _tag: "Progress"; readonly progress: unknown }
  | { readonly _tag: "Preliminary"; readonly output: unknown }

/**
 * The second argument of `execute`: the scope of the call, and the declared settings with their types.
 *
 * @category models
 * @since 0.1.0
 */
export interface SkillContext<
  C extends Settings.Configs = Settings.Configs,
  K extends Settings.Credentials = Settings.Credentials,
  P = Json
>
  extends CallScope, Settings.Settings<C, K>, Reporting<P> {}

/**
 * Reports of a skill before its result. Of each kind, the latest report is emitted at most every 100 milliseconds.
 * Reports are not stored, and the model does not see them.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reporting<in P = Json> {
  /** Emits `skill_progress`. */
  readonly progress: (progress: P) => Effect.Effect<void>
  /** Emits `skill_progress` with the result so far as its `output`. */
  readonly preliminary: (output: unknown) => Effect.Effect<void>
}

/**
 * A skill as registries and the kernel see it, with its input type hidden and its services still required.
 *
 * @category models
 * @since 0.1.0
 */
export interface AnySkill<out R = never> {
  readonly name: string
  /** The names it had before, by which stored calls still find it. Absent: none. */
  readonly aliases?: ReadonlyArray<string>
  readonly description: string
  readonly effects: Effects
  readonly annotations: Annotations
  /** Capabilities the model must have. */
  readonly requires: ReadonlyArray<Capability>
  /** Kinds of media in the results. A result with media of another kind is refused. Empty: any kind. */
  readonly produces: ReadonlyArray<Kind>
  readonly source: Source
  /** Maximum duration of one call. Default: `Limits.skillTimeout`. */
  readonly timeout?: Duration.Duration
  /** The keys of its credentials, in order. Absent: none. */
  readonly credentialKeys?: ReadonlyArray<string>
  /** JSON Schema (2020-12) of the input, always an object. Computed on first access. */
  readonly inputSchema: JsonObject
  /**
   * A sentence for each pattern of the input that models do not see: a pattern without the flag `u` is not part of
   * `inputSchema`, and one with lookaround is not part of a grammar. A registry logs them as warnings. Absent: none.
   * Computed on first access.
   *
   * @since 0.1.0
   */
  readonly lostPatterns?: ReadonlyArray<string>
  /**
   * The vendors' definitions of a tool that they run, by provider name. Absent: the skill runs here.
   *
   * @since 0.1.0
   */
  readonly hosted?: { readonly [provider: string]: JsonObject }
  /** The entry in `/skills`. Computed on first access. */
  readonly listing: string
  /** Reads the text of a command block as parameters. Never fails. */
  readonly parameters: (text: string) => JsonObject
  /**
   * Returns the input as it will be executed, in its JSON form: transformed and with defaults. Fails like `call` if it
   * does not fit. Absent when the input is executed unchanged.
   */
  readonly normalize?: (input: JsonObject) => Effect.Effect<JsonObject, InvalidArguments, R>
  /**
   * Returns why a person must approve a call of this input before it runs, or undefined. Fails like `call` if the input
   * does not fit. Absent when no call needs an approval.
   */
  readonly needsApproval?: (input: JsonObject) => Effect.Effect<string | undefined, unknown, R>
  /**
   * Returns the JSON form of a failure that fits the declared `failure` schema, and fails for any other. Absent without
   * such a schema.
   */
  readonly encodeFailure?: (error: unknown) => Effect.Effect<unknown, unknown>
  /** Decodes the input and executes it. */
  readonly call: (input: JsonObject, scope: CallScope) => Effect.Effect<unknown, unknown, R>
}

/**
 * A skill with the types it was made with.
 *
 * @category models
 * @since 0.1.0
 */
export interface Made<
  out Name extends string,
  in out Input,
  out Output,
  out R,
  out P = unknown,
  out D = unknown,
  out F = unknown
> extends AnySkill<R> {
  readonly name: Name
  /** Decodes the input without executing it. Needs the services of its schema only. */
  readonly decode: (input: JsonObject) => Effect.Effect<Input, InvalidArguments, D>
  /** Encodes an input as a model writes it. Needs the services of its schema only. */
  readonly encode: (input: Input) => Effect.Effect<JsonObject, InvalidArguments, D>
  /** The Schema of its result, which is JSON. Absent: the result is any that a skill may return. */
  readonly output?: Schema.ConstraintCodec<Output, unknown>
  /** The Schema of its failures, by which a program receives them typed. Absent: none is declared. */
  readonly failure?: Schema.ConstraintCodec<F, unknown>
  readonly "~kernai/Skill": {
    readonly _Input: (_: Input) => Input
    readonly _Output: (_: never) => Output
    readonly _Progress: (_: never) => P
  }
}

/**
 * Extracts the types of a skill.
 *
 * @category models
 * @since 0.1.0
 */
export declare namespace SkillTypes {
  /** The services it requires. */
  type Services<S> = S extends AnySkill<infer R> ? R : never
  /** Its literal name. */
  type Name<S> = S extends { readonly name: infer N extends string } ? N : string
  /** The input of `execute`. */
  type Input<S> = S extends Made<string, infer I, infer _O, infer _R> ? I : unknown
  /** The result of `execute`. */
  type Output<S> = S extends Made<string, infer _I, infer O, infer _R> ? O : unknown
  /** The progress that it reports. */
  type Progress<S> = S extends Made<string, infer _I, infer _O, infer _R, infer P> ? P : unknown
}

/**
 * Options of every skill, whatever its input.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<
  C extends Settings.Configs = Settings.Configs,
  K extends Settings.Credentials = Settings.Credentials
> {
  readonly description: string
  /**
   * The names it had before. Calls that were stored under one of them, such as one that waits for an approval, run this
   * skill, and policies are asked about its present name. Default: none.
   */
  readonly aliases?: ReadonlyArray<string> | undefined
  /** Default: `write`. */
  readonly effects?: Effects | undefined
  /** Omitted hints follow from `effects`; `openWorld` defaults to true. */
  readonly annotations?: Partial<Annotations> | undefined
  /** Capabilities the model must have. Default: none. */
  readonly requires?: ReadonlyArray<Capability> | undefined
  /**
   * Kinds of media in the results, shown to models and in `skill_execute`. A result with media of another kind fails.
   * Default: any kind, none shown.
   */
  readonly produces?: ReadonlyArray<Kind> | undefined
  /** The configuration keys available in `SkillContext.config`. */
  readonly config?: (C & Settings.Exactly<C, Settings.ConfigSpec>) | undefined
  /** The credentials available in `SkillContext.credential`. */
  readonly credentials?: (K & Settings.Exactly<K, Settings.CredentialSpec>) | undefined
  /**
   * The schema of failures that the model sees with all their fields, in their encoded form, and that a program receives
   * typed from `Program.call`. For the model alone, errors of a `Schema.TaggedError` class need none: their own schema
   * encodes them.
   */
  readonly failure?: Schema.ConstraintCodec<unknown, unknown> | undefined
  /** Maximum duration of one call. Default: `Limits.skillTimeout`. */
  readonly timeout?: Duration.Input | undefined
  /** Default: `native`. */
  readonly source?: Source | undefined
}

/**
 * Which calls of a skill a person must approve: all of them, or those for whose input a function returns true or the
 * reason to ask.
 *
 * @category models
 * @since 0.1.0
 */
export type Approval<Input> = "always" | ((input: Input) => boolean | string)

export type { Output, SkillResult } from "./internal/skill/skillOutput.ts"

/**
 * Creates a skill.
 *
 * The model writes the input as JSON, so each field is decoded from its JSON form: a `Schema.Date` from an ISO string,
 * a `Schema.Number` also from `"NaN"` or `"Infinity"`, which a `Schema.Finite` does not accept. A schema that is not an
 * object (`Schema.String`) becomes the single input `input`.
 *
 * `execute` may return text, media, `result(…)`, contents, a list of these, nothing (`Effect.void`, null) for an
 * empty result, or any other JSON. Texts in a list are joined; to return a list as JSON, wrap it in an object. Other
 * values fail with `SkillResultInvalid`.
 *
 * A call that `approval` selects waits for a person like one that a policy asks about (see `Policy.confirm`); a policy may
 * be stricter.
 *
 * When `execute` fails, the model receives the message of the error, or its `_tag` without one. Errors of a
 * `Schema.TaggedError` class, and failures that fit the `failure` schema, are shown with their encoded fields. Causes
 * and text that looks like a key are left out, and a text longer than `Limits.resultBytes` keeps its head and its tail.
 * When `execute` dies, the model only learns that the skill failed unexpectedly, and the cause is logged.
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
  const K extends Settings.Credentials = {},
  F = never
>(
  name: Name,
  options: Options<C, K> & {
    readonly input: S
    /** The Schema of its result, shown to programs that call it. The result is encoded as JSON. Default: any result. */
    readonly output?: Schema.ConstraintCodec<A, unknown> | undefined
    readonly failure?: Schema.ConstraintCodec<F, unknown> | undefined
    /** Which calls a person must approve. Default: none. */
    readonly approval?: Approval<S["Type"]> | undefined
    readonly progress?: undefined
    readonly execute: (input: S["Type"], context: NoInfer<SkillContext<C, K>>) => Effect.Effect<A, E, R>
  }
): Made<
  Name,
  S["Type"],
  A,
  R | S["DecodingServices"] | S["EncodingServices"],
  Json,
  S["DecodingServices"] | S["EncodingServices"],
  F
>
export function make<
  const Name extends string,
  S extends Schema.Constraint,
  P extends Schema.Constraint,
  A,
  E,
  R = never,
  const C extends Settings.Configs = {},
  const K extends Settings.Credentials = {},
  F = never
>(
  name: Name,
  options: Options<C, K> & {
    readonly input: S
    /** The Schema of its result, shown to programs that call it. The result is encoded as JSON. Default: any result. */
    readonly output?: Schema.ConstraintCodec<A, unknown> | undefined
    readonly failure?: Schema.ConstraintCodec<F, unknown> | undefined
    /** Which calls a person must approve. Default: none. */
    readonly approval?: Approval<S["Type"]> | undefined
    /** The progress that the skill reports. Default: any JSON. */
    readonly progress: P
    readonly execute: (input: S["Type"], context: NoInfer<SkillContext<C, K, P["Type"]>>) => Effect.Effect<A, E, R>
  }
): Made<
  Name,
  S["Type"],
  A,
  R | S["DecodingServices"] | S["EncodingServices"],
  P["Type"],
  S["DecodingServices"] | S["EncodingServices"],
  F
>
export function make<const Name extends string, S extends Schema.Constraint, A, E, R>(
  name: Name,
  options: Options & {
    readonly input: S
    readonly output?: Schema.ConstraintCodec<A, unknown> | undefined
    readonly approval?: Approval<S["Type"]> | undefined
    readonly execute: (
      input: S["Type"],
      context: CallScope & Settings.AnySettings & Reporting<unknown>
    ) => Effect.Effect<A, E, R>
  }
): Made<
  Name,
  S["Type"],
  A,
  R | S["DecodingServices"] | S["EncodingServices"],
  unknown,
  S["DecodingServices"] | S["EncodingServices"]
> {
  const input = Input.fromSchema(options.input)
  const contextOf = contexts(name, options)
  const decode = (params: JsonObject, dialect?: DialectName) =>
    Effect.mapErrorEager(input.decode(params), (issue) => faultOf({ skill: name, input, params, issue, dialect }))
  const encode = (value: S["Type"]) =>
    Effect.mapErrorEager(input.encode(value), (issue) => faultOf({ skill: name, input, params: {}, issue }))
  const { output } = options
  const encodeOutput = output === undefined ? undefined : Schema.encodeUnknownEffect(Schema.toCodecJson(output))
  const execute = (value: S["Type"], scope: CallScope): Effect.Effect<unknown, unknown, R> => {
    const result = options.execute(value, contextOf(scope))
    return encodeOutput === undefined ? result : Effect.flatMap(result, encodeOutput)
  }
  const needsApproval = approvalOf(name, options.approval, decode)
  const skill = assemble<
    Name,
    S["Type"],
    A,
    R | S["DecodingServices"] | S["EncodingServices"],
    S["DecodingServices"] | S["EncodingServices"]
  >(
    name,
    options,
    input,
    { decode: (params) => decode(params), encode },
    (params, scope) =>
      Effect.suspend(() => Effect.flatMapEager(decode(params, scope.dialect), (value) => execute(value, scope))),
    {
      // Input that cannot be encoded again stays as it was.
      normalize: (params) =>
        Effect.flatMap(decode(params), (value) => Effect.orElseSucceed(input.encode(value), () => params)),
      ...(needsApproval === undefined ? {} : { needsApproval })
    }
  )
  return output === undefined ? skill : Object.assign(skill, { output })
}

/**
 * Creates a tool that the vendor of the model runs itself, from its definitions by provider name. `HostedTools` of
 * `kernai/provider` has the usual ones.
 *
 * It is sent to a model in both dialects if its provider is among `tools` and the policy allows it. The policy is asked
 * before each request, with an empty input, because the vendor runs the calls without asking. A tool that needs a
 * person's confirmation is therefore not offered. Its calls are part of `model_completed`, and their cost follows from
 * the price of the model.
 *
 * @category constructors
 * @since 0.1.0
 */
export const hosted = <const Name extends string>(
  name: Name,
  options: { readonly description: string; readonly tools: { readonly [provider: string]: JsonObject } }
): AnySkill & { readonly name: Name } => ({
  ...dynamic(name, {
    description: options.description,
    inputSchema: { type: "object", properties: {} },
    effects: "read",
    execute: () => Effect.fail(`'${name}' is run by the vendor of the model`)
  }),
  name,
  hosted: options.tools
})

/**
 * Creates a skill that somebody else runs: a page, a person's device, or another process.
 *
 * A call of it rests the run until `Kernel.answer(runId, [{ callId, output }])` gives its result, or `{ callId, error }`
 * its failure. `Kernel.questions` lists it with the JSON Schema of the result as `asking.output`. A result that does not
 * fit is refused. With `within`, a call without a result fails after that time.
 *
 * @example
 * const photo = Skill.external("photo", {
 *   description: "Takes a photo on the user's phone",
 *   input: Schema.Struct({ of: Schema.String }),
 *   output: Schema.Struct({ url: Schema.String })
 * })
 *
 * @category constructors
 * @since 0.1.0
 */
export const external = <
  const Name extends string,
  S extends Schema.Constraint,
  O extends Schema.ConstraintCodec<unknown, unknown>
>(
  name: Name,
  options: Pick<Options, "annotations" | "description" | "effects" | "requires"> & {
    readonly input: S
    readonly output: O
    readonly within?: Duration.Input | undefined
  }
): Made<
  Name,
  S["Type"],
  O["Type"],
  S["DecodingServices"] | S["EncodingServices"],
  Json,
  S["DecodingServices"] | S["EncodingServices"]
> => {
  const { description, output, within, ...rest } = options
  const decode = Schema.decodeUnknownEffect(Schema.toCodecJson(output))
  const asked = Input.lazy(() => jsonObject(valueSchema(output)))
  return make(name, {
    // A call that was in flight only asks again.
    effects: "idempotent",
    ...rest,
    description,
    output,
    execute: Effect.fnUntraced(function* (_, { ask }: CallScope) {
      if (ask === undefined) return yield* Effect.fail("nobody can run it here")
      const limit =
        within === undefined ? {} : { answerBy: (yield* Clock.currentTimeMillis) + Duration.toMillis(within) }
      const reply = yield* ask({ message: description, output: asked(), ...limit })
      if (reply._tag !== "Accepted") return yield* Effect.fail("reason" in reply ? reply.reason : "it was not run")
      return yield* decode(reply.output)
    })
  })
}

/**
 * Creates a skill whose input is described by a JSON Schema, such as one of a foreign source. The input reaches
 * `execute` unchecked.
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
    /** Which calls a person must approve. Default: none. */
    readonly approval?: Approval<JsonObject> | undefined
    readonly execute: (input: JsonObject, context: NoInfer<SkillContext<C, K>>) => Effect.Effect<A, E, R>
  }
): Made<Name, JsonObject, A, R, unknown, never>
export function dynamic<const Name extends string, A, E, R>(
  name: Name,
  options: Options & {
    readonly inputSchema: JsonObject
    readonly approval?: Approval<JsonObject> | undefined
    readonly execute: (
      input: JsonObject,
      context: CallScope & Settings.AnySettings & Reporting<unknown>
    ) => Effect.Effect<A, E, R>
  }
): Made<Name, JsonObject, A, R, unknown, never> {
  const contextOf = contexts(name, options)
  const same = { decode: Effect.succeed<JsonObject>, encode: Effect.succeed<JsonObject> }
  const needsApproval = approvalOf(name, options.approval, same.decode)
  return assemble(
    name,
    options,
    Input.fromJsonSchema(options.inputSchema),
    same,
    (params, scope) => Effect.suspend(() => options.execute(params, contextOf(scope))),
    needsApproval === undefined ? {} : { needsApproval }
  )
}

/**
 * Creates a result of text, media and metadata, to be returned from a skill. Metadata is for the host and never shown
 * to the model.
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
 * Converts a value returned by a skill into contents, media and JSON. Fails with the path of a value that is none of
 * these.
 *
 * @category converting
 * @since 0.1.0
 */
export const toOutput: (value: unknown) => Result.Result<Outputs.Output, SkillResultInvalid> = Outputs.toOutput

/**
 * Removes the secrets known to a redactor from the output of a skill. Media contain no text.
 *
 * @category converting
 * @since 0.1.0
 */
export const redactOutput: (output: Outputs.Output, redactor: Redactor | undefined) => Outputs.Output = Outputs.clean

/**
 * Converts the failure of a skill to the error that a model reads: the message of a typed failure and the fields of its
 * schema, without secrets and up to `Limits.resultBytes`. A defect is logged and gets a fixed text.
 *
 * @category converting
 * @since 0.1.0
 */
export const callError = (
  { encodeFailure, name }: Pick<AnySkill, "name" | "encodeFailure">,
  cause: Cause.Cause<unknown>,
  redactor?: Redactor
): Effect.Effect<CallError> => explain({ redactor }, `Skill '${name}'`, cause, encodeFailure)

/**
 * Returns true for a skill made by `make` or `dynamic`.
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
 * Provides credentials by key, or by skill and key, which takes precedence.
 *
 * Provide the layer to a registry for its skills, or to the kernel for its runs, which takes precedence. Merged beside
 * the registry, it has no effect.
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
 * Provides configuration as text, by key or by skill and key. Provide it in the same places as `layerCredentials`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (values: Settings.SettingRecord<string>): Layer.Layer<never> => {
  const find = Settings.lookUp(values, (value): value is string => typeof value === "string")
  return Layer.succeed(Settings.ConfigResolver, { resolve: (skill, key) => Effect.sync(() => find(skill, key)) })
}

/** Adds the declared settings to the scope of a call. */
const contexts = (
  name: string,
  options: Options
): ((scope: CallScope) => CallScope & Settings.AnySettings & Reporting<unknown>) => {
  const settings = Settings.make(name, options.config, options.credentials)
  return (scope) => {
    const { report = unheard } = scope
    const { config, credential } = settings()
    return {
      ...scope,
      config,
      credential,
      progress: (progress) => report({ _tag: "Progress", progress }),
      preliminary: (output) => report({ _tag: "Preliminary", output })
    }
  }
}

const unheard = () => Effect.void

/** Returns the reason to ask a person about an input. */
const approvalOf = <I, E, R>(
  name: string,
  given: Approval<I> | undefined,
  decode: (params: JsonObject) => Effect.Effect<I, E, R>
): ((params: JsonObject) => Effect.Effect<string | undefined, E, R>) | undefined => {
  if (given === undefined) return undefined
  const usual = `'${name}' has to be approved`
  if (given === "always") return () => Effect.succeed(usual)
  return (params) =>
    Effect.map(decode(params), (input) => {
      const asked = given(input)
      return typeof asked === "string" ? asked : asked ? usual : undefined
    })
}

/** Builds a skill from its options, its input and its call. Defaults are the most cautious choices. */
const assemble = <Name extends string, I, A, R, D>(
  name: Name,
  options: Options,
  input: Input.Input,
  { decode, encode }: Pick<Made<Name, I, A, R, never, D>, "decode" | "encode">,
  call: AnySkill<R>["call"],
  more: Pick<AnySkill<R>, "needsApproval" | "normalize"> = {}
): Made<Name, I, A, R, never, D> => {
  const listing = Input.lazy(() => listingOf(name, options, input))
  const effects = options.effects ?? "write"
  return {
    "~kernai/Skill": { _Input: (_) => _, _Output: (_) => _, _Progress: (_) => _ },
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
    ...(options.aliases === undefined ? {} : { aliases: options.aliases }),
    ...(options.timeout === undefined ? {} : { timeout: Duration.fromInputUnsafe(options.timeout) }),
    ...(options.credentials === undefined ? {} : { credentialKeys: Object.keys(options.credentials).sort() }),
    get inputSchema() {
      return input.schema()
    },
    get lostPatterns() {
      return input.lostPatterns()
    },
    get listing() {
      return listing()
    },
    parameters: input.parameters,
    decode,
    encode,
    ...more,
    ...(options.failure === undefined ? {} : { failure: options.failure, encodeFailure: encoder(options.failure) }),
    call
  }
}
