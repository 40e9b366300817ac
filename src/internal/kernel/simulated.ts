/**
 * Starts and resumes runs in simulated surroundings: with the store, the clock, the model and the calls of the caller.
 */

import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Content } from "../../Content.ts"
import type { ResumeError, RunError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import type { Middleware } from "../../Middleware.ts"
import type { PromptPipelineShape } from "../../PromptPipeline.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { Resumption } from "../../RunOptions.ts"
import type { Caller, RunResult, RunState } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import type { JsonObject } from "../../kit/json.ts"
import { LiveTree, Trees } from "../../store-kit/internal/liveTree.ts"
import { patient } from "../../store-kit/internal/storeGuard.ts"
import type { Environment } from "../run/run.ts"
import * as Budget from "../run/treeBudget.ts"
import { resume } from "./resume.ts"
import { start } from "./start.ts"

/**
 * The surroundings of a simulated process.
 *
 * @category models
 * @since 0.1.0
 */
export interface Surroundings {
  readonly store: RunStore.RunStoreShape
  /** The writer of the records. */
  readonly workerId: string
  readonly clock: Clock.Clock
  /** The middleware of the process, instead of that of the kernel. It answers for models and calls. */
  readonly middleware: ReadonlyArray<Middleware>
  /** Replaces the kernel's pipeline, or wraps it. */
  readonly pipeline: (own: PromptPipelineShape) => PromptPipelineShape
  /** Emit every part of a reply as `stream_part`. */
  readonly parts: boolean
  /** Returns the messages that the host sends to the root run before its next turn. */
  readonly steering: () => ReadonlyArray<Message>
  /** Returns the background calls whose results the next turn of a run receives. Default: those that have ended. */
  readonly awaited?: ((runId: string) => ReadonlyArray<string>) | undefined
  /** The run before this process, whose usage counts towards its budget. */
  readonly before: RunState | undefined
  /** Receives the events of the run and of the runs below it. */
  readonly publish: (event: RunEvent) => void
}

/**
 * The input of a new root run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Start {
  readonly runId: string
  readonly history: ReadonlyArray<Message>
  readonly input: ReadonlyArray<Content>
  /** The context in its encoded form. */
  readonly context: JsonObject
  /** The caller who starts the run. Default: none. */
  readonly caller?: Caller | undefined
}

/**
 * A simulated process.
 *
 * @category models
 * @since 0.1.0
 */
export interface Process {
  readonly start: (start: Start) => Effect.Effect<RunResult<unknown>, RunError>
  readonly resume: (state: RunState, how: Resumption) => Effect.Effect<RunResult<unknown>, ResumeError>
}

/** Creates a process with an agent's environment, cut off from everything outside. */
export const processOf = (environment: Environment, outside: Surroundings): Process => {
  const cutOff = surrounded(environment, outside)
  return {
    start: ({ caller, runId, ...rest }) =>
      start(cutOff, {
        runId,
        rootRunId: runId,
        parentRunId: undefined,
        depth: 0,
        taskId: undefined,
        caller,
        ...rest
      }),
    resume: (state, how) => resume(cutOff, state, { ...how, caller: "kernel" })
  }
}

const surrounded = (environment: Environment, outside: Surroundings): Environment => ({
  ...environment,
  // The middleware answers for every provider.
  served: (model, { provider }) => Effect.succeed({ model, provider }),
  store: patient(outside.store, environment.limits),
  workerId: outside.workerId,
  clock: outside.clock,
  middleware: outside.middleware,
  pipeline: outside.pipeline(environment.pipeline),
  parts: outside.parts,
  telemetry: undefined,
  stop: undefined,
  signal: undefined,
  steering: {
    isWaiting: () => outside.steering().length > 0,
    look: Effect.sync(() => ({ messages: outside.steering(), take: () => {} })),
    arrival: Effect.never,
    awaited: outside.awaited
  },
  budget: Budget.make(
    environment.agent.budget,
    environment.agent.spawn ?? environment.budget.spawn,
    Budget.spentOf(outside.before)
  ),
  live: new LiveTree(new Trees(), outside.publish, 0),
  isFull: () => false,
  batch: (body) => body()
})
