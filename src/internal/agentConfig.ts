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

const describe = <S extends Schema.Top>(schema: S, description: string): S["Rebuild"] =>
  schema.annotate({ description })

const key = <S extends Schema.Top>(schema: S, description: string) => Schema.optionalKey(describe(schema, description))

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
    version: key(Schema.Literal(1), "The version of this format"),
    name: key(Schema.NonEmptyString, "Who the agent is in logs and events"),
    description: key(Schema.String, "What it is for"),
    system_prompt: describe(Schema.String, "Its instructions"),
    model: describe(
      Schema.Union([Schema.NonEmptyString, ModelConfig]),
      "`<provider>/<model>`, or all that is known of a model"
    ),
    skills: key(
      Schema.Union([Schema.Literal("all"), strings, Schema.Null]),
      "The skills it may call: `all`, or a list of names; none when null or left out"
    ),
    protocols: key(Schema.NullOr(strings), "The protocols it may speak; all that are registered when null or left out"),
    gate: key(
      Schema.Literals(["dispatch", "listing"]),
      "Whether `skills` is enforced when a call runs, or only listed"
    ),
    max_steps: key(atLeast(0), "Turns before the run stops without an answer"),
    max_turns: key(atLeast(0), "Another name of max_steps"),
    prose: key(Schema.Literals(["auto", "final", "corrective"]), "What text without blocks means"),
    dialect: key(Schema.Literals(["blocks", "tools"]), "Blocks in text, or native tool calls"),
    markups: key(
      Schema.Array(Schema.Literals(["tool_call", "function", "invoke", "bracket", "fenced", "json"])),
      "Other markup its model's calls are understood in"
    ),
    grammar: key(Schema.Boolean, "Whether its replies are held to the grammar of its dialect, where a provider can"),
    concurrency: key(atLeast(1), "Calls of one reply that may run at once"),
    task_concurrency: key(atLeast(1), "Tasks of a workflow that may run at once"),
    max_repeats: key(atLeast(1), "How often the same calls may give the same results in a row"),
    temperature: key(amount, "How freely the model chooses"),
    max_tokens: key(atLeast(1), "The longest reply, in tokens"),
    top_p: key(amount.check(Schema.isLessThanOrEqualTo(1)), "The share of the likeliest tokens to choose from"),
    stop_sequences: key(strings, "Texts that end a reply"),
    seed: key(Schema.Int, "Makes choices repeatable, where a provider can"),
    thinking: key(
      Schema.Struct({ budget: Schema.optionalKey(Schema.Natural), effort: Schema.optionalKey(Schema.String) }),
      "How much the model may think before it answers"
    ),
    provider_options: key(Schema.Record(Schema.String, Schema.Json), "Further options, by the name of the provider"),
    budget: key(BudgetConfig, "What a run may spend"),
    spawn: key(SpawnConfig, "How many runs it may start, and how deep"),
    context_window: key(atLeast(1), "Tokens a prompt may take"),
    reserved_output_tokens: key(atLeast(0), "Tokens kept free for the reply"),
    output_schema: key(Schema.Record(Schema.String, Schema.Json), "JSON Schema of a typed answer")
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
    const extra = Object.fromEntries(Object.entries(json).filter(([key]) => !Object.hasOwn(Config.fields, key)))
    return { told: toldOf(fields), extra, outputSchema: fields.output_schema }
  })

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
      output_schema: outputSchema,
      ...agent.extra
    }
    const given = Object.entries(config).filter(([, value]) => value !== undefined)
    return Result.map(Result.mapError(Snapshot.take(Object.fromEntries(given)), refused), jsonObject)
  })
}

const schemaOf = (agent: Anyone): Result.Result<unknown, AgentConfigInvalid> =>
  agent.outputJsonSchema === undefined
    ? Result.succeed(undefined)
    : Result.try({
        try: agent.outputJsonSchema,
        catch: () => new AgentConfigInvalid({ path: "output", reason: "its schema cannot be written as JSON Schema" })
      })

const writeBudget = ({ deadlineMs, maxCostUsd, maxTokens, maxTurns }: ExecutionBudget): JsonObject =>
  present<JsonObject>({
    max_tokens: maxTokens,
    max_cost_usd: maxCostUsd,
    max_turns: maxTurns,
    deadline_s: deadlineMs === undefined ? undefined : deadlineMs / 1000
  })

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

/** The JSON Schema of a config. */
export const jsonSchema = (): JsonObject => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(Config)
  const own = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "kernai agent",
    description: "An agent: who runs, with which model and rights",
    ...schema,
    // A config may hold more than is known here: it is kept (AC-23).
    additionalProperties: true
  }
  const whole = Object.keys(definitions).length === 0 ? own : { ...own, $defs: definitions }
  return jsonObject(JSON.parse(JSON.stringify(whole)))
}
