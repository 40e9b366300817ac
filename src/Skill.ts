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
import type { DialectName } from "./Dialect.ts"
import { type Json, type JsonObject, jsonObject } from "./kit/json.ts"
import { valueSchema } from "./kit/jsonSchema.ts"
import { approvalOf, assemble, contexts } from "./internal/skill/assembleSkill.ts"
import { explain } from "./internal/skill/failureText.ts"
import { faultOf } from "./internal/skill/skillFault.ts"
import * as Input from "./internal/skill/skillInput.ts"
import type {
  AnySkill,
  Approval,
  CallScope,
  Made,
  MakeOptions,
  Options,
  ProgressOf,
  Reporting,
  SkillContext
} from "./internal/skill/skillModel.ts"
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
import type { Media } from "./Media.ts"
import type { Redactor } from "./Redaction.ts"

export { Asking }

export type { Effects, Reply, Sampled, Sampling }

export { AnswerPending, CredentialMissing, InvalidArguments, SamplingRefused, SkillResultInvalid, SkillSettingInvalid }

export type {
  AnySkill,
  Annotations,
  Approval,
  CallScope,
  Made,
  MakeOptions,
  Options,
  ProgressOf,
  Report,
  Reporting,
  SkillContext,
  Source
} from "./internal/skill/skillModel.ts"

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
  F = never,
  P extends Schema.Constraint = Schema.Codec<Json>
>(
  name: Name,
  options: MakeOptions<S, A, E, R, C, K, F, P>
): Made<
  Name,
  S["Type"],
  A,
  R | S["DecodingServices"] | S["EncodingServices"],
  ProgressOf<P>,
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
