/**
 * Prepares what a run uses, from the layer of its kernel and from the fiber that runs it.
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type { Agent } from "../../Agent.ts"
import * as Agents from "../../Agent.ts"
import { spawnDefaults } from "../../Budget.ts"
import { agentIdOf, EventBus } from "../../EventBus.ts"
import { Hooks } from "../../Hooks.ts"
import { InstructionBuilder } from "../../InstructionBuilder.ts"
import { type AgentConfigInvalid, type ModelError, StoreError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import * as MediaStore from "../../MediaStore.ts"
import { Middleware } from "../../Middleware.ts"
import * as Policy from "../../Policy.ts"
import { PromptPipeline, TokenCounter } from "../../PromptPipeline.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import { ForbidReal } from "../../Provider.ts"
import { guard, Recorder, type Sink as EventSink } from "../../Recorder.ts"
import { Redaction, type Redactor } from "../../Redaction.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { CommonOptions } from "../../RunOptions.ts"
import type { RunState } from "../../RunState.ts"
import * as RunStore from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import { SkillRegistry } from "../../SkillRegistry.ts"
import { Telemetry } from "../../Telemetry.ts"
import { randomId } from "../base/ids.ts"
import { extensionError, guarded, isSound, logged } from "../base/effects.ts"
import { attempt } from "../base/foreignValue.ts"
import { deep } from "../base/redact.ts"
import { patient } from "../store/patientStore.ts"
import { soundMedia } from "../store/soundStore.ts"
import { type Sink, silent } from "./listeners.ts"
import { resume } from "./resume.ts"
import { modelOf } from "./resolveModel.ts"
import type { AnyAgent, Environment } from "./run.ts"
import * as Budget from "./sharedBudget.ts"
import { spawner } from "./task.ts"

/** Stores and registries that a kernel needs. */
export type Parts = SkillRegistry | ProtocolRegistry.ProtocolRegistry | MediaStore.MediaStore | RunStore.RunStore

/** The context that a kernel was built with. */
export type Built = Context.Context<Parts>

/** Prepares the environment of a run and runs `body` in it, under the limits of the kernel. */
export const withEnvironment = <Output, S extends AnySkill<unknown>, R, A, E>(
  built: Built,
  agent: Agent<Output, S, R>,
  options: CommonOptions,
  sink: Sink,
  state: RunState | undefined,
  body: (environment: Environment, newId: () => string) => Effect.Effect<A, E>
): Effect.Effect<A, E | AgentConfigInvalid | ModelError, R> =>
  Effect.contextWith((current: Context.Context<R>) => {
    const problem = Agents.problem(agent)
    if (problem !== undefined) return Effect.fail(problem)
    const own = closed(agent, current)
    const found = modelOf(built, current, own, options.provider)
    return Effect.flatMap(found, ({ model, provider }): Effect.Effect<A, E | AgentConfigInvalid> => {
      // The price of a model that was only named is known now: a cost budget needs one.
      const unpriced = agent.budget.maxCostUsd === undefined ? undefined : Agents.problem({ ...agent, model })
      if (unpriced !== undefined) return Effect.fail(unpriced)
      const random = Context.get(current, Random.Random)
      const holder = options.workerId ?? "local"
      const limits = limitsOf(built, current)
      const environment: Environment = {
        agent: own,
        model,
        provider,
        store: patient(Context.get(built, RunStore.RunStore), limits),
        skills: Context.get(built, SkillRegistry),
        protocols: Context.get(built, ProtocolRegistry.ProtocolRegistry),
        media: soundMedia(Context.get(built, MediaStore.MediaStore)),
        hooks: reference(built, current, Hooks),
        middleware: reference(built, current, Middleware),
        policy: Policy.among(built, current),
        pipeline: reference(built, current, PromptPipeline),
        builder: reference(built, current, InstructionBuilder),
        counter: reference(built, current, TokenCounter),
        telemetry: reference(built, current, Telemetry),
        redactor: soundRedactor(reference(built, current, Redaction)),
        limits,
        clock: Context.get(current, Clock.Clock),
        holder,
        // Two processes must never write the same record, not even as one worker at one instant.
        workerId: `${holder}#${randomId(random)}`,
        allowed: options.allowedSkills,
        parts: options.parts ?? false,
        budget: Budget.make(agent.budget, agent.spawn ?? spawnDefaults, Budget.spentOf(state)),
        publish: listeners(built, current, agent.name, sink),
        isFull: sink.isFull,
        batch: sink.batch,
        stop: soundStop(options.stop),
        prove: soundProof(options.prove),
        parent: undefined,
        steering: undefined,
        spawn,
        onTaskComplete: options.onTaskComplete
      }
      const whole = body(environment, () => newRunId(random)).pipe(
        Effect.provideService(Limits, limits),
        Effect.provideService(ForbidReal, reference(built, current, ForbidReal))
      )
      const absent = unregistered(agent, environment.skills)
      if (absent.length === 0) return whole
      return Effect.andThen(
        logged(Effect.logWarning(`the agent '${agent.name}' lists ${absent.join(", ")}, which no SkillRegistry has`)),
        whole
      )
    })
  })

const spawn = spawner(resume)

/** A redactor that always returns a text. One that cannot withholds the whole. */
const soundRedactor = (redactor: Redactor | undefined): Redactor | undefined => {
  if (redactor === undefined) return undefined
  let sound = soundRedactors.get(redactor)
  if (sound === undefined) {
    const text = (given: string): string => {
      const clean: unknown = attempt(() => redactor.text(given), undefined)
      return typeof clean === "string" ? clean : "<redacted>"
    }
    soundRedactors.set(redactor, (sound = { text }))
  }
  return sound
}

const soundRedactors = new WeakMap<Redactor, Redactor>()

/** A proof that fails in another way than it may proves nothing. */
const soundProof = (prove: CommonOptions["prove"]): Environment["prove"] =>
  prove === undefined
    ? undefined
    : (root) =>
        guarded(
          "prove",
          () => prove(root),
          (error) =>
            isSound(error) && error._tag === "AgentCrashError"
              ? error
              : new StoreError({
                  operation: "prove ownership",
                  reason: "unavailable",
                  detail: extensionError("prove", error).message
                })
        )

/** A host that cannot say whether its run should stop has failed. */
const soundStop = (stop: CommonOptions["stop"]): Environment["stop"] =>
  stop === undefined
    ? undefined
    : () => {
        try {
          const reason = stop()
          return reason === undefined || isSound(reason) ? reason : extensionError("stop", reason)
        } catch (error) {
          return extensionError("stop", error)
        }
      }

/** Skill values in an agent's list that the registry does not have, in quotes. Reported once per agent and registry. */
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

/** Provides the instructions of an agent with their services, so that the agent needs nothing any more. */
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
  // One copy per agent, so that whatever is derived from an agent is found again in its next run.
  let plain = plainAgents.get(agent)
  if (plain === undefined) plainAgents.set(agent, (plain = { ...agent, instructions }))
  return plain
}

const plainAgents = new WeakMap<object, AnyAgent>()

/** A service of the running fiber, else of the layer. */
export const service = <I, S>(
  built: Context.Context<never>,
  current: Context.Context<never>,
  key: Context.Key<I, S>
): S | undefined => Context.getOrUndefined(current, key) ?? Context.getOrUndefined(built, key)

/** A reference of the running fiber, else of the layer. */
export const reference = <A>(
  built: Context.Context<never>,
  current: Context.Context<never>,
  key: Context.Reference<A>
): A => Context.get(current.mapUnsafe.has(key.key) ? current : built, key)

/** Runs an effect under the limits of a kernel, unless the running fiber has limits of its own. */
export const limited = <A, E, R>(
  built: Context.Context<never>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.contextWith((current: Context.Context<R>) => Effect.provideService(effect, Limits, limitsOf(built, current)))

/** Limits set on a kernel do not leak into kernels started by its skills: these see a copy that does not count. */
const limitsOf = (built: Context.Context<never>, current: Context.Context<never>): Limits => {
  const here: Limits | undefined = current.mapUnsafe.get(Limits.key)
  return here === undefined || lent.has(here) ? lend(Context.get(built, Limits)) : here
}

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

/** All listeners of a run's events, which receive the same events in the same order. Undefined without any. */
const listeners = (built: Context.Context<never>, current: Context.Context<never>, agent: string, sink: Sink) => {
  const recorder = reference(built, current, Recorder)
  const bus = service(built, current, EventBus)
  const from = bus === undefined ? undefined : agentIdOf(agent)
  const all: ReadonlyArray<(event: RunEvent) => void> = [
    ...(sink === silent ? [] : [sink.publish]),
    ...(recorder === undefined
      ? []
      : [guard(cleaned(recorder, soundRedactor(reference(built, current, Redaction)))).record]),
    ...(bus === undefined ? [] : [guard({ record: (event) => bus.publish(event, from) }).record])
  ]
  const [first, second] = all
  if (first === undefined) return undefined
  if (second === undefined) return first
  return (event: RunEvent) => {
    for (const publish of all) publish(event)
  }
}

/** Keeps secrets out of what is written down, when a redactor knows them. */
const cleaned = (sink: EventSink, redactor: Redactor | undefined): EventSink =>
  redactor === undefined ? sink : { record: (event) => sink.record(deep(event, redactor.text)) }

/** A random run id. */
export const newRunId = (random: Random.Random): string => `run_${randomId(random, 3)}`
