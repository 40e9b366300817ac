/**
 * The agents of other services that an application uses, over the A2A protocol.
 *
 * Each agent becomes a skill of the registry, and the protocol block `a2a` reaches their tasks. An agent that is
 * unavailable does not fail the layer: its skill fails when it is called, and its card is read again. When a task
 * requires input, the run pauses with the question, and the call continues the task with the reply of a person. With
 * the block, the model reads the question, and a person confirms, changes or rejects the reply that the model writes.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Record from "effect/Record"
import * as Schedule from "effect/Schedule"
import type { ToolNameConflict } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import * as Policy from "../Policy.ts"
import type { ProtocolRegistry } from "../ProtocolRegistry.ts"
import type { Effects } from "../Skill.ts"
import { SkillRegistry } from "../SkillRegistry.ts"
import * as A2aClient from "./A2aClient.ts"
import { A2aError } from "./A2aError.ts"
import * as AgentBlock from "./internal/a2aBlock.ts"
import * as AgentSkill from "./internal/a2aSkill.ts"

// ---------------------------------------------------------------- models

/**
 * One agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface AgentOptions extends Omit<A2aClient.Options, "name"> {
  /** The description shown to the model. Default: that of its card, cut at `Limits.descriptionLength`. */
  readonly description?: string | undefined
  /** The side effects of a message to the agent (see `Skill`). Default: `write`. */
  readonly effects?: Effects | undefined
}

/**
 * Options of a hub.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The agents by name. A name has up to 60 letters, digits, `_` or `-`. */
  readonly agents: { readonly [name: string]: AgentOptions }
  /** Registers each agent as the skill `a2a_<name>`. Default: true. */
  readonly skills?: boolean | undefined
  /** Registers the protocol block `a2a`. Default: true. */
  readonly protocol?: boolean | undefined
  /** Whether a `person` of the run replies to a task that requires input, or the `model` alone. Default: `person`. */
  readonly replies?: "person" | "model" | undefined
}

/**
 * The status of an agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface AgentStatus {
  readonly name: string
  /** Undefined until the card has been read. */
  readonly card: A2aClient.Card | undefined
  /** The error of the last attempt to read the card. */
  readonly problem: A2aError | undefined
}

/**
 * The agents of an application.
 *
 * @category services
 * @since 0.1.0
 */
export class A2aHub extends Context.Service<
  A2aHub,
  {
    /** The clients by the names of their agents. */
    readonly clients: ReadonlyMap<string, A2aClient.A2aClient>
    /** Returns the status of the agents, in the order of `Options.agents`. */
    readonly status: Effect.Effect<ReadonlyArray<AgentStatus>>
  }
>()("kernai/http/A2aHub") {}

// ---------------------------------------------------------------- layers

/**
 * Connects agents and registers them. Provide the layer to the kernel too: it contains the policy that asks a person
 * before a reply is sent.
 *
 * The layer is built when every card has been read or `Limits.connectTimeout` is over. Fails with reason `config` for
 * an invalid address, header or name.
 *
 * @example
 * const Agents = A2aHub.layer({ agents: { billing: { url: "https://billing.example" } } })
 * const KernelLive = Kernel.layer.pipe(Layer.provide(Agents.pipe(Layer.provideMerge(Registries))))
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: Options
): Layer.Layer<A2aHub, A2aError | ToolNameConflict, SkillRegistry | ProtocolRegistry | HttpClient.HttpClient> =>
  Layer.unwrap(
    Effect.sync(() => {
      const waiting = AgentSkill.waiting()
      const hub = Layer.effect(A2aHub, make(options, waiting))
      return options.replies === "model"
        ? hub
        : Layer.merge(hub, Policy.layerShape(Effect.succeed(AgentSkill.policyOf(Object.keys(options.agents), waiting))))
    })
  )

const make = Effect.fnUntraced(function* (options: Options, waiting: AgentSkill.Waiting) {
  const { protocol = true, skills = true } = options
  const limits = yield* Limits
  const registry = yield* SkillRegistry
  const agents = yield* Effect.forEach(Record.toEntries(options.agents), ([name, given]) =>
    known(name, given, { waiting, replies: options.replies ?? "person" })
  )
  const registration = yield* Effect.orDie(registry.registerSource({ source: "a2a", skills: [] }))
  const publish = skills
    ? Effect.catchTag(
        Effect.suspend(() => registration.replace(agents.map((agent) => AgentSkill.make(agent, limits)))),
        "DefinitionInvalid",
        Effect.die
      )
    : Effect.void
  yield* Effect.forEach(agents, (agent) => Effect.timeoutOption(look(agent), limits.connectTimeout), {
    concurrency: "unbounded",
    discard: true
  })
  yield* publish
  for (const agent of agents) {
    if (agent.card !== undefined) continue
    yield* Effect.logWarning(agent.problem?.message ?? `A2A agent '${agent.name}' did not answer in time`)
    const found = Effect.repeat(look(agent), { until: () => agent.card !== undefined, schedule: patiently })
    yield* Effect.forkScoped(Effect.andThen(found, Effect.ignore(publish)))
  }
  if (protocol) yield* AgentBlock.register(agents, limits, skills)
  return A2aHub.of({
    clients: new Map(agents.map(({ client, name }) => [name, client])),
    status: Effect.sync(() => agents.map(({ card, name, problem }) => ({ name, card, problem })))
  })
})

const known = Effect.fnUntraced(function* (
  name: string,
  { description, effects = "write", ...options }: AgentOptions,
  shared: Pick<AgentSkill.Known, "waiting" | "replies">
): Effect.fn.Return<AgentSkill.Known, A2aError, HttpClient.HttpClient> {
  if (!/^[A-Za-z0-9_-]{1,60}$/.test(name)) {
    const detail = `the name '${name}' of an A2A agent must have 1 to 60 letters, digits, '_' or '-'`
    return yield* new A2aError({ agent: name, reason: "config", detail })
  }
  const { skillTimeout } = yield* Limits
  const client = yield* A2aClient.make({ ...options, name })
  const timeout = options.timeout ?? skillTimeout
  return { name, client, description, effects, timeout, ...shared, card: undefined, problem: undefined }
})

/** Reads the card of an agent. */
const look = (agent: AgentSkill.Known): Effect.Effect<void> =>
  Effect.match(agent.client.card, {
    onFailure: (problem) => {
      agent.problem = problem
    },
    onSuccess: (card) => {
      agent.card = card
      agent.problem = undefined
    }
  })

const patiently = Schedule.min([Schedule.exponential("1 second"), Schedule.spaced("1 minute")])
