/**
 * Reads and writes agents as plain JSON in snake_case.
 *
 * Defaults are left out, and unknown keys are kept. An invalid value fails with its path.
 */

import * as Duration from "effect/Duration"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Strings from "effect/String"
import { type ExecutionBudget, type SpawnBudget, spawnDefaults } from "../../Budget.ts"
import type { Generation } from "../../Generation.ts"
import { AgentConfigInvalid } from "../../KernelError.ts"
import type { Model, Price } from "../../Model.ts"
import { Capability } from "../../Model.ts"
import * as Fault from "../../kit/fault.ts"
import { isOwnKey, nearestKey } from "../../kit/fault.ts"
import type { JsonObject } from "../../kit/json.ts"
import { isEmpty, isJsonObject, isRecord, jsonObject } from "../../kit/json.ts"
import { shorten, visible } from "../../kit/text.ts"
import * as Snapshot from "../../kit/snapshot.ts"

const strings = Schema.Array(Schema.String)
const atLeast = (minimum: number) => Schema.Int.check(Schema.isGreaterThanOrEqualTo(minimum))
const amount = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))

const rates = {
  input_per_million: amount,
  output_per_million: amount,
  cached_per_million: Schema.optionalKey(amount),
  cache_write_per_million: Schema.optionalKey(amount)
}

const LongPromptConfig = Schema.Struct({ ...rates, above: Schema.Natural })

const PriceConfig = Schema.Struct({
  ...rates,
  long_prompt: Schema.optionalKey(LongPromptConfig),
  hosted: Schema.optionalKey(Schema.Record(Schema.String, amount))
})

const ModelConfig = Schema.Struct({
  id: Schema.NonEmptyString,
  provider: Schema.optionalKey(Schema.String),
  capabilities: Schema.optionalKey(Schema.Array(Capability)),
  context_window: Schema.optionalKey(Schema.Natural),
  max_output_tokens: Schema.optionalKey(Schema.Natural),
  dialect: Schema.optionalKey(Schema.Literals(["blocks", "tools"])),
  api: Schema.optionalKey(Schema.Literals(["chat", "responses"])),
  structured_output: Schema.optionalKey(Schema.Literals(["with_tools", "without_tools"])),
  price: Schema.optionalKey(PriceConfig)
})

const BudgetConfig = Schema.Struct({
  max_tokens: Schema.optionalKey(Schema.Natural),
  max_cost_usd: Schema.optionalKey(amount),
  max_turns: Schema.optionalKey(atLeast(1)),
  // Longer than any run. Larger values could not be expressed in milliseconds.
  deadline_s: Schema.optionalKey(amount.check(Schema.isLessThanOrEqualTo(1e9)))
})

const SpawnConfig = Schema.Struct({
  max_agents: Schema.optionalKey(Schema.Natural),
  max_concurrent: Schema.optionalKey(Schema.Natural),
  max_depth: Schema.optionalKey(Schema.Natural)
})

const ThinkingConfig = Schema.Struct({
  budget: Schema.optionalKey(atLeast(-1)),
  effort: Schema.optionalKey(Schema.String)
})

/** The config of an agent. Only `system_prompt` and `model` are required. */
export const Config = Schema.Struct({
  version: Schema.optionalKey(Schema.Literal(1)),
  name: Schema.optionalKey(Schema.NonEmptyString),
  aliases: Schema.optionalKey(strings),
  // `version` is that of the format.
  agent_version: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  system_prompt: Schema.String,
  model: Schema.Union([Schema.NonEmptyString, ModelConfig]),
  skills: Schema.optionalKey(Schema.Union([Schema.Literal("all"), strings, Schema.Null])),
  protocols: Schema.optionalKey(Schema.NullOr(strings)),
  gate: Schema.optionalKey(Schema.Literals(["dispatch", "listing"])),
  max_steps: Schema.optionalKey(atLeast(1)),
  max_turns: Schema.optionalKey(atLeast(1)),
  prose: Schema.optionalKey(Schema.Literals(["auto", "final", "corrective"])),
  dialect: Schema.optionalKey(Schema.Literals(["blocks", "tools", "auto"])),
  markups: Schema.optionalKey(
    Schema.Array(Schema.Literals(["tool_call", "function", "invoke", "bracket", "fenced", "json"]))
  ),
  grammar: Schema.optionalKey(Schema.Boolean),
  concurrency: Schema.optionalKey(atLeast(1)),
  task_concurrency: Schema.optionalKey(atLeast(1)),
  background: Schema.optionalKey(Schema.Boolean),
  max_repeats: Schema.optionalKey(atLeast(1)),
  temperature: Schema.optionalKey(amount),
  max_tokens: Schema.optionalKey(atLeast(1)),
  top_p: Schema.optionalKey(amount.check(Schema.isLessThanOrEqualTo(1))),
  stop_sequences: Schema.optionalKey(strings),
  seed: Schema.optionalKey(Schema.Int),
  thinking: Schema.optionalKey(ThinkingConfig),
  provider_options: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  budget: Schema.optionalKey(BudgetConfig),
  spawn: Schema.optionalKey(SpawnConfig),
  context_window: Schema.optionalKey(atLeast(1)),
  reserved_output_tokens: Schema.optionalKey(atLeast(0)),
  output_schema: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
  // Same name and format as in other programs.
  mcpServers: Schema.optionalKey(Schema.Record(Schema.String, Schema.Record(Schema.String, Schema.Json)))
})

type Fields = typeof Config.Type

/** Fields of a config that an agent also has, in camelCase. */
type SameFields = CamelFields<
  Pick<
    Fields,
    | "name"
    | "aliases"
    | "description"
    | "gate"
    | "max_steps"
    | "prose"
    | "dialect"
    | "markups"
    | "grammar"
    | "concurrency"
    | "task_concurrency"
    | "background"
    | "max_repeats"
    | "context_window"
    | "reserved_output_tokens"
    | "mcpServers"
  >
>

/** The settings of an agent that a config holds. */
interface AgentSettings extends SameFields {
  readonly version?: string
  readonly instructions: string
  readonly model: Model | string
  readonly skills?: "all" | ReadonlyArray<string>
  readonly protocols?: ReadonlyArray<string>
  readonly generation?: Generation
  readonly budget?: ExecutionBudget
  readonly spawn?: SpawnBudget
}

/** The parts of an agent that are written to a config. */
interface WritableAgent extends Every<Omit<AgentSettings, "skills" | "instructions">> {
  readonly instructions: unknown
  readonly model: Model | string
  readonly markups: NonNullable<AgentSettings["markups"]>
  readonly generation: Generation
  readonly budget: ExecutionBudget
  readonly outputJsonSchema: (() => unknown) | undefined
  readonly extra: JsonObject
}

type Every<A> = { readonly [K in keyof A]-?: A[K] | undefined }

const decode = Schema.decodeUnknownResult(Config)

// ---------------------------------------------------------------- reading

/** Reads a config. `extra` holds its unknown keys, at any depth. */
export const read = (
  config: unknown
): Result.Result<
  { readonly settings: AgentSettings; readonly extra: JsonObject; readonly outputSchema: JsonObject | undefined },
  AgentConfigInvalid
> =>
  Result.gen(function* () {
    const json = yield* Result.mapError(Snapshot.take(config), refused)
    if (!isJsonObject(json)) return yield* Result.fail(refused({ path: "", reason: "expected an object" }))
    const fields = yield* Result.mapError(decode(json), (error) => refused(hinted(Fault.ofSchema(error), json)))
    return { settings: settingsOf(fields), extra: beyond(json, jsonObject(fields)), outputSchema: fields.output_schema }
  })

/** Returns the error of the first key of a config that is neither known nor a user's own, such as `x_owner`. */
export const unknownKey = (config: unknown): AgentConfigInvalid | undefined => unknownKeyIn(config, Config.fields, [])

const unknownKeyIn = (value: unknown, fields: object, place: ReadonlyArray<string>): AgentConfigInvalid | undefined => {
  if (!isRecord(value)) return undefined
  const known = Object.keys(fields)
  for (const [key, item] of Object.entries(value)) {
    const path = [...place, visible(shorten(key, 60))]
    if (known.includes(key)) {
      const inner = nested.get(path.join("/"))
      const found = inner === undefined ? undefined : unknownKeyIn(item, inner.fields, path)
      if (found !== undefined) return found
    } else if (!isOwnKey(key) && !explained.has(key)) {
      return refused({ path: Fault.pointer(path), reason: `is not a known key${nearestKey(key, known)}` })
    }
  }
  return undefined
}

/** Keys that editors read, or whose mistakes other errors explain better. */
const explained: ReadonlySet<string> = new Set(["$schema", "instructions"])

/** The nested objects of a config that are checked for unknown keys. */
const nested: ReadonlyMap<string, { readonly fields: object }> = new Map<string, { readonly fields: object }>([
  ["model", ModelConfig],
  ["model/price", PriceConfig],
  ["model/price/long_prompt", LongPromptConfig],
  ["thinking", ThinkingConfig],
  ["budget", BudgetConfig],
  ["spawn", SpawnConfig]
])

/** Returns the keys of an object that are not in `read`, at any depth. */
const beyond = (json: JsonObject, read: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(json).flatMap(([key, value]) => {
      if (!Object.hasOwn(read, key)) return [[key, value]]
      const more = beyond(jsonObject(value), jsonObject(read[key]))
      return isEmpty(more) ? [] : [[key, more]]
    })
  )

/** Points out that a config has `system_prompt` where `Agent.make` has `instructions`. */
const hinted = ({ path, reason }: Fault.Fault, json: JsonObject): Fault.Fault =>
  path === "/system_prompt" && json["instructions"] !== undefined
    ? { path, reason: `${reason}; a config has system_prompt instead of instructions` }
    : { path, reason }

/** Returns a fault with its path in the config: `budget.max_tokens`, `skills[2]`. */
const refused = ({ path, reason }: Fault.Fault): AgentConfigInvalid =>
  new AgentConfigInvalid({
    path: path
      .split("/")
      .reduce((text, part) => (/^\d+$/.test(part) ? `${text}[${part}]` : text === "" ? part : `${text}.${part}`), ""),
    reason
  })

const settingsOf = (fields: Fields): AgentSettings => {
  const {
    agent_version,
    budget,
    max_tokens,
    max_turns,
    model,
    provider_options,
    seed,
    spawn,
    stop_sequences,
    ...more
  } = fields
  const { output_schema: _, system_prompt, temperature, thinking, top_p, version: __, ...rest } = more
  const generation = camel({ temperature, max_tokens, top_p, stop_sequences, seed, thinking })
  return present({
    ...camel(rest),
    version: agent_version,
    instructions: system_prompt,
    model: typeof model === "string" ? model : modelFrom(model),
    // Null is the same as absent.
    skills: rest.skills ?? undefined,
    protocols: rest.protocols ?? undefined,
    maxSteps: rest.max_steps ?? max_turns ?? budget?.max_turns,
    generation: present<Generation>({ ...generation, extra: provider_options }),
    budget: budget === undefined ? undefined : budgetOf(budget),
    spawn: spawn === undefined ? undefined : { ...spawnDefaults, ...camel(spawn) }
  })
}

const budgetOf = (fields: NonNullable<Fields["budget"]>): ExecutionBudget => {
  const { deadline_s, max_turns: _, ...rest } = fields
  return present({
    ...camel(rest),
    deadline: deadline_s === undefined ? undefined : Duration.millis(Math.round(deadline_s * 1e6) / 1e3)
  })
}

const modelFrom = ({ price, ...rest }: Exclude<Fields["model"], string>): Model =>
  present({ capabilities: textOnly, ...camel(rest), price: price === undefined ? undefined : priceOf(price) })

const priceOf = ({ hosted, long_prompt, ...price }: typeof PriceConfig.Type): Price =>
  present<Price>({
    ...camel(price),
    longPrompt: long_prompt === undefined ? undefined : camel(long_prompt),
    hosted
  })

const textOnly: Model["capabilities"] = ["text"]

type Camel<Key> = Key extends `${infer First}_${infer Rest}` ? `${First}${Capitalize<Camel<Rest>>}` : Key

type CamelFields<A> = { [K in keyof A as Camel<K> & string]: A[K] }

/** Renames fields from snake_case to camelCase. */
const camel = <A extends object>(fields: A): CamelFields<A> =>
  // `Camel` computes the same name as `snakeToCamel`.
  renamed(fields, Strings.snakeToCamel) as CamelFields<A>

/** Renames fields from camelCase to snake_case, without undefined ones. */
const snake = (fields: object): { readonly [key: string]: unknown } => present(renamed(fields, Strings.camelToSnake))

const renamed = (fields: object, rename: (key: string) => string): { readonly [key: string]: unknown } =>
  Object.fromEntries(Object.entries(fields).map(([key, value]) => [rename(key), value]))

/** Leaves out undefined fields. */
const present = <A extends object>(fields: { readonly [K in keyof A]: A[K] | undefined }): A =>
  // Only optional fields of A are ever undefined here, and exact optional types require them to be absent.
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as A

// ---------------------------------------------------------------- writing

/** Writes an agent as its config, with the names of its skills. `defaults` is an agent without any settings. */
export const write = (
  agent: WritableAgent,
  skills: "all" | ReadonlyArray<string> | undefined,
  defaults: WritableAgent
): Result.Result<JsonObject, AgentConfigInvalid> => {
  const { budget, description, instructions, model, protocols, spawn } = agent
  if (typeof instructions !== "string") {
    const reason = "it is an Effect: only text can be written down"
    return Result.fail(new AgentConfigInvalid({ path: "instructions", reason }))
  }
  return Result.flatMap(schemaOf(agent), (outputSchema) => {
    const { extra, maxTokens, seed, stopSequences, temperature, thinking, topP } = agent.generation
    const limits = writeBudget(budget)
    const { name, ...changed } = Object.fromEntries(
      optionalSettings.flatMap((key) => (agent[key] === defaults[key] ? [] : [[key, agent[key]]]))
    )
    const config = {
      version: 1,
      name,
      aliases: agent.aliases?.length === 0 ? undefined : agent.aliases,
      agent_version: agent.version,
      description,
      system_prompt: instructions,
      model: typeof model === "string" ? model : writeModel(model),
      skills,
      protocols,
      ...snake(changed),
      markups: agent.markups.length === 0 ? undefined : agent.markups,
      ...snake({ temperature, maxTokens, topP, stopSequences, seed, thinking }),
      provider_options: extra,
      budget: isEmpty(limits) ? undefined : limits,
      spawn: spawn === undefined ? undefined : snake(spawn),
      mcpServers: agent.mcpServers,
      output_schema: outputSchema
    }
    const given = Object.entries(withUnknown(config, agent.extra)).filter(([, value]) => value !== undefined)
    return Result.map(Result.mapError(Snapshot.take(Object.fromEntries(given)), refused), jsonObject)
  })
}

/** Settings that are written only if they differ from the defaults. */
const optionalSettings = [
  "name",
  "gate",
  "maxSteps",
  "prose",
  "dialect",
  "grammar",
  "concurrency",
  "taskConcurrency",
  "background",
  "maxRepeats",
  "contextWindow",
  "reservedOutputTokens"
] as const

/** Merges the unknown keys of the original config back in. */
const withUnknown = (
  known: { readonly [key: string]: unknown },
  extra: JsonObject
): { readonly [key: string]: unknown } =>
  Object.fromEntries(
    Object.entries({ ...known, ...extra, ...known }).map(([key, value]) => [
      key,
      isJsonObject(value) && Object.hasOwn(extra, key)
        ? withUnknown(value, jsonObject(extra[key]))
        : (value ?? extra[key])
    ])
  )

const schemaOf = (agent: WritableAgent): Result.Result<unknown, AgentConfigInvalid> =>
  agent.outputJsonSchema === undefined
    ? Result.succeed(undefined)
    : Result.try({
        try: agent.outputJsonSchema,
        catch: () => new AgentConfigInvalid({ path: "output", reason: "its schema cannot be written as JSON Schema" })
      })

const writeBudget = ({ deadline = "Infinity", ...limits }: ExecutionBudget): object => {
  // An unlimited budget is left out, because JSON has no Infinity, and so is a deadline that is too long for a config.
  const milliseconds = Duration.toMillis(deadline)
  const deadline_s = milliseconds > 1e12 ? Infinity : milliseconds / 1000
  return Object.fromEntries(Object.entries({ ...snake(limits), deadline_s }).filter(([, limit]) => limit !== Infinity))
}

const writeModel = ({ price, ...model }: Model): object => snake({ ...model, price: price && writePrice(price) })

const writePrice = ({ longPrompt, ...price }: Price): object =>
  snake({ ...price, longPrompt: longPrompt && snake(longPrompt) })
