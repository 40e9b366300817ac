/**
 * The options of a worker.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import type * as Schedule from "effect/Schedule"
import type { Agent } from "../../Agent.ts"
import type { ResumeOptions } from "../../Kernel.ts"
import { ConfigInvalid, type ResumeError, type ToolNotFound } from "../../KernelError.ts"
import type { RunHead, RunStore } from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"
import { timeSpan } from "../../kit/time.ts"

// ---------------------------------------------------------------- checking

/** Returns the error for invalid options. */
export const problem = ({
  concurrency = 1,
  lease = leaseDefault
}: Pick<Options, "concurrency" | "lease">): ConfigInvalid | undefined => {
  const millis = Option.match(timeSpan(lease), { onNone: () => Number.NaN, onSome: Duration.toMillis })
  if (!(millis >= 1_000 && millis <= longest)) {
    return new ConfigInvalid({ path: "lease", reason: "a lease must be finite and last at least one second" })
  }
  return concurrency >= 1
    ? undefined
    : new ConfigInvalid({ path: "concurrency", reason: "a worker must run at least one run at a time" })
}

/** The default duration of a lease. */
export const leaseDefault: Duration.Input = "30 seconds"

/** The longest lease in milliseconds that every store can add to a time. */
const longest = 1e15

// ---------------------------------------------------------------- models

/**
 * An agent as a worker runs it. `R` are the services its instructions need.
 *
 * @category models
 * @since 0.1.0
 */
export type Runnable<R = never> = Agent<unknown, AnySkill<unknown>, R, unknown>

/**
 * The options of a worker.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<R = never> {
  /** The agents it can run. A run names its agent; runs of other agents are ignored. */
  readonly agents: ReadonlyArray<Runnable<NoInfer<R>>>
  /** The name of the worker. Two workers must not share a name. Default: a random one. */
  readonly workerId?: string | undefined
  /** How many runs it works on at once, at least 1. Default: 1. */
  readonly concurrency?: number | undefined
  /**
   * How long a run is held without renewal: at least one second, and not forever. The store counts it by its own clock,
   * and the worker by a clock that is never set, so no difference between clocks shortens or prolongs it. Default: 30
   * seconds.
   */
  readonly lease?: Duration.Input | undefined
  /**
   * How often it polls for runs that were never offered: those of workers that died, and those of processes that cannot
   * announce offers. Default: every five seconds, or every second if the store emits no offers. It polls as often for
   * questions with a deadline asked by other processes, by default every five seconds.
   */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * When a crashed run is claimed again: at once after the first crash, then by this schedule, and not at all when the
   * schedule ends. Progress of the run or of a task restarts the schedule. A run past its deadline is claimed once more
   * to report that, and then not until its agent allows more time. Default: 5 times, starting at 1 second, each wait
   * twice the last.
   */
  readonly retry?: Schedule.Schedule<unknown> | undefined
  /**
   * Which failed runs are claimed again like crashed ones. Default: `isPassing`.
   */
  readonly retries?: ((head: RunHead) => boolean) | undefined
  /**
   * How long a run without a lease counts as active after its last record or that of one of its tasks. Records have the
   * times of the machine that wrote them, so allow for the differences between clocks. Default: 10 minutes.
   */
  readonly orphanAfter?: Duration.Input | undefined
  /**
   * How long a run may take to finish its step when the worker shuts down. Default: 4 seconds. Runs that take longer
   * are interrupted, and abandoned after `Limits.cleanUpTimeout`.
   */
  readonly drain?: Duration.Input | undefined
  /**
   * Decides how a run is resumed, such as what becomes of calls in flight, or which skills are allowed. Runs once the
   * run is claimed, and may need services that no agent needs. If it fails, the run is released unchanged: any other
   * worker may claim it, this one after 30 seconds or once the run has changed.
   *
   * @example
   * const resume = ({ runId }: RunStore.RunHead) =>
   *   Effect.map(RunStore.inFlight(runId), (calls) => ({
   *     recover: Object.fromEntries(calls.map((call) => [call.callId, ledger.find(call.idempotencyKey) ?? "retry"]))
   *   }))
   */
  readonly resume?: ((head: RunHead) => TakeUp | Effect.Effect<TakeUp, TakeUpError, RunStore | R>) | undefined
  /**
   * Called with the head and the exit of each run it worked on. Default: logs why a run stopped.
   */
  readonly onRun?: ((head: RunHead, exit: Exit.Exit<unknown, TakeUpError>) => Effect.Effect<void>) | undefined
}

/**
 * How a worker resumes a run.
 *
 * @category models
 * @since 0.1.0
 */
export type TakeUp = Pick<
  ResumeOptions,
  "recover" | "rewind" | "context" | "provider" | "allowedSkills" | "onTaskComplete"
>

/**
 * The errors for which a worker cannot resume a run (see `Kernel.ResumeError`). `Options.resume` may fail with one of
 * these, too:
 *
 * - `ToolNotFound`: this worker does not have a skill that the run needs.
 * - `ExtensionFailed`: any other failure of the host.
 *
 * @category errors
 * @since 0.1.0
 */
export type TakeUpError = ResumeError | ToolNotFound
