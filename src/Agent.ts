/**
 * An agent as a plain value: instructions, a model, and what it may call.
 *
 * An agent holds no state and no connection. Its skills and protocols select from what the registries hold, and its
 * `output` schema types the result of its runs. Instructions may be an Effect, which runs at every turn.
 *
 * @since 0.1.0
 */

import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Strings from "effect/String"
import type { DialectName } from "./Dialect.ts"
import * as Generations from "./Generation.ts"
import * as Configs from "./internal/agent/agentConfig.ts"
import type { Agent, AgentTypes, AnyOptions, ContextOf, Options } from "./internal/agent/agentModel.ts"
import { invalid, problem } from "./internal/agent/agentProblem.ts"
import { withOwnSkills as addOwnSkills } from "./internal/agent/ownSkills.ts"
import * as Team from "./internal/agent/team.ts"
import type { ContextSchema } from "./internal/agent/team.ts"
import { attempt } from "./kit/foreignCode.ts"
import { type Json, jsonObject, type JsonObject } from "./kit/json.ts"
import { valueSchema } from "./kit/jsonSchema.ts"
import { AgentConfigInvalid } from "./KernelError.ts"
import type { AnySkill } from "./Skill.ts"
import type { SkillRegistryShape } from "./SkillRegistry.ts"

export { AgentConfigInvalid }

export type { Agent, Check, ContextOf, InputOf, Named, Options, Prose } from "./internal/agent/agentModel.ts"

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
 * Derives types of an agent from the options of `make`. Declarations that the compiler writes for functions around it
 * name them.
 *
 * @category models
 * @since 0.1.0
 */
export type { AgentTypes }

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
  const Members extends AgentTypes.Member = never,
  C = never,
  I = unknown,
  const Handoffs extends AgentTypes.Member = never
>(
  options: Options<R, S, Output, Members, C, I, Handoffs> &
    AgentTypes.SchemaOf<Output> &
    AgentTypes.ContextFor<Members | Handoffs, C>
): Agent<
  AgentTypes.Output<Output>,
  AgentTypes.Skills<S, Members | Handoffs>,
  AgentTypes.Settled<R> | AgentTypes.Services<S, Members | Handoffs>,
  AgentTypes.Settled<C>,
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

export {
  /**
   * Returns the first invalid setting of an agent or of the agents it reaches, or undefined.
   *
   * @category guards
   * @since 0.1.0
   */
  problem,
  /**
   * Returns the error of a model that cannot run under a cost budget because it has no price.
   *
   * @category guards
   * @since 0.1.0
   */
  unpriced
} from "./internal/agent/agentProblem.ts"
