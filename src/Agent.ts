/**
 * Who runs: a plain value of instructions, model and rights.
 *
 * An agent holds no state and no connection. Its skills and protocols are a
 * whitelist over what the registries hold; its `output` schema types the
 * result of its runs. Instructions may be an Effect, read again at every turn.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Strings from "effect/String"
import type { ExecutionBudget, SpawnBudget } from "./Budget.ts"
import type { DialectName } from "./Dialect.ts"
import type { Generation } from "./Generation.ts"
import * as Generations from "./Generation.ts"
import * as Configs from "./internal/agent/agentConfig.ts"
import { jsonObject, type JsonObject } from "./internal/base/json.ts"
import { resolve, withDefinitions } from "./internal/base/jsonSchema.ts"
import { timeSpan } from "./internal/base/timeSpan.ts"
import type { Markup } from "./internal/words/markup.ts"
import { AgentConfigInvalid } from "./KernelError.ts"
import type { Model } from "./Model.ts"
import type { AnySkill } from "./Skill.ts"

export { AgentConfigInvalid }

/**
 * What prose without blocks means (BP-42): the answer of an agent that cannot
 * act and a fault of one that can (`auto`), always the answer (`final`), or
 * always a fault (`corrective`).
 *
 * An empty reply is no answer: the model is asked again. Only an agent
 * that speaks blocks, cannot act and is `auto` may answer with nothing (BP-40).
 *
 * @category models
 * @since 0.1.0
 */
export type Prose = "auto" | "final" | "corrective"

/**
 * How a turn is spoken: blocks in text, or native tool calls.
 *
 * @category models
 * @since 0.1.0
 */
export type { DialectName }

/**
 * An agent. `Output` is what its runs give, `Skills` types its events, `R` is
 * what its instructions need.
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
export interface Agent<out Output = string, out Skills extends AnySkill<unknown> = AnySkill<unknown>, out R = never> {
  /** Who it is in logs, events and stored runs; a worker knows it by this. Default: `agent`. */
  readonly name: string
  /** What it is for: told to those who may call it, such as an MCP client, and to telemetry. */
  readonly description: string | undefined
  /** What it is told to be: a text, or an Effect that is asked again at every turn. */
  readonly instructions: string | Effect.Effect<string, never, R>
  /**
   * A model of the provider in the layer, by its name or as a value, or `<provider>/<model>` for the ModelRegistry. One
   * that only its name is known of takes and gives text: one that sees is `Model.make(id, { capabilities: … })`.
   */
  readonly model: Model | string
  /** What it may call: undefined for nothing, `all`, or a list of names and skills (BP-94). */
  readonly skills: ReadonlyArray<Skills | string> | "all" | undefined
  /**
   * Where `skills`, and what a skill requires of the model, are enforced (BP-66): when a call runs (`dispatch`), or
   * only in what the model is shown (`listing`). Default: `dispatch`.
   */
  readonly gate: "dispatch" | "listing"
  /** Protocols it may speak: undefined for all that are registered, else the named ones (BP-78). */
  readonly protocols: ReadonlyArray<string> | undefined
  /** Turns before `MaxStepsReached` (BP-40). Default: 10. */
  readonly maxSteps: number
  /** What prose without blocks means. Default: `auto`. */
  readonly prose: Prose
  /** How a turn is spoken. Default: `blocks`. */
  readonly dialect: DialectName
  /** Other markups its model's calls are understood in, tried in this order (see `Dialect.markups`). Default: none. */
  readonly markups: ReadonlyArray<Markup>
  /** Whether its replies are held to the grammar of its dialect, by providers that take one (see `Grammar`). Default: no. */
  readonly grammar: boolean
  /** Calls of one reply that may run at once; results keep source order (DR-12). Default: 1, one after the other. */
  readonly concurrency: number
  /** Tasks of a workflow that may run at once. Default: 8. */
  readonly taskConcurrency: number
  /** How its replies are generated, such as the temperature. Default: as the vendor does (Anthropic: 4096 tokens). */
  readonly generation: Generation
  /**
   * How often in a row the same calls, or a circle of up to three turns, may give the same results before the model is
   * told so; doing it once more then fails with `LoopDetected`. So does a reply that comes again after it was corrected
   * that often. Default: repetitions are not looked for.
   */
  readonly maxRepeats: number | undefined
  /** Limits of a run and its children. Default: none. */
  readonly budget: ExecutionBudget
  /** Limits of the whole tree of runs under a root run (CP-15). Default: `Budget.spawnDefaults`. */
  readonly spawn: SpawnBudget | undefined
  /**
   * Tokens of a prompt and of what is kept free for the reply, together (AC-9). Default: no prompt is too long, and a
   * pipeline that compacts goes by the model's own window.
   */
  readonly contextWindow: number | undefined
  /** Tokens kept free for the reply. Default: 4096. */
  readonly reservedOutputTokens: number
  /**
   * Reads the text of the final block: `Schema.String`, or JSON of the caller's schema. A schema whose JSON is a
   * string takes a text without quotes, too. The tasks of a workflow answer in words.
   */
  readonly output: Schema.ConstraintDecoder<Output>
  /** Whether `output` is the caller's own schema: its misfits are told to the model. */
  readonly typed: boolean
  /** The JSON Schema of a typed answer, made when a prompt needs it. */
  readonly outputJsonSchema: (() => { readonly [key: string]: unknown }) | undefined
  /** Keys of its config that mean nothing here, at any depth, kept for whoever wrote them (AC-23). */
  readonly extra: JsonObject
}

/** What may be left out, or be undefined, which is the same. */
type Optional<A> = { readonly [K in keyof A]?: A[K] | undefined }

/**
 * What an agent can be made of.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<
  R,
  S = AnySkill<unknown> | string,
  Output = Schema.ConstraintDecoder<unknown>
> extends Optional<
  Pick<
    Agent,
    | "name"
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
    | "maxRepeats"
    | "generation"
    | "budget"
    | "spawn"
    | "contextWindow"
    | "reservedOutputTokens"
  >
> {
  /** What it is told to be: a text, or an Effect that is asked again at every turn. */
  readonly instructions: string | Effect.Effect<string, never, R>
  /**
   * A model of the provider in the layer, by its name or as a value, or `<provider>/<model>` for the ModelRegistry. One
   * that only its name is known of takes and gives text: one that sees is `Model.make(id, { capabilities: … })`.
   */
  readonly model: Model | string
  /** What it may call: undefined for nothing, `all`, or a list of names and skills (BP-94). */
  readonly skills?: ReadonlyArray<S> | "all" | undefined
  /** Reads the answer: a Schema, such as `Schema.Struct({ city: Schema.String })`. Default: the answer is a text. */
  readonly output?: Output | undefined
  /** Only an agent has this, and an agent is no options: `make` would take its `output` for a schema of yours. */
  readonly typed?: undefined
}

/** The type of an answer: that of its schema, or text without one. */
type OutputOf<Output> = Output extends Schema.Constraint ? Output["Type"] : string

/** The skills that type the events of an agent: values alone. A name may be any skill's. */
type SkillsOf<S> = [S] extends [never] ? AnySkill<unknown> : [S] extends [AnySkill<unknown>] ? S : AnySkill<unknown>

/** Explains to the compiler why an output cannot be used. */
type SchemaOf<Output> = Output extends Schema.ConstraintDecoder<unknown> | undefined
  ? unknown
  : Output extends Schema.Constraint
    ? { readonly output: "`output` takes a Schema that needs no services" }
    : { readonly output: "`output` takes a Schema: put the fields into Schema.Struct({ … })" }

/**
 * Makes an agent.
 *
 * An agent that differs from another is made of that one, without `make`:
 * `const native: typeof agent = { ...agent, dialect: "tools" }`.
 *
 * Skill values instead of names type the events of its runs; they still have to
 * be in the registry. A list may hold both, since what comes from elsewhere, such
 * as the tools of an MCP server, has only a name; events are typed by a list of
 * values alone. Values an agent cannot have fail its runs with
 * `AgentConfigInvalid`.
 *
 * @category constructors
 * @since 0.1.0
 */
export function make<const S extends AnySkill<unknown> | string = AnySkill<unknown>, Output = undefined, R = never>(
  options: Options<R, S, Output> & SchemaOf<Output>
): Agent<OutputOf<Output>, SkillsOf<S>, R>
export function make<R>(options: Options<R>): Agent<unknown, AnySkill<unknown>, R> {
  return {
    name: options.name ?? "agent",
    description: options.description,
    instructions: options.instructions,
    model: options.model,
    skills: options.skills,
    gate: options.gate ?? "dispatch",
    protocols: options.protocols,
    maxSteps: options.maxSteps ?? 10,
    prose: options.prose ?? "auto",
    dialect: options.dialect ?? "blocks",
    markups: options.markups ?? [],
    grammar: options.grammar ?? false,
    concurrency: options.concurrency ?? 1,
    taskConcurrency: options.taskConcurrency ?? 8,
    maxRepeats: options.maxRepeats,
    generation: options.generation ?? Generations.empty,
    budget: options.budget ?? {},
    spawn: options.spawn,
    contextWindow: options.contextWindow,
    reservedOutputTokens: options.reservedOutputTokens ?? 4096,
    output: options.output === undefined ? Schema.String : Schema.fromJsonString(Schema.toCodecJson(options.output)),
    typed: options.output !== undefined,
    outputJsonSchema: options.output === undefined ? undefined : schemaOf(options.output),
    extra: {}
  }
}

const schemaOf = (output: Schema.Constraint) => () => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(output)
  // Some servers want to see what kind of value it is without looking it up.
  return withDefinitions(resolve(schema, { $defs: jsonObject(definitions) }), definitions)
}

/**
 * An agent as plain JSON in snake_case, without what has its default (AC-23).
 *
 * Skill values are written as their names. Instructions that are an Effect
 * cannot be written, nor an output for which there is no JSON Schema.
 *
 * @category config
 * @since 0.1.0
 */
export const toConfig = (
  agent: Agent<unknown, AnySkill<unknown>, unknown>
): Result.Result<JsonObject, AgentConfigInvalid> => Configs.write(agent, skillNames(agent), plain)

const plain = make({ instructions: "", model: "" })

/**
 * The agent of a config (AC-23). Unknown keys are kept, `max_turns` and `budget.max_turns` are other names of
 * `max_steps`.
 *
 * A config with an `output_schema` needs the schema itself; `AgentFile` makes one from it.
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
    const { extra, outputSchema, told } = yield* Configs.read(config)
    if (outputSchema !== undefined && options === undefined) {
      return yield* Result.fail(invalid("output_schema", "needs the schema itself"))
    }
    const { skills, ...rest } = told
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
 * The names an agent lists: undefined for none, `all`, or the names.
 *
 * @category getters
 * @since 0.1.0
 */
export const skillNames = (
  agent: Agent<unknown, AnySkill<unknown>, unknown>
): "all" | ReadonlyArray<string> | undefined =>
  agent.skills === undefined || agent.skills === "all"
    ? agent.skills
    : agent.skills.map((skill) => (typeof skill === "string" ? skill : skill.name))

/**
 * Finds the first value an agent cannot have (AC-22).
 *
 * @category guards
 * @since 0.1.0
 */
export const problem = (agent: Agent<unknown, AnySkill<unknown>, unknown>): AgentConfigInvalid | undefined => {
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
    whole("maxSteps", agent.maxSteps, 0) ??
    whole("concurrency", agent.concurrency, 1) ??
    whole("taskConcurrency", agent.taskConcurrency, 1) ??
    whole("reservedOutputTokens", agent.reservedOutputTokens, 0) ??
    whole("maxRepeats", agent.maxRepeats, 1) ??
    whole("contextWindow", agent.contextWindow, 1) ??
    within("temperature", generation.temperature, Number.MAX_VALUE) ??
    whole("maxTokens", generation.maxTokens, 1) ??
    within("topP", generation.topP, 1) ??
    whole("seed", generation.seed, 1 - 2 ** 53) ??
    // Gemini thinks as much as it likes at -1.
    whole("thinking.budget", generation.thinking?.budget, -1) ??
    most("budget.maxTokens", budget.maxTokens) ??
    within("budget.maxCostUsd", budget.maxCostUsd) ??
    time("budget.deadline", budget.deadline) ??
    most("spawn.maxAgents", spawn?.maxAgents) ??
    most("spawn.maxDepth", spawn?.maxDepth) ??
    (budget.maxCostUsd !== undefined &&
    typeof model !== "string" &&
    !Number.isFinite(model.price && model.price.inputPerMillion + model.price.outputPerMillion)
      ? invalid("budget.maxCostUsd", `the model '${model.id}' has no price`)
      : undefined)
  )
}

const invalid = (path: string, reason: string) => new AgentConfigInvalid({ path, reason })
