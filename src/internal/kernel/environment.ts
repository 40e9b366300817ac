/**
 * Builds the environment of a run from the layer of its kernel and the fiber that runs it.
 */

import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type * as Scope from "effect/Scope"
import { TracerKey } from "effect/Tracer"
import * as Agents from "../../Agent.ts"
import type { Agent } from "../../Agent.ts"
import { spawnDefaults } from "../../Budget.ts"
import * as BudgetStore from "../../BudgetStore.ts"
import * as Hooks from "../../Hooks.ts"
import { InstructionBuilder } from "../../InstructionBuilder.ts"
import { type AgentConfigInvalid, type ModelError, StoreError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import * as MediaStore from "../../MediaStore.ts"
import * as Middleware from "../../Middleware.ts"
import * as Policy from "../../Policy.ts"
import { PromptPipeline, TokenCounter } from "../../PromptPipeline.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import { ForbidReal } from "../../Provider.ts"
import { Redaction } from "../../Redaction.ts"
import type { CommonOptions } from "../../RunOptions.ts"
import type { RunState } from "../../RunState.ts"
import * as RunStore from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import type { SkillRegistry } from "../../SkillRegistry.ts"
import { Telemetry, type TelemetryShape, make } from "../../Telemetry.ts"
import { levelsOf } from "../agent/team.ts"
import { guarded, referenceOf } from "../../kit/foreignCode.ts"
import { extensionError, isSound } from "../errors/extensionError.ts"
import { meter } from "../run/budgetMeter.ts"
import { CurrentClaim, type RunClaim } from "../run/claim.ts"
import { type Sink, addresses, publisher, soundRedactor } from "../run/listeners.ts"
import { LiveTree, treesOf } from "../../store-kit/internal/liveTree.ts"
import { chooser, membersOf } from "../run/members.ts"
import type { Environment } from "../run/run.ts"
import * as Budget from "../run/treeBudget.ts"
import { patient, soundMedia, soundRuns } from "../../store-kit/internal/storeGuard.ts"
import { perObject } from "../../kit/perObject.ts"
import { randomId } from "../../kit/randomId.ts"
import { resume } from "./resume.ts"
import { spawner } from "./task.ts"

/** The stores and registries that a kernel was built with. */
type Built = Context.Context<
  SkillRegistry | ProtocolRegistry.ProtocolRegistry | MediaStore.MediaStore | RunStore.RunStore
>

/**
 * Prepares the environment of a run and runs `body` in it, under the limits of the kernel. Media and providers of agents
 * belong to its scope.
 */
export const withEnvironment = <Output, S extends AnySkill<unknown>, R, A, E>(
  built: Built,
  agent: Agent<Output, S, R, unknown>,
  options: CommonOptions,
  sink: Sink,
  state: RunState | undefined,
  body: (environment: Environment, newId: () => string) => Effect.Effect<A, E, Scope.Scope>
): Effect.Effect<A, E | AgentConfigInvalid | ModelError, R | Scope.Scope> =>
  Effect.contextWith((current: Context.Context<R | Scope.Scope>) => {
    const problem = Agents.problem(options.maxSteps === undefined ? agent : { ...agent, maxSteps: options.maxSteps })
    if (problem !== undefined) return Effect.fail(problem)
    const member = membersOf(built, agent, options, current)
    return Effect.flatMap(member(agent.name), (own): Effect.Effect<A, E, Scope.Scope> => {
      const random = Context.get(current, Random.Random)
      const holder = options.workerId ?? "local"
      const limits = limitsOf(built, current)
      const claim = Context.get(current, CurrentClaim)
      const environment: Environment = {
        ...own,
        member,
        served: chooser(built, current),
        maxSteps: options.maxSteps ?? agent.maxSteps,
        deadline: agent.budget.deadline,
        store: patient(Context.get(built, RunStore.RunStore), limits),
        protocols: Context.get(built, ProtocolRegistry.ProtocolRegistry),
        media: soundMedia(Context.get(built, MediaStore.MediaStore)),
        ...extensionsOf(built, current, options),
        limits,
        clock: Context.get(current, Clock.Clock),
        holder,
        // Unique per start, so that two processes with one worker id never write identical records.
        workerId: `${holder}#${randomId(random)}`,
        allowed: options.allowedSkills,
        parts: options.parts ?? false,
        budget: Budget.make(agent.budget, spawnLimitsOf(agent), Budget.spentOf(state)),
        live: new LiveTree(
          treesOf(soundRuns(Context.get(built, RunStore.RunStore))),
          publisher(built, current, sink, addresses(agent.name, options.address)),
          limits.liveEvents
        ),
        isFull: sink.isFull,
        isIdle: sink.isIdle,
        batch: sink.batch,
        ...claimedBy(claim),
        signal: options.signal,
        parent: undefined,
        steering: undefined,
        spawn,
        onTaskComplete: options.onTaskComplete
      }
      const made = body(environment, () => newRunId(random))
      // Runs that its skills start are not under its claim.
      return (claim === undefined ? made : Effect.provideService(made, CurrentClaim, undefined)).pipe(
        Effect.provideService(Limits, limits),
        Effect.provideService(ForbidReal, referenceOf(built, current, ForbidReal))
      )
    })
  })

/** Returns what the claim of a driver says about the run. */
const claimedBy = (
  claim: RunClaim | undefined
): Pick<Environment, "isAlone" | "asked" | "seen" | "stop" | "prove"> => ({
  isAlone: claim?.isAlone === true,
  asked: claim?.inFlight,
  seen: claim?.seen,
  stop: soundStop(claim?.stop),
  prove: soundProof(claim?.prove)
})

/** Returns the limits of an agent's tree: by default, all levels of its team fit. */
const spawnLimitsOf = <Output, S extends AnySkill<unknown>, R>(agent: Agent<Output, S, R, unknown>) =>
  agent.spawn ?? {
    ...spawnDefaults,
    maxDepth: Math.max(spawnDefaults.maxDepth, levelsOf<Agent<unknown, AnySkill<unknown>, R, unknown>>(agent))
  }

/** Runs an effect under the limits of a kernel, unless the running fiber has limits of its own. */
export const limited = <A, E, R>(
  built: Context.Context<never>,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.contextWith((current: Context.Context<R>) => Effect.provideService(effect, Limits, limitsOf(built, current)))

/** Returns a random run id. */
export const newRunId = (random: Random.Random): string => `run_${randomId(random, 3)}`

/**
 * Returns the telemetry of the fiber, else of the kernel. Without either, runs are traced if the fiber has a Tracer,
 * but without contents.
 */
const telemetryOf = (built: Context.Context<never>, current: Context.Context<never>): TelemetryShape | undefined => {
  const isProvided = current.mapUnsafe.has(Telemetry.key) || built.mapUnsafe.has(Telemetry.key)
  if (isProvided || !current.mapUnsafe.has(TracerKey)) return referenceOf(built, current, Telemetry)
  standard ??= make()
  return standard
}

/** Returns the extensions that the host of the kernel, or of this run, provides. */
const extensionsOf = (
  built: Built,
  current: Context.Context<never>,
  { hooks = {}, middleware = [] }: CommonOptions
) => ({
  hooks: Hooks.combine(Hooks.among(built, current), hooks),
  // The meter counts each call that reaches a provider, so it is the innermost.
  middleware: Middleware.among(built, current).concat(middleware, BudgetStore.among(built, current).map(meter)),
  policy: Policy.among(built, current),
  pipeline: referenceOf(built, current, PromptPipeline),
  builder: referenceOf(built, current, InstructionBuilder),
  counter: referenceOf(built, current, TokenCounter),
  telemetry: telemetryOf(built, current),
  redactor: soundRedactor(referenceOf(built, current, Redaction))
})

const spawn = spawner(resume)

/** Wraps `prove` so that any failure but `AgentCrashError` becomes a `StoreError`. */
const soundProof = (prove: RunClaim["prove"]): Environment["prove"] =>
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

/** Wraps `stop` so that an exception stops the run with `ExtensionFailed`. */
const soundStop = (stop: RunClaim["stop"] | undefined): Environment["stop"] =>
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

/**
 * Returns the limits of a run. Limits set on a kernel do not leak into kernels started by its skills: these see a
 * marked copy, which is ignored.
 */
const limitsOf = (built: Context.Context<never>, current: Context.Context<never>): Limits => {
  const here: Limits | undefined = current.mapUnsafe.get(Limits.key)
  return here === undefined || lent.has(here) ? lend(Context.get(built, Limits)) : here
}

const lend = perObject((own: Limits): Limits => {
  const copy = { ...own }
  lent.add(copy)
  return copy
})

const lent = new WeakSet<Limits>()

let standard: TelemetryShape | undefined
