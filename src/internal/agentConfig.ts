/**
 * Agents as configuration: plain JSON in snake_case, and back (AC-22, AC-23).
 *
 * What has its default is left out, what is unknown is kept. A value an agent
 * cannot have is refused with its path.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Agent, Options } from "../Agent.ts"
import { type ExecutionBudget, spawnDefaults } from "../Budget.ts"
import type { Generation } from "../Generation.ts"
import { AgentConfigInvalid } from "../KernelError.ts"
import type { Model, Price } from "../Model.ts"
import { Capability } from "../Model.ts"
import type { AnySkill } from "../Skill.ts"
import * as Fault from "./fault.ts"
import type { JsonObject } from "./json.ts"
import { isJsonObject, jsonObject } from "./json.ts"
import * as Snapshot from "./snapshot.ts"

type Anyone = Agent<unknown, AnySkill<unknown>, unknown>

/** What an agent is made of, as far as a config tells. */
export interface Told extends Options<never> {
  readonly instructions: string
  readonly skills?: "all" | ReadonlyArray<string>
}

// In one function, so that whoever uses no config has none in the bundle.
const describeConfig = () => {
  const strings = Schema.Array(Schema.String)
  const atLeast = (minimum: number) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum))
  const amount = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

  const ModelConfig = Schema.Struct({
    id: Schema.NonEmptyString,
    provider: Schema.optionalKey(Schema.String),
    capabilities: Schema.optionalKey(Schema.Array(Capability)),
    context_window: Schema.optionalKey(Schema.Natural),
    max_output_tokens: Schema.optionalKey(Schema.Natural),
    price: Schema.optionalKey(
      Schema.Struct({
        input_per_million: amount,
        output_per_million: amount,
        cached_per_million: Schema.optionalKey(amount)
      })
    )
  })

  const BudgetConfig = Schema.Struct({
    max_tokens: Schema.optionalKey(Schema.Natural),
    max_cost_usd: Schema.optionalKey(amount),
    max_turns: Schema.optionalKey(Schema.Natural),
    // Longer than any run: more could not be told in milliseconds.
    deadline_s: Schema.optionalKey(amount.check(Schema.isLessThanOrEqualTo(1e9)))
  })

  const SpawnConfig = Schema.Struct({
    max_agents: Schema.optionalKey(Schema.Natural),
    max_depth: Schema.optionalKey(Schema.Natural)
  })

  return Schema.Struct({
    version: Schema.optionalKey(Schema.Literal(1)),
    name: Schema.optionalKey(Schema.NonEmptyString),
    description: Schema.optionalKey(Schema.String),
    system_prompt: Schema.String,
    model: Schema.Union([Schema.NonEmptyString, ModelConfig]),
    skills: Schema.optionalKey(Schema.Union([Schema.Literal("all"), strings, Schema.Null])),
    protocols: Schema.optionalKey(Schema.NullOr(strings)),
    gate: Schema.optionalKey(Schema.Literals(["dispatch", "listing"])),
    max_steps: Schema.optionalKey(atLeast(0)),
    max_turns: Schema.optionalKey(atLeast(0)),
    prose: Schema.optionalKey(Schema.Literals(["auto", "final", "corrective"])),
    dialect: Schema.optionalKey(Schema.Literals(["blocks", "tools"])),
    markups: Schema.optionalKey(
      Schema.Array(Schema.Literals(["tool_call", "function", "invoke", "bracket", "fenced", "json"]))
    ),
    grammar: Schema.optionalKey(Schema.Boolean),
    concurrency: Schema.optionalKey(atLeast(1)),
    task_concurrency: Schema.optionalKey(atLeast(1)),
    max_repeats: Schema.optionalKey(atLeast(1)),
    temperature: Schema.optionalKey(amount),
    max_tokens: Schema.optionalKey(atLeast(1)),
    top_p: Schema.optionalKey(amount.check(Schema.isLessThanOrEqualTo(1))),
    stop_sequences: Schema.optionalKey(strings),
    seed: Schema.optionalKey(Schema.Int),
    thinking: Schema.optionalKey(
      Schema.Struct({ budget: Schema.optionalKey(atLeast(-1)), effort: Schema.optionalKey(Schema.String) })
    ),
    provider_options: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
    budget: Schema.optionalKey(BudgetConfig),
    spawn: Schema.optionalKey(SpawnConfig),
    context_window: Schema.optionalKey(atLeast(1)),
    reserved_output_tokens: Schema.optionalKey(atLeast(0)),
    output_schema: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json))
  })
}

/** The config of an agent. Every key but `system_prompt` and `model` may be left out. */
export const Config = /*#__PURE__*/ describeConfig()

type Fields = typeof Config.Type

const decode = /*#__PURE__*/ Schema.decodeUnknownResult(Config)

// ---------------------------------------------------------------- reading

/** What a config says, and the keys it holds besides. */
export const read = (
  config: unknown
): Result.Result<
  { readonly told: Told; readonly extra: JsonObject; readonly outputSchema: JsonObject | undefined },
  AgentConfigInvalid
> =>
  Result.gen(function* () {
    const json = yield* Result.mapError(Snapshot.take(config), refused)
    if (!isJsonObject(json)) return yield* Result.fail(refused({ path: "", reason: "expected an object" }))
    const fields = yield* Result.mapError(decode(json), (error) => refused(hinted(Fault.ofSchema(error), json)))
    return { told: toldOf(fields), extra: beyond(json, jsonObject(fields)), outputSchema: fields.output_schema }
  })

/** What an object holds besides what was read of it, at any depth. */
const beyond = (json: JsonObject, read: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(json).flatMap(([key, value]) => {
      if (!Object.hasOwn(read, key)) return [[key, value]]
      const more = beyond(jsonObject(value), jsonObject(read[key]))
      return Object.keys(more).length === 0 ? [] : [[key, more]]
    })
  )

/** Configs write what `Agent.make` calls `instructions` as their seed does (AC-23). */
const hinted = ({ path, reason }: Fault.Fault, json: JsonObject): Fault.Fault =>
  path === "/system_prompt" && json["instructions"] !== undefined
    ? { path, reason: `${reason}; a config says system_prompt, not instructions` }
    : { path, reason }

/** A fault by its place in the config: `budget.max_tokens`, `skills[2]`. */
const refused = ({ path, reason }: Fault.Fault): AgentConfigInvalid =>
  new AgentConfigInvalid({
    path: path
      .split("/")
      .slice(1)
      .reduce((text, part) => (/^\d+$/.test(part) ? `${text}[${part}]` : text === "" ? part : `${text}.${part}`), ""),
    reason
  })

const toldOf = (fields: Fields): Told => {
  const { budget, spawn, system_prompt: instructions } = fields
  const generation = generationOf(fields)
  return present({
    instructions,
    model: typeof fields.model === "string" ? fields.model : modelOf(fields.model),
    name: fields.name,
    description: fields.description,
    // Null says what leaving out says (AC-18).
    skills: fields.skills ?? undefined,
    protocols: fields.protocols ?? undefined,
    gate: fields.gate,
    maxSteps: fields.max_steps ?? fields.max_turns,
    prose: fields.prose,
    dialect: fields.dialect,
    markups: fields.markups,
    grammar: fields.grammar,
    concurrency: fields.concurrency,
    taskConcurrency: fields.task_concurrency,
    maxRepeats: fields.max_repeats,
    generation: Object.keys(generation).length === 0 ? undefined : generation,
    budget: budget === undefined ? undefined : budgetOf(budget),
    spawn:
      spawn === undefined
        ? undefined
        : {
            maxAgents: spawn.max_agents ?? spawnDefaults.maxAgents,
            maxDepth: spawn.max_depth ?? spawnDefaults.maxDepth
          },
    contextWindow: fields.context_window,
    reservedOutputTokens: fields.reserved_output_tokens
  })
}

const generationOf = (fields: Fields): Generation =>
  present({
    temperature: fields.temperature,
    maxTokens: fields.max_tokens,
    topP: fields.top_p,
    stopSequences: fields.stop_sequences,
    seed: fields.seed,
    thinking: fields.thinking,
    extra: fields.provider_options
  })

const budgetOf = (budget: NonNullable<Fields["budget"]>): ExecutionBudget =>
  present({
    maxTokens: budget.max_tokens,
    maxCostUsd: budget.max_cost_usd,
    maxTurns: budget.max_turns,
    deadlineMs: budget.deadline_s === undefined ? undefined : Math.round(budget.deadline_s * 1000)
  })

const modelOf = (config: Exclude<Fields["model"], string>): Model => {
  const { price } = config
  return present({
    id: config.id,
    capabilities: config.capabilities ?? ["text"],
    provider: config.provider,
    contextWindow: config.context_window,
    maxOutputTokens: config.max_output_tokens,
    price:
      price === undefined
        ? undefined
        : present<Price>({
            inputPerMillion: price.input_per_million,
            outputPerMillion: price.output_per_million,
            cachedPerMillion: price.cached_per_million
          })
  })
}

/** Without the fields that are undefined. */
const present = <A extends object>(fields: { readonly [K in keyof A]: A[K] | undefined }): A =>
  // Only optional fields of A are ever undefined here: an absent one is what exact types want.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as A

// ---------------------------------------------------------------- writing

/** An agent as its config, with the names of its skills; `defaults` is an agent that was told nothing. */
export const write = (
  agent: Anyone,
  skills: "all" | ReadonlyArray<string> | undefined,
  defaults: Anyone
): Result.Result<JsonObject, AgentConfigInvalid> => {
  const { generation, instructions, model } = agent
  if (typeof instructions !== "string") {
    const reason = "it is an Effect: only text can be written down"
    return Result.fail(new AgentConfigInvalid({ path: "instructions", reason }))
  }
  return Result.flatMap(schemaOf(agent), (outputSchema) => {
    const told = <K extends keyof Anyone>(key: K): Anyone[K] | undefined =>
      agent[key] === defaults[key] ? undefined : agent[key]
    const config: { readonly [key: string]: unknown } = {
      version: 1,
      name: told("name"),
      description: agent.description,
      system_prompt: instructions,
      model: typeof model === "string" ? model : writeModel(model),
      skills,
      protocols: agent.protocols,
      gate: told("gate"),
      max_steps: told("maxSteps"),
      prose: told("prose"),
      dialect: told("dialect"),
      markups: agent.markups.length === 0 ? undefined : agent.markups,
      grammar: told("grammar"),
      concurrency: told("concurrency"),
      task_concurrency: told("taskConcurrency"),
      max_repeats: agent.maxRepeats,
      temperature: generation.temperature,
      max_tokens: generation.maxTokens,
      top_p: generation.topP,
      stop_sequences: generation.stopSequences,
      seed: generation.seed,
      thinking: generation.thinking,
      provider_options: generation.extra,
      budget: Object.keys(agent.budget).length === 0 ? undefined : writeBudget(agent.budget),
      spawn:
        agent.spawn === undefined ? undefined : { max_agents: agent.spawn.maxAgents, max_depth: agent.spawn.maxDepth },
      context_window: agent.contextWindow,
      reserved_output_tokens: told("reservedOutputTokens"),
      output_schema: outputSchema
    }
    const given = Object.entries(besides(config, agent.extra)).filter(([, value]) => value !== undefined)
    return Result.map(Result.mapError(Snapshot.take(Object.fromEntries(given)), refused), jsonObject)
  })
}

/** What is told, and what a config held besides, each in its place. */
const besides = (told: { readonly [key: string]: unknown }, extra: JsonObject): { readonly [key: string]: unknown } =>
  Object.fromEntries(
    Object.entries({ ...told, ...extra, ...told }).map(([key, value]) => [
      key,
      isJsonObject(value) && Object.hasOwn(extra, key) ? besides(value, jsonObject(extra[key])) : (value ?? extra[key])
    ])
  )

const schemaOf = (agent: Anyone): Result.Result<unknown, AgentConfigInvalid> =>
  agent.outputJsonSchema === undefined
    ? Result.succeed(undefined)
    : Result.try({
        try: agent.outputJsonSchema,
        catch: () => new AgentConfigInvalid({ path: "output", reason: "its schema cannot be written as JSON Schema" })
      })

const writeBudget = ({ deadlineMs = Infinity, maxCostUsd, maxTokens, maxTurns }: ExecutionBudget): JsonObject =>
  present<JsonObject>({
    max_tokens: closed(maxTokens),
    max_cost_usd: closed(maxCostUsd),
    max_turns: closed(maxTurns),
    deadline_s: closed(deadlineMs / 1000)
  })

/** JSON has no number for an open limit, and needs none: it is none. */
const closed = (limit: number | undefined): number | undefined => (limit === Infinity ? undefined : limit)

const writeModel = ({ capabilities, contextWindow, id, maxOutputTokens, price, provider }: Model): JsonObject =>
  present<JsonObject>({
    id,
    capabilities,
    provider,
    context_window: contextWindow,
    max_output_tokens: maxOutputTokens,
    price:
      price === undefined
        ? undefined
        : present<JsonObject>({
            input_per_million: price.inputPerMillion,
            output_per_million: price.outputPerMillion,
            cached_per_million: price.cachedPerMillion
          })
  })
