/**
 * What a run stands on: gathered from the layer of its kernel and from the fiber that runs it.
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import { spawnDefaults } from "../../Budget.ts"
import type { Agent } from "../../Agent.ts"
import * as Agents from "../../Agent.ts"
import { agentIdOf, EventBus } from "../../EventBus.ts"
import { Hooks } from "../../Hooks.ts"
import { InstructionBuilder } from "../../InstructionBuilder.ts"
import type { KernelError } from "../../KernelError.ts"
import { ProviderError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import * as MediaStore from "../../MediaStore.ts"
import { Middleware } from "../../Middleware.ts"
import type { Model } from "../../Model.ts"
import { ModelRegistry, modelOf as modelByName } from "../../ModelRegistry.ts"
import * as Policy from "../../Policy.ts"
import { PromptPipeline, TokenCounter } from "../../PromptPipeline.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import { Provider, type ProviderShape } from "../../Provider.ts"
import { guard, Recorder, type Sink as EventSink } from "../../Recorder.ts"
import { Redaction, type Redactor } from "../../Redaction.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { RunState } from "../../RunState.ts"
import * as RunStore from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import { Telemetry } from "../../Telemetry.ts"
import { type Sink, silent } from "./listeners.ts"
import type { CommonOptions } from "./runOptions.ts"
import { randomId } from "../base/randomId.ts"
import { deep } from "../base/redact.ts"
import { spawn } from "./resume.ts"
import type { AnyAgent, Ground } from "./run.ts"
import * as Tree from "./sharedBudget.ts"

/** The stores and registries a kernel cannot do without. */
export type Parts = SkillRegistry | ProtocolRegistry.ProtocolRegistry | MediaStore.MediaStore | RunStore.RunStore

/** What a kernel is built with. */
export type Built = Context.Context<Parts>

/** Gathers what a run stands on, from the layer and from the fiber that runs it, and runs on it. */
export const onGround = <Output, S extends AnySkill<unknown>, R, A>(
  built: Built,
  agent: Agent<Output, S, R>,
  options: CommonOptions,
  sink: Sink,
  state: RunState | undefined,
  body: (ground: Ground, newId: () => string) => Effect.Effect<A, KernelError>
): Effect.Effect<A, KernelError, R> =>
  Effect.contextWith((current: Context.Context<R>) => {
    const problem = Agents.problem(agent)
    if (problem !== undefined) return Effect.fail(problem)
    const own = closed(agent, current)
    return Effect.flatMap(modelOf(built, current, own, options), ({ model, provider }) => {
      // Of a model that was only named the price is known now: without one no cost could be kept.
      const unpriced = agent.budget.maxCostUsd === undefined ? undefined : Agents.problem({ ...agent, model })
      if (unpriced !== undefined) return Effect.fail(unpriced)
      const random = Context.get(current, Random.Random)
      const holder = options.workerId ?? "local"
      const limits = limitsOf(built, current)
      const ground: Ground = {
        agent: own,
        model,
        provider,
        store: Context.get(built, RunStore.RunStore),
        skills: Context.get(built, SkillRegistry),
        protocols: Context.get(built, ProtocolRegistry.ProtocolRegistry),
        media: Context.get(built, MediaStore.MediaStore),
        hooks: reference(built, current, Hooks),
        middleware: reference(built, current, Middleware),
        policy: Policy.among(built, current),
        pipeline: reference(built, current, PromptPipeline),
        builder: reference(built, current, InstructionBuilder),
        counter: reference(built, current, TokenCounter),
        telemetry: reference(built, current, Telemetry),
        redactor: reference(built, current, Redaction),
        limits,
        clock: Context.get(current, Clock.Clock),
        holder,
        // Two lives of a run must never write the same record, not even by one worker at one instant.
        workerId: `${holder}#${randomId(random)}`,
        allowed: options.allowedSkills,
        parts: options.parts ?? false,
        tree: Tree.make(agent.budget, agent.spawn ?? spawnDefaults, Tree.spentOf(state)),
        tell: listeners(built, current, agent.name, sink),
        isFull: sink.isFull,
        batch: sink.batch,
        stop: options.stop,
        steering: undefined,
        spawn,
        onTaskComplete: options.onTaskComplete
      }
      const whole = Effect.provideService(
        body(ground, () => newRunId(random)),
        Limits,
        limits
      )
      const absent = unregistered(agent, ground.skills)
      if (absent.length === 0) return whole
      return Effect.andThen(
        Effect.logWarning(`the agent '${agent.name}' lists ${absent.join(", ")}, which no SkillRegistry has`),
        whole
      )
    })
  })

/**
 * Skills an agent was given as values and the registry does not have: a slip that only the model would hear of. What is
 * listed by name may come later. Told once for each agent and registry, in quotes.
 */
const unregistered = (
  agent: Agent<unknown, AnySkill<unknown>, unknown>,
  registry: SkillRegistry["Service"]
): ReadonlyArray<string> => {
  const { skills } = agent
  if (skills === undefined || skills === "all" || warned.get(registry)?.has(agent) === true) return []
  const absent = skills.flatMap((skill) =>
    typeof skill === "string" || Option.isSome(registry.find(skill.name)) ? [] : [`'${skill.name}'`]
  )
  if (absent.length > 0) warned.set(registry, (warned.get(registry) ?? new WeakSet()).add(agent))
  return absent
}

const warned = new WeakMap<object, WeakSet<object>>()

/** Instructions that need services are closed over them here: inside, an agent needs nothing. */
const closed = <Output, S extends AnySkill<unknown>, R>(
  agent: Agent<Output, S, R>,
  services: Context.Context<R>
): AnyAgent => {
  const { instructions } = agent
  if (typeof instructions !== "string") {
    const own = Effect.updateContext(instructions, (current: Context.Context<never>) =>
      Context.merge(services, current)
    )
    return { ...agent, instructions: own }
  }
  // One copy per agent: what is made for an agent once is found again at its next run.
  let plain = plainAgents.get(agent)
  if (plain === undefined) plainAgents.set(agent, (plain = { ...agent, instructions }))
  return plain
}

const plainAgents = new WeakMap<object, AnyAgent>()

/** The provider of a run: its own, else the agent's model string, else the layer's (BP-31). */
const modelOf = (
  built: Built,
  current: Context.Context<never>,
  agent: AnyAgent,
  options: CommonOptions
): Effect.Effect<{ readonly provider: ProviderShape; readonly model: Model }, KernelError> => {
  const named = agent.model
  const of = (provider: ProviderShape) => ({ provider, model: modelFor(named, provider) })
  if (options.provider !== undefined) return Effect.succeed(of(options.provider))
  const registry = service(built, current, ModelRegistry)
  if (typeof named === "string" && named.includes("/") && registry !== undefined) return registry.resolve(named)
  const provider = service(built, current, Provider)
  if (provider !== undefined) return Effect.succeed(of(provider))
  return typeof named !== "string" && named.provider !== undefined && registry !== undefined
    ? Effect.map(registry.provider(named.provider), of)
    : Effect.fail(
        new ProviderError({
          provider: "none",
          reason: "not_configured",
          detail: "No provider configured: provide one, or a ModelRegistry for <provider>/<model>"
        })
      )
}

/** A model by name: a prefix that names the provider itself is not part of what the vendor is asked for. */
const modelFor = (named: Model | string, provider: ProviderShape): Model => {
  if (typeof named !== "string") return named
  const own = `${provider.name}/`
  return modelByName(provider.name, named.startsWith(own) ? named.slice(own.length) : named)
}

/** A service of the running fiber, else of what the layer was built with. */
export const service = <I, S>(
  built: Context.Context<never>,
  current: Context.Context<never>,
  key: Context.Key<I, S>
): S | undefined => Context.getOrUndefined(current, key) ?? Context.getOrUndefined(built, key)

/** A reference as the running fiber has it, else as the layer was built with. */
export const reference = <A>(
  built: Context.Context<never>,
  current: Context.Context<never>,
  key: Context.Reference<A>
): A => Context.get(current.mapUnsafe.has(key.key) ? current : built, key)

/**
 * Under the limits of a kernel, unless a host chose others: stores and summaries look for them where they run. Those of
 * a kernel are no choice of a host, which another kernel inside of it would have to follow.
 */
export const limited = <A, E, R>(
  built: Context.Context<never>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.contextWith((current: Context.Context<R>) => Effect.provideService(effect, Limits, limitsOf(built, current)))

const limitsOf = (built: Context.Context<never>, current: Context.Context<never>): Limits => {
  const here: Limits | undefined = current.mapUnsafe.get(Limits.key)
  return here === undefined || lent.has(here) ? lend(Context.get(built, Limits)) : here
}

/** The limits of a kernel as it lends them to what runs in it: one copy, which is known again. */
const lend = (own: Limits): Limits => {
  let copy = copies.get(own)
  if (copy === undefined) {
    copies.set(own, (copy = { ...own }))
    lent.add(copy)
  }
  return copy
}

const copies = new WeakMap<Limits, Limits>()

const lent = new WeakSet<Limits>()

/** Everyone who hears of events: the same ones in the same order for all. */
const listeners = (built: Context.Context<never>, current: Context.Context<never>, agent: string, sink: Sink) => {
  const recorder = reference(built, current, Recorder)
  const bus = service(built, current, EventBus)
  const from = bus === undefined ? undefined : agentIdOf(agent)
  const all: ReadonlyArray<(event: RunEvent) => void> = [
    ...(sink === silent ? [] : [sink.tell]),
    ...(recorder === undefined ? [] : [guard(cleaned(recorder, reference(built, current, Redaction))).record]),
    ...(bus === undefined ? [] : [(event: RunEvent) => bus.publish(event, from)])
  ]
  const [first, second] = all
  if (first === undefined) return undefined
  if (second === undefined) return first
  return (event: RunEvent) => {
    for (const tell of all) tell(event)
  }
}

/** What is written down holds no secret, when somebody knows what is one. */
const cleaned = (sink: EventSink, redactor: Redactor | undefined): EventSink =>
  redactor === undefined ? sink : { record: (event) => sink.record(deep(event, redactor.text)) }

/** The id of a run that was given none. */
export const newRunId = (random: Random.Random): string => `run_${randomId(random, 3)}`
