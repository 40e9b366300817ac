/**
 * An agent as a plain value: instructions, a model, and what it may call.
 *
 * An agent holds no state and no connection. Its skills and protocols select from what the registries hold, and its
 * `output` schema types the result of its runs. Instructions may be an Effect, which runs at every turn.
 *
 * @since 0.1.0
 */

import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Strings from "effect/String"
import type { ExecutionBudget, SpawnBudget } from "./Budget.ts"
import type { DialectName } from "./Dialect.ts"
import type { Generation } from "./Generation.ts"
import * as Generations from "./Generation.ts"
import * as Configs from "./internal/agent/agentConfig.ts"
import { withOwnSkills as addOwnSkills } from "./internal/agent/ownSkills.ts"
import { misshapen } from "./internal/agent/agentShape.ts"
import * as Team from "./internal/agent/team.ts"
import type { ContextSchema } from "./internal/agent/team.ts"
import { attempt } from "./kit/foreignCode.ts"
import { type Json, jsonObject, type JsonObject } from "./kit/json.ts"
import { perObject } from "./kit/perObject.ts"
import { valueSchema } from "./kit/jsonSchema.ts"
import { timeSpan } from "./kit/time.ts"
import type { Markup } from "./internal/words/markup.ts"
import { AgentConfigInvalid, type ProgramError } from "./KernelError.ts"
import type { Media } from "./Media.ts"
import type { Model } from "./Model.ts"
import type { ProviderShape } from "./Provider.ts"
import type { AnySkill, SkillTypes } from "./Skill.ts"
import type { SkillRegistryShape } from "./SkillRegistry.ts"

export { AgentConfigInvalid }

/**
 * How a reply of prose without blocks is understood: as the answer if the agent cannot act and as a fault if it can
 * (`auto`), always as the answer (`final`), or always as a fault (`corrective`).
 *
 * An empty reply is not an answer, and the model is asked again. The exception is `auto` for an agent in the block
 * dialect that cannot act: its answer may be empty.
 *
 * @category models
 * @since 0.1.0
 */
export type Prose = "auto" | "final" | "corrective"

/**
 * The name of a dialect: blocks in text, or native tool calls.
 *
 * @category models
 * @since 0.1.0
 */
export type { DialectName }

/**
 * The Schema of a run's context. It needs no services and encodes to an object.
 *
 * @category models
 * @since 0.1.0
 */
export type { ContextSchema }

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
 *
 * @category models
 * @since 0.1.0
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
   *
   * @since 0.1.0
   */
  readonly mcpServers: { readonly [name: string]: JsonObject } | undefined
  /** Unknown keys of its config, at any depth. `toConfig` writes them back. */
  readonly extra: JsonObject
}

/**
 * Accepts an answer with undefined, or refuses it with the reason, which the model reads.
 *
 * @category models
 * @since 0.1.0
 */
export type Check<in Answer, out R = never> = (
  answer: Answer,
  reply: { readonly text: string; readonly turn: number }
) => Effect.Effect<string | undefined, unknown, R>

/** All fields optional; undefined is the same as absent. */
type Optional<A> = { readonly [K in keyof A]?: A[K] | undefined }

/** An agent of any type, or the name of one. */
type AnyMember = Agent<unknown, AnySkill<unknown>, unknown, unknown> | string

/**
 * The options of `make`. Defaults are given at the fields of `Agent`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<
  R,
  S = ReadonlyArray<AnySkill<unknown> | string> | "all" | undefined,
  Output = Schema.ConstraintDecoder<unknown>,
  Members = AnyMember,
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
  readonly until?: Check<OutputOf<NoInfer<Output>>, R> | undefined
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
 *
 * @category models
 * @since 0.1.0
 */
export type ContextOf<C> = [C] extends [never] ? JsonObject : C

/**
 * The values that a run of an agent may be given beside texts, media and contents: those of its `input` schema.
 *
 * @category models
 * @since 0.1.0
 */
export type InputOf<I> = unknown extends I ? never : I | Unstored<I>

/** A value whose stored media may be any media, which a run stores first. */
type Unstored<A> = A extends Media & { readonly id: string }
  ? Media
  : A extends string | number | boolean | bigint | symbol | null | undefined | Date | ((...args: never) => unknown)
    ? A
    : { readonly [K in keyof A]: Unstored<A[K]> }

/** The type of an answer: that of its schema, or text without one. */
type OutputOf<Output> = Output extends Schema.Constraint ? Output["Type"] : string

/**
 * A skill that an agent lists by its name. Its events carry the name; their input and output are unknown.
 *
 * @category models
 * @since 0.1.0
 */
export interface Named<out Name extends string> extends AnySkill {
  readonly name: Name
}

/** The entries of a list of skills: any skill for `all` and for a list whose type is not known. */
type Listed<S> = S extends ReadonlyArray<infer Entry> ? Entry : S extends "all" ? AnySkill<unknown> : never

/**
 * The skills that type the events of an agent: its own, and those of its agents. They are read from a field, since the
 * compiler shows such a union by its members, and others by the alias that made them.
 */
type SkillsOf<S, Members> = (Entries<Listed<S>> | SkillsIn<Members>)["skill"]

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

/** The services of skill values, and of agents. A skill of unknown services takes them from where it is registered. */
type ServicesOf<S, Members> = Known<SkillTypes.Services<ValuesOf<S>>> | ServicesIn<Members>

type ServicesIn<Members> = Members extends Agent<unknown, AnySkill<unknown>, infer R, unknown> ? Known<R> : never

type Known<R> = unknown extends R ? never : R

/**
 * Derives types of an agent from the skills and agents that it lists.
 *
 * @category models
 * @since 0.1.0
 */
export declare namespace AgentTypes {
  /** The skills that type its events. */
  type Skills<S, Members> = SkillsOf<S, Members>
  /** The services that its skill values and its agents need. */
  type Services<S, Members> = ServicesOf<S, Members>
}

type AnyOptions = Options<
  unknown,
  ReadonlyArray<AnySkill<unknown> | string> | "all",
  Schema.ConstraintDecoder<unknown>,
  AnyMember,
  unknown
>

/**
 * A type that is not inferred from the place where the result is used: an agent made there would take the `any` of a
 * function of any effects for its own services. `NoInfer` would do the same, but hides the members of a union.
 */
type Settled<A> = [A] extends [infer Same] ? Same : never

/** Makes the compile error say why an output cannot be used. */
type SchemaOf<Output> = Output extends Schema.ConstraintDecoder<unknown> | undefined
  ? unknown
  : Output extends Schema.Constraint
    ? { readonly output: "`output` takes a Schema that needs no services" }
    : { readonly output: "`output` takes a Schema: put the fields into Schema.Struct({ … })" }

/** Makes the compile error say that an agent lacks the context which the agents it reaches declare. */
type ContextFor<Members, C> = [Lacking<Members, C>] extends [never]
  ? unknown
  : { readonly context: "an agent declares the context that the agents it reaches read" }

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

/**
 * Creates an agent.
 *
 * To change an agent, copy it instead of calling `make`: `const native: typeof agent = { ...agent, dialect: "tools" }`.
 *
 * Skill values need no registration. They type the events of its runs, and their services become services of the run. A
 * skill that is also registered runs as registered. A list may mix values and names, such as those of MCP tools. An
 * agent with an invalid setting is created all the same, and its runs fail with `AgentConfigInvalid`: so does a run of an
 * agent that lists a name no skill has, unless it begins with `mcp_` or `a2a_`, as tools of a server that is away do.
 *
 * @example
 * const desk = Agent.make({ name: "desk", instructions: "…", model: "m", agents: [researcher], handoffs: [billing] })
 *
 * @category constructors
 * @since 0.1.0
 */
export function make<
  const S extends ReadonlyArray<AnySkill<unknown> | string> | "all" | undefined = undefined,
  Output = undefined,
  R = never,
  const Members extends AnyMember = never,
  C = never,
  I = unknown,
  const Handoffs extends AnyMember = never
>(
  options: Options<R, S, Output, Members, C, I, Handoffs> & SchemaOf<Output> & ContextFor<Members | Handoffs, C>
): Agent<
  OutputOf<Output>,
  SkillsOf<S, Members | Handoffs>,
  Settled<R> | ServicesOf<S, Members | Handoffs>,
  Settled<C>,
  I
>
export function make(options: AnyOptions): Agent<unknown, AnySkill<unknown>, unknown, unknown> {
  return {
    name: options.name ?? "agent",
    aliases: options.aliases ?? [],
    version: options.version,
    description: options.description,
    instructions: instructionsOf(options),
    model: options.model,
    provider: options.provider,
    skills: options.skills,
    agents: options.agents ?? [],
    handoffs: options.handoffs ?? [],
    until: options.until,
    input: options.input,
    context: options.context,
    gate: options.gate ?? "dispatch",
    protocols: options.protocols,
    maxSteps: options.maxSteps ?? 10,
    prose: options.prose ?? "auto",
    dialect: options.dialect ?? "blocks",
    markups: options.markups ?? [],
    grammar: options.grammar ?? false,
    concurrency: options.concurrency ?? 1,
    taskConcurrency: options.taskConcurrency ?? 8,
    background: options.background ?? false,
    maxRepeats: options.maxRepeats,
    generation: options.generation ?? Generations.empty,
    budget: options.budget ?? {},
    spawn: options.spawn,
    contextWindow: options.contextWindow,
    reservedOutputTokens: options.reservedOutputTokens ?? 4096,
    output: options.output === undefined ? Schema.String : answerOf(options.output),
    typed: options.output !== undefined,
    outputJsonSchema: options.output === undefined ? undefined : schemaOf(options.output),
    mcpServers: options.mcpServers,
    extra: {}
  }
}

/** Instructions that are a function of the run's context become an Effect that reads it. */
const instructionsOf = ({ context: schema, instructions }: Pick<AnyOptions, "context" | "instructions">) =>
  isOfContext(instructions)
    ? Effect.flatMap(Team.RunContext, (stored) =>
        Effect.flatMap(Effect.orDie(contextOf({ context: schema }, { context: stored })), (context) => {
          const text = instructions(context)
          return typeof text === "string" ? Effect.succeed(text) : text
        })
      )
    : instructions

type OfContext = (context: unknown) => string | Effect.Effect<string, never, unknown>

// A service is a class and an Effect at once.
const isOfContext = (instructions: AnyOptions["instructions"]): instructions is OfContext =>
  typeof instructions === "function" && !Effect.isEffect(instructions)

/** Returns a value that is not a schema unchanged; `problem` reports it. */
const answerOf = (output: Schema.ConstraintDecoder<unknown>): Schema.ConstraintDecoder<unknown> =>
  attempt(() => (Schema.isSchema(output) ? Schema.fromJsonString(Schema.toCodecJson(output)) : output), output)

const schemaOf = (output: Schema.Constraint) => {
  let schema: ReturnType<typeof valueSchema> | undefined
  return () => (schema ??= valueSchema(output))
}

export {
  /**
   * Returns agents by their names and by their aliases. The name of an agent comes before another one's alias.
   *
   * @category getters
   * @since 0.1.0
   */
  byName
} from "./internal/agent/team.ts"

export {
  /**
   * The Schema of an agent's config: plain JSON in snake_case. Only `system_prompt` and `model` are required.
   *
   * @category config
   * @since 0.1.0
   */
  Config,
  /**
   * Returns the error of the first key of a config that is neither known nor a user's own, such as `x_owner`. `fromConfig`
   * keeps such keys; a file written by a person rather refuses them.
   *
   * @category config
   * @since 0.1.0
   */
  unknownKey
} from "./internal/agent/agentConfig.ts"

/**
 * Encodes an agent as plain JSON in snake_case, without defaults.
 *
 * Skill values are written as their names. Fails for instructions that are an Effect, for an output without a JSON
 * Schema, and for an agent with `agents`, `handoffs` or a `provider`.
 *
 * @category config
 * @since 0.1.0
 */
export const toConfig = (
  agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>
): Result.Result<JsonObject, AgentConfigInvalid> =>
  agent.provider !== undefined
    ? Result.fail(invalid("provider", "it is an Effect: only text can be written down"))
    : agent.agents.length + agent.handoffs.length > 0
      ? Result.fail(
          invalid(agent.agents.length > 0 ? "agents" : "handoffs", "a config holds one agent: write each by itself")
        )
      : Configs.write(agent, skillNames(agent), plain)

const plain = make({ instructions: "", model: "" })

/**
 * Reads an agent from a config. Unknown keys are kept; `max_turns` and `budget.max_turns` are accepted for `max_steps`.
 *
 * A config with an `output_schema` needs the schema as an option; `AgentFile` creates one from it.
 *
 * @category config
 * @since 0.1.0
 */
export function fromConfig(config: unknown): Result.Result<Agent, AgentConfigInvalid>
export function fromConfig<Output>(
  config: unknown,
  options: { readonly output: Schema.ConstraintDecoder<Output> }
): Result.Result<Agent<Output>, AgentConfigInvalid>
export function fromConfig(
  config: unknown,
  options?: { readonly output: Schema.ConstraintDecoder<unknown> }
): Result.Result<Agent<unknown>, AgentConfigInvalid> {
  return Result.gen(function* () {
    const { extra, outputSchema, settings } = yield* Configs.read(config)
    if (outputSchema !== undefined && options === undefined) {
      return yield* Result.fail(invalid("output_schema", "needs the schema as an option"))
    }
    const { skills, ...rest } = settings
    const named = skills === undefined ? {} : { skills }
    const agent = {
      ...(options === undefined ? make({ ...rest, ...named }) : make({ ...rest, ...named, output: options.output })),
      extra
    }
    const wrong = problem(agent)
    if (wrong === undefined) return agent
    return yield* Result.fail(invalid(Strings.camelToSnake(wrong.path), wrong.reason))
  })
}

/**
 * Returns the skills an agent lists: undefined for none, `all`, or their names.
 *
 * @category getters
 * @since 0.1.0
 */
export const skillNames = (
  agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>
): "all" | ReadonlyArray<string> | undefined =>
  agent.skills === undefined || agent.skills === "all"
    ? agent.skills
    : agent.skills.map((skill) => (typeof skill === "string" ? skill : skill.name))

/** Hooks and policies receive the stored context of the run as `context`, skills as `runContext`. */
type ContextScope = { readonly context: JsonObject } | { readonly runContext: Json }

/**
 * Decodes the context of a run by the Schema of an agent, or by a Schema: in a skill, a hook, a policy, a middleware or
 * a section of a prompt (`contextOf(desk, state)`). Without a declared context, returns the stored object.
 *
 * Fails with `AgentConfigInvalid` if a hook or a resume merged values that do not fit.
 *
 * @example
 * onTurnStarted: (args) => Effect.flatMap(Agent.contextOf(desk, args), ({ userId }) => Audit.note(userId))
 *
 * @category getters
 * @since 0.1.0
 */
export function contextOf<C>(
  declared: { readonly context: ContextSchema<C> | undefined } | ContextSchema<C>,
  scope: ContextScope
): Effect.Effect<ContextOf<C>, AgentConfigInvalid>
export function contextOf(
  declared: { readonly context: ContextSchema<unknown> | undefined } | ContextSchema<unknown>,
  scope: ContextScope
): Effect.Effect<unknown, AgentConfigInvalid> {
  const context = jsonObject("context" in scope ? scope.context : scope.runContext)
  const schema = "context" in declared ? declared.context : declared
  return schema === undefined ? Effect.succeed(context) : Team.decodeContext(schema, context)
}

/**
 * Returns the agents of a team by name: the agent itself, and all that it reaches by `agents` and `handoffs`.
 *
 * @category getters
 * @since 0.1.0
 */
export const team = <R>(
  first: Agent<unknown, AnySkill<unknown>, R, unknown>
): ReadonlyMap<string, Agent<unknown, AnySkill<unknown>, R, unknown>> =>
  Team.of<Agent<unknown, AnySkill<unknown>, R, unknown>>(first).members

/**
 * Returns a registry that also holds the skill values of an agent and its team, provided with services, as the kernel
 * makes one for a run.
 *
 * @category combinators
 * @since 0.1.0
 */
export const withOwnSkills: {
  <R>(
    agent: Agent<unknown, AnySkill<unknown>, R, unknown>,
    services: Context.Context<R>
  ): (registry: SkillRegistryShape) => SkillRegistryShape
  <R>(
    registry: SkillRegistryShape,
    agent: Agent<unknown, AnySkill<unknown>, R, unknown>,
    services: Context.Context<R>
  ): SkillRegistryShape
} = /* @__PURE__ */ dual(
  3,
  <R>(
    registry: SkillRegistryShape,
    agent: Agent<unknown, AnySkill<unknown>, R, unknown>,
    services: Context.Context<R>
  ): SkillRegistryShape => addOwnSkills(registry, Array.from(team(agent).values()), services)
)

/**
 * Returns the first invalid setting of an agent or of the agents it reaches, or undefined.
 *
 * @category guards
 * @since 0.1.0
 */
export const problem = (agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>): AgentConfigInvalid | undefined =>
  checked(agent).problem

/** An agent is checked once, not in each of its runs. */
const checked = perObject((agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>) => ({
  problem: settingProblem(agent) ?? teamProblem(agent)
}))

const teamProblem = (agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>): AgentConfigInvalid | undefined => {
  if (agent.agents.length + agent.handoffs.length === 0) return undefined
  const { members, problem } = Team.of(agent)
  if (problem !== undefined) return invalid(problem.path, problem.reason)
  for (const [name, member] of members) {
    const wrong = member === agent ? undefined : settingProblem(member)
    if (wrong !== undefined) return invalid(`${name}.${wrong.path}`, wrong.reason)
  }
  return undefined
}

const settingProblem = (agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>): AgentConfigInvalid | undefined => {
  const shape = misshapen(agent)
  if (shape !== undefined) return invalid(shape.path, shape.reason)
  const { budget, generation, model, spawn } = agent
  const whole = (path: string, value: number | undefined, minimum: number) =>
    value === undefined || (Number.isSafeInteger(value) && value >= minimum)
      ? undefined
      : invalid(path, `expected a whole number of at least ${minimum}, got ${value}`)
  const most = (path: string, value: number | undefined) => (value === Infinity ? undefined : whole(path, value, 0))
  const within = (path: string, value: number | undefined, maximum = Infinity) =>
    value === undefined || (value >= 0 && value <= maximum)
      ? undefined
      : invalid(path, `expected a number from 0 to ${maximum}, got ${value}`)
  const time = (path: string, value: Duration.Input | undefined) =>
    value === undefined || Option.isSome(timeSpan(value))
      ? undefined
      : invalid(path, `expected a duration of zero or more, got ${String(value)}`)
  return (
    (agent.name === "" ? invalid("name", "is empty") : undefined) ??
    (model === "" ? invalid("model", "is empty") : undefined) ??
    (typeof model !== "string" && model.id === "" ? invalid("model.id", "is empty") : undefined) ??
    whole("maxSteps", agent.maxSteps, 1) ??
    whole("concurrency", agent.concurrency, 1) ??
    whole("taskConcurrency", agent.taskConcurrency, 1) ??
    whole("reservedOutputTokens", agent.reservedOutputTokens, 0) ??
    whole("maxRepeats", agent.maxRepeats, 1) ??
    whole("contextWindow", agent.contextWindow, 1) ??
    within("temperature", generation.temperature, Number.MAX_VALUE) ??
    whole("maxTokens", generation.maxTokens, 1) ??
    within("topP", generation.topP, 1) ??
    whole("seed", generation.seed, 1 - 2 ** 53) ??
    // At -1, Gemini chooses the amount itself.
    whole("thinking.budget", generation.thinking?.budget, -1) ??
    most("budget.maxTokens", budget.maxTokens) ??
    within("budget.maxCostUsd", budget.maxCostUsd) ??
    time("budget.deadline", budget.deadline) ??
    most("spawn.maxAgents", spawn?.maxAgents) ??
    most("spawn.maxConcurrent", spawn?.maxConcurrent) ??
    most("spawn.maxDepth", spawn?.maxDepth) ??
    (budget.maxCostUsd !== undefined && typeof model !== "string" ? unpriced(model) : undefined)
  )
}

/**
 * Returns the error of a model that cannot run under a cost budget because it has no price.
 *
 * @category guards
 * @since 0.1.0
 */
export const unpriced = (model: Model): AgentConfigInvalid | undefined =>
  Number.isFinite(model.price && model.price.inputPerMillion + model.price.outputPerMillion)
    ? undefined
    : invalid("budget.maxCostUsd", `the model '${model.id}' has no price`)

const invalid = (path: string, reason: string) => new AgentConfigInvalid({ path, reason })
