/**
 * The types of skills: of their options, of the circumstances of a call, and of the value that a registry holds.
 */

import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { Effects } from "../../Call.ts"
import type { Caller } from "../../Caller.ts"
import type { DialectName } from "../../Dialect.ts"
import type { Json, JsonObject } from "../../kit/json.ts"
import type { AnswerPending, InvalidArguments, SamplingRefused } from "../../KernelError.ts"
import type { Kind } from "../../Media.ts"
import type { Capability } from "../../Model.ts"
import type { Asking, Reply, Sampled, Sampling } from "../words/asking.ts"
import type * as Settings from "./skillSettings.ts"

/**
 * The origin of a skill.
 */
export type Source = "native" | "mcp" | "a2a" | "skill-pack"

/**
 * Hints for hosts and user interfaces, with the meaning of tool annotations in effect/ai.
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
   */
  readonly ask?: (asking: Asking) => Effect.Effect<Reply, AnswerPending>
  /**
   * The questions of this call that a person has answered, in the order in which earlier executions asked them. A skill
   * that must act before it asks can store the data it needs to continue in its question.
   */
  readonly answered?: ReadonlyArray<Asking>
  /**
   * Asks the model of the run for one reply, which counts toward the run's usage and budget. Absent if there is no
   * model.
   */
  readonly sample?: (sampling: Sampling) => Effect.Effect<Sampled, AnswerPending | SamplingRefused>
}

/**
 * A report of a call before its result: its progress, or a result that a later one replaces.
 */
export type Report =
  | { readonly _tag: "Progress"; readonly progress: unknown }
  | { readonly _tag: "Preliminary"; readonly output: unknown }

/**
 * The second argument of `execute`: the scope of the call, and the declared settings with their types.
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
 */
export interface Reporting<in P = Json> {
  /** Emits `skill_progress`. */
  readonly progress: (progress: P) => Effect.Effect<void>
  /** Emits `skill_progress` with the result so far as its `output`. */
  readonly preliminary: (output: unknown) => Effect.Effect<void>
}

/**
 * A skill as registries and the kernel see it, with its input type hidden and its services still required.
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
   */
  readonly lostPatterns?: ReadonlyArray<string>
  /**
   * The vendors' definitions of a tool that they run, by provider name. Absent: the skill runs here.
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
 * Options of every skill, whatever its input.
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
 * Options of `make`: those of every skill, its input and what it does.
 */
export interface MakeOptions<
  S extends Schema.Constraint,
  A,
  E,
  R,
  C extends Settings.Configs,
  K extends Settings.Credentials,
  F,
  P extends Schema.Constraint
> extends Options<C, K> {
  readonly input: S
  /** The Schema of its result, shown to programs that call it. The result is encoded as JSON. Default: any result. */
  readonly output?: Schema.ConstraintCodec<A, unknown> | undefined
  readonly failure?: Schema.ConstraintCodec<F, unknown> | undefined
  /** Which calls a person must approve. Default: none. */
  readonly approval?: Approval<S["Type"]> | undefined
  /** The progress that the skill reports. Default: any JSON. */
  readonly progress?: P | undefined
  readonly execute: (input: S["Type"], context: NoInfer<SkillContext<C, K, ProgressOf<P>>>) => Effect.Effect<A, E, R>
}

/**
 * The progress that a skill reports: values of its `progress` schema, or any JSON without one. In a generator function
 * the compiler infers `never`.
 */
export type ProgressOf<P extends Schema.Constraint> = [P] extends [never] ? Json : P["Type"]

/**
 * Which calls of a skill a person must approve: all of them, or those for whose input a function returns true or the
 * reason to ask.
 */
export type Approval<Input> = "always" | ((input: Input) => boolean | string)
