/**
 * The types of agents: of their values, their options, and what options say about the runs of an agent.
 */

import type * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import type { ExecutionBudget, SpawnBudget } from "../../Budget.ts"
import type { DialectName } from "../../Dialect.ts"
import type { Generation } from "../../Generation.ts"
import type { JsonObject } from "../../kit/json.ts"
import type { ProgramError } from "../../KernelError.ts"
import type { Media } from "../../Media.ts"
import type { Model } from "../../Model.ts"
import type { ProviderShape } from "../../Provider.ts"
import type { AnySkill, SkillTypes } from "../../Skill.ts"
import type { Markup } from "../words/markup.ts"
import type { ContextSchema } from "./team.ts"

/**
 * How a reply of prose without blocks is understood: as the answer if the agent cannot act and as a fault if it can
 * (`auto`), always as the answer (`final`), or always as a fault (`corrective`).
 *
 * An empty reply is not an answer, and the model is asked again. The exception is `auto` for an agent in the block
 * dialect that cannot act: its answer may be empty.
 */
export type Prose = "auto" | "final" | "corrective"

/**
 * An agent. `Output` is the result of its runs, `Skills` types its events, `R` are the services that its instructions,
 * its skill values and its agents need, and `C` is the context that its runs must be given, or `never` if they need
 * none. `I` is the value that its `input` schema takes, or `unknown` without one.
 *
 * To run one of several agents, type it as `Agent<unknown>` or `Agent<A | B>`: the output of a union of agents is not
 * inferred.
 *
 * @example
 * const agents: Record<string, Agent.Agent<unknown>> = { writer, reviewer }
 */
export interface Agent<
  out Output = string,
  out Skills extends AnySkill<unknown> = AnySkill<unknown>,
  out R = never,
  out C = never,
  out I = unknown
> {
  /** Its name in logs, events and stored runs. Workers find it by this name. Default: `agent`. */
  readonly name: string
  /**
   * The names it had before. Runs that were stored under one of them are continued by this agent, and calls and
   * hand-overs to it reach it. Default: none.
   */
  readonly aliases: ReadonlyArray<string>
  /** Its version, which is stored with the runs that it starts and continues. Default: none. */
  readonly version: string | undefined
  /** Its purpose, for callers such as MCP clients and for telemetry. */
  readonly description: string | undefined
  /** The instructions for the model: a text, or an Effect that runs at every turn. */
  readonly instructions: string | Effect.Effect<string, never, R>
  /**
   * A model of the provider in the layer, by name or as a value, or `<provider>/<model>` for the ModelRegistry. A model
   * of an unknown name has text input and output; declare its capabilities with `Model.make(id, { capabilities: … })`.
   */
  readonly model: Model | string
  /**
   * The provider that this agent brings, which no other replaces: an Effect that runs once for each start or resume of
   * its run. Default: the provider of the run, of its model string, or of the layer.
   */
  readonly provider: Effect.Effect<ProviderShape<ProgramError>, never, R | Scope.Scope> | undefined
  /** The skills it may call: undefined for none, `all`, or a list of names and skills. */
  readonly skills: ReadonlyArray<Skills | string> | "all" | undefined
  /**
   * The agents it may call by their names. A call runs the agent as a child of the run, and its answer is the result. A
   * name refers to an agent given as a value elsewhere in this team, so that agents may refer to each other. Default:
   * none.
   */
  readonly agents: ReadonlyArray<Agent<unknown, AnySkill<unknown>, R, unknown> | string>
  /**
   * The agents it may hand the conversation over to, each by the call `transfer_to_<name>`. The run continues under the
   * other agent. A name refers to an agent of this team, the first one included. Default: none.
   */
  readonly handoffs: ReadonlyArray<Agent<unknown, AnySkill<unknown>, R, unknown> | string>
  /** Accepts or refuses an answer (see `Options`). Default: every answer is accepted. */
  readonly until: Check<unknown, R> | undefined
  /**
   * The input: a Schema, whose JSON becomes the first message of a run. Agents that call it, programs and `Kernel.run`
   * give a value of it. Default: one text.
   */
  readonly input: Schema.ConstraintCodec<I, unknown> | undefined
  /**
   * The context that each of its runs is given: a Schema that encodes to an object. The context is stored encoded, and
   * `contextOf` reads it. Called agents and tasks have the context of their root run. Default: runs may be given any JSON
   * object.
   */
  readonly context: ContextSchema<C> | undefined
  /**
   * Where `skills` and the capabilities a skill requires are enforced: when a call runs (`dispatch`), or only in the
   * list shown to the model (`listing`). Default: `dispatch`.
   */
  readonly gate: "dispatch" | "listing"
  /** The protocols it may use: undefined for all that are registered, or a list of names. */
  readonly protocols: ReadonlyArray<string> | undefined
  /**
   * Maximum number of turns; then the run fails with `MaxStepsReached`. A run that is handed over keeps the maximum of the
   * agent it was started with. Default: 10.
   */
  readonly maxSteps: number
  /** How a reply of prose without blocks is understood. Default: `auto`. */
  readonly prose: Prose
  /**
   * The dialect of its turns: `blocks` in text, native `tools`, or whichever the model handles best (`auto`, see
   * `Model.dialectOf`). Where `auto` chooses blocks, the prompt also lists the skills if there are few (see
   * `Limits.listedTokens`). Default: `blocks`.
   */
  readonly dialect: DialectName | "auto"
  /** Other markups in which its model may write calls, tried in this order (see `Dialect.markups`). Default: none. */
  readonly markups: ReadonlyArray<Markup>
  /**
   * Constrain replies by the grammar of the dialect, with providers that support it (see `Grammar` of
   * `kernai/provider`). Default: false.
   */
  readonly grammar: boolean
  /**
   * Maximum number of calls of one reply, agents included, that run at once. Results keep the order of the calls.
   * Default: 1.
   */
  readonly concurrency: number
  /** Maximum number of tasks of a workflow that run at once. Default: 8. */
  readonly taskConcurrency: number
  /**
   * Whether the agents that call it may do so in the background, with the parameter `background` of the call: the call
   * returns an id at once, and the answer arrives as a message of a later turn. Default: false.
   */
  readonly background: boolean
  /**
   * Options for generating replies, such as the temperature. Default: the vendor's defaults (Anthropic: 4096 tokens).
   */
  readonly generation: Generation
  /**
   * How often in a row the same calls, or a cycle of up to three turns, may give the same results. After that the model
   * is sent a correction, and the next repetition fails with `LoopDetected`. A faulty reply that is repeated word for
   * word after that many corrections fails the run, too. Default: repetitions are not detected.
   */
  readonly maxRepeats: number | undefined
  /**
   * Limits of a run and its children. The limits of a called agent hold inside those of its caller, and a run that is
   * handed over keeps those of the agent it was started with. Default: none.
   */
  readonly budget: ExecutionBudget
  /**
   * Limits of the whole tree of runs under a root run. Default: `Budget.spawnDefaults`, and as many levels as agents are
   * nested in each other.
   */
  readonly spawn: SpawnBudget | undefined
  /**
   * Maximum tokens of a prompt plus those reserved for the reply. Default: prompts are not limited, and a compacting
   * pipeline uses the window of the model.
   */
  readonly contextWindow: number | undefined
  /** Tokens reserved for the reply. Default: 4096. */
  readonly reservedOutputTokens: number
  /**
   * Decodes the text of the answer: `Schema.String`, or JSON of the caller's schema. A schema encoded as a string also
   * accepts text without quotes. Tasks of a workflow answer in text.
   */
  readonly output: Schema.ConstraintDecoder<Output>
  /** True if `output` is the caller's own schema. Answers that do not fit it are returned to the model. */
  readonly typed: boolean
  /** The JSON Schema of a typed answer, computed when a prompt needs it. */
  readonly outputJsonSchema: (() => { readonly [key: string]: unknown }) | undefined
  /**
   * MCP servers in the usual config format: `command`, `args` and `env`, or `url` and `headers`. The kernel connects
   * none of them: pass `{ mcpServers: agent.mcpServers }` to `McpHub.layerConfig`, as `kernai --agent` does.
   */
  readonly mcpServers: { readonly [name: string]: JsonObject } | undefined
  /** Unknown keys of its config, at any depth. `toConfig` writes them back. */
  readonly extra: JsonObject
}

/**
 * Accepts an answer with undefined, or refuses it with the reason, which the model reads.
 */
export type Check<in Answer, out R = never> = (
  answer: Answer,
  reply: { readonly text: string; readonly turn: number }
) => Effect.Effect<string | undefined, unknown, R>

/** All fields optional; undefined is the same as absent. */
type Optional<A> = { readonly [K in keyof A]?: A[K] | undefined }

/**
 * The options of `make`. Defaults are given at the fields of `Agent`.
 */
export interface Options<
  R,
  S = ReadonlyArray<AnySkill<unknown> | string> | "all" | undefined,
  Output = Schema.ConstraintDecoder<unknown>,
  Members = AgentTypes.Member,
  C = never,
  I = unknown,
  Handoffs = Members
>
  extends
    Pick<Agent, "model">,
    Optional<
      Pick<
        Agent,
        | "name"
        | "aliases"
        | "version"
        | "description"
        | "gate"
        | "protocols"
        | "maxSteps"
        | "prose"
        | "dialect"
        | "markups"
        | "grammar"
        | "concurrency"
        | "taskConcurrency"
        | "background"
        | "maxRepeats"
        | "generation"
        | "budget"
        | "spawn"
        | "contextWindow"
        | "reservedOutputTokens"
        | "mcpServers"
      >
    > {
  /**
   * The instructions for the model: a text, an Effect that runs at every turn, or a function of the run's context, called
   * at every turn. A consumer of `Kernel.stream` that changes what they read when it receives `turn_completed` is in time
   * for the next turn, unless it waits for something before; the hook `onTurnCompleted` always is. If a stored context no longer fits, the run fails with `ExtensionFailed`.
   */
  readonly instructions:
    | string
    | Effect.Effect<string, never, R>
    | ((context: ContextOf<NoInfer<C>>) => string | Effect.Effect<string, never, R>)
  /**
   * A provider of its own, such as one that replies by a program: an Effect that runs once for each start or resume of a
   * run. Its scope is closed when the run stops. `RunState.current` is the run that a reply is for. Its prompts are not
   * counted as text that a vendor caches.
   */
  readonly provider?: Effect.Effect<ProviderShape<ProgramError>, never, R | Scope.Scope> | undefined
  /** Skills it may call: undefined for none, `all`, or a list of names and skills. */
  readonly skills?: S | undefined
  /** Agents it may call. */
  readonly agents?: ReadonlyArray<Members> | undefined
  /** Agents it may hand the conversation over to. */
  readonly handoffs?: ReadonlyArray<Handoffs> | undefined
  /**
   * The goal of a run: an answer ends it only if this check accepts it. The reason of a refusal is sent to the model as a
   * correction, and the run continues within `maxSteps` and its budget. The check runs once for each answer, and again
   * if the process dies before the answer is stored; a failure of it fails the run with `ExtensionFailed`. It may ask
   * another agent by `Kernel.run`, whose tokens are not those of this run.
   */
  readonly until?: Check<AgentTypes.Output<NoInfer<Output>>, R> | undefined
  /**
   * The input: a Schema, whose JSON becomes the first message of a run. Agents that call it, programs and `Kernel.run`
   * give a value of it. Default: one text.
   */
  readonly input?: Schema.ConstraintCodec<I, unknown> | undefined
  /** The context that each run must be given: a Schema that encodes to an object. */
  readonly context?: ContextSchema<C> | undefined
  /** Reads the answer: a Schema, such as `Schema.Struct({ city: Schema.String })`. Default: the answer is a text. */
  readonly output?: Output | undefined
  /** Only agents have this field: passing an agent as options is an error, since its `output` would be encoded twice. */
  readonly typed?: undefined
}

/**
 * The type of a run's context when it is read: that of the agent's schema, or a JSON object without one.
 */
export type ContextOf<C> = [C] extends [never] ? JsonObject : C

/**
 * The values that a run of an agent may be given beside texts, media and contents: those of its `input` schema.
 */
export type InputOf<I> = unknown extends I ? never : I | Unstored<I>

/** A value whose stored media may be any media, which a run stores first. */
type Unstored<A> = A extends Media & { readonly id: string }
  ? Media
  : A extends string | number | boolean | bigint | symbol | null | undefined | Date | ((...args: never) => unknown)
    ? A
    : { readonly [K in keyof A]: Unstored<A[K]> }

/**
 * A skill that an agent lists by its name. Its events carry the name; their input and output are unknown.
 */
export interface Named<out Name extends string> extends AnySkill {
  readonly name: Name
}

/**
 * Derives types of an agent from its options: `S` are the skills that it lists, and `Members` the agents.
 */
export declare namespace AgentTypes {
  /** An agent of any type, or the name of one. */
  type Member = Agent<unknown, AnySkill<unknown>, unknown, unknown> | string

  /** The type of an answer: that of its schema, or text without one. */
  type Output<O> = O extends Schema.Constraint ? O["Type"] : string

  /**
   * The skills that type the events of an agent: its own, and those of its agents. They are read from a field, since the
   * compiler shows such a union by its members, and others by the alias that made them.
   */
  type Skills<S, Members> = (Entries<Listed<S>> | SkillsIn<Members>)["skill"]

  /** The services of skill values, and of agents. A skill of unknown services takes them from where it is registered. */
  type Services<S, Members> = Known<SkillTypes.Services<ValuesOf<S>>> | ServicesIn<Members>

  /**
   * A type that is not inferred from the place where the result is used: an agent made there would take the `any` of a
   * function of any effects for its own services. `NoInfer` would do the same, but hides the members of a union.
   */
  type Settled<A> = [A] extends [infer Same] ? Same : never

  /** Makes the compile error say why an output cannot be used. */
  type SchemaOf<O> = O extends Schema.ConstraintDecoder<unknown> | undefined
    ? unknown
    : O extends Schema.Constraint
      ? { readonly output: "`output` takes a Schema that needs no services" }
      : { readonly output: "`output` takes a Schema: put the fields into Schema.Struct({ … })" }

  /** Makes the compile error say that an agent lacks the context which the agents it reaches declare. */
  type ContextFor<Members, C> = [Lacking<Members, C>] extends [never]
    ? unknown
    : { readonly context: "an agent declares the context that the agents it reaches read" }
}

/** The entries of a list of skills: any skill for `all` and for a list whose type is not known. */
type Listed<S> = S extends ReadonlyArray<infer Entry> ? Entry : S extends "all" ? AnySkill<unknown> : never

interface Holds<out S> {
  readonly skill: S
}

type ValuesOf<S> = Extract<Listed<S>, AnySkill<unknown>>

type Entries<Entry> = Entry extends string
  ? Holds<string extends Entry ? AnySkill<unknown> : Named<Entry>>
  : Entry extends AnySkill<unknown>
    ? Holds<Entry>
    : never

type SkillsIn<Members> = Members extends Agent<unknown, infer S, unknown, unknown> ? Holds<S> : never

type ServicesIn<Members> = Members extends Agent<unknown, AnySkill<unknown>, infer R, unknown> ? Known<R> : never

type Known<R> = unknown extends R ? never : R

export type AnyOptions = Options<
  unknown,
  ReadonlyArray<AnySkill<unknown> | string> | "all",
  Schema.ConstraintDecoder<unknown>,
  AgentTypes.Member,
  unknown
>

type Lacking<Members, C> =
  Members extends Agent<unknown, AnySkill<unknown>, unknown, infer Needed>
    ? [Needed] extends [never]
      ? never
      : unknown extends Needed
        ? never
        : [C] extends [never]
          ? Needed
          : [C] extends [Needed]
            ? never
            : Needed
    : never
