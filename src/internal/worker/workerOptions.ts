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
import { timeSpan } from "../base/timeSpan.ts"

// ---------------------------------------------------------------- checking

/** Returns why a worker cannot work with its options. */
export const problem = ({
  concurrency = 1,
  lease = leaseDefault
}: Pick<Options, "concurrency" | "lease">): ConfigInvalid | undefined => {
  const millis = Option.match(timeSpan(lease), { onNone: () => Number.NaN, onSome: Duration.toMillis })
  if (!(millis >= 1_000 && millis <= longest)) {
    return new ConfigInvalid({ path: "lease", reason: "a lease lasts at least one second, and not for ever" })
  }
  return concurrency >= 1
    ? undefined
    : new ConfigInvalid({ path: "concurrency", reason: "a worker runs at least one run at once" })
}

/** How long a run is held without a renewal, unless a worker is given another time. */
export const leaseDefault: Duration.Input = "30 seconds"

/** Milliseconds that every store can add to the time. */
const longest = 1e15

// ---------------------------------------------------------------- models

/**
 * An agent as a worker runs it. `R` is what its instructions need.
 *
 * @category models
 * @since 0.1.0
 */
export type Runnable<R = never> = Agent<unknown, AnySkill<unknown>, R>

/**
 * How a worker works.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<R = never> {
  /** The agents it can run: a run names its agent. Runs of others are left alone. */
  readonly agents: ReadonlyArray<Runnable<NoInfer<R>>>
  /** Who it is: two workers never share a name. Default: one of its own. */
  readonly workerId?: string | undefined
  /** Runs it works on at once: 1 or more. Default: 1. */
  readonly concurrency?: number | undefined
  /**
   * How long a run is held without a renewal: at least one second, and not for ever. It is counted by the clock of the
   * store, and by a clock of the worker that is never set, so no difference between clocks shortens or prolongs it.
   * Default: 30 seconds.
   */
  readonly lease?: Duration.Input | undefined
  /** How often it looks for work. Default: every second. */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * When a run that crashed is taken up again: after the first crash at once, after the next ones by this schedule, and
   * not at all when the schedule is over. Progress, of a task, too, begins the schedule anew.
   * A run whose deadline is over is taken up once more, to tell so, and then not until its agent gives it more time.
   * Default: 5 times, from 1 second on, each wait twice the last.
   */
  readonly retry?: Schedule.Schedule<unknown> | undefined
  /**
   * Which failed runs are taken up again like crashed ones. Default: `isPassing`.
   */
  readonly retries?: ((head: RunHead) => boolean) | undefined
  /**
   * A run somebody runs without a lease is left alone until nothing happened to it, nor to a task of it, for so long.
   * The times of its records are those of the machine that ran it: give more than the clocks of machines may differ.
   * Default: 10 minutes.
   */
  readonly orphanAfter?: Duration.Input | undefined
  /**
   * How long a run may take to the end of its step when the worker is told to stop. Default: 4 seconds. What does not
   * end then is interrupted, and left behind after `Limits.cleanUpTimeout`.
   */
  readonly drain?: Duration.Input | undefined
  /**
   * How a run is taken up: verdicts on calls in flight, for instance, or the skills that are allowed. Asked once the
   * run is held; it may need services that no agent needs. When it fails, the run is given back as it was: any other
   * worker may take it up, this one once somebody moved it on, or after 30 seconds.
   *
   * @example
   * const resume = ({ runId }: RunStore.RunHead) =>
   *   Effect.map(RunStore.inFlight(runId), (calls) => ({
   *     replay: Object.fromEntries(calls.map((call) => [call.callId, ledger.find(call.idempotencyKey) ?? "retry"]))
   *   }))
   */
  readonly resume?: ((head: RunHead) => TakeUp | Effect.Effect<TakeUp, TakeUpError, RunStore | R>) | undefined
  /**
   * Told how each run it worked on ended for now, with its head as it is then. Without it, the log tells why a run
   * stopped.
   */
  readonly onRun?: ((head: RunHead, exit: Exit.Exit<unknown, TakeUpError>) => Effect.Effect<void>) | undefined
}

/**
 * How a worker takes a run up.
 *
 * @category models
 * @since 0.1.0
 */
export type TakeUp = Pick<
  ResumeOptions,
  "recover" | "rewind" | "context" | "provider" | "allowedSkills" | "onTaskComplete"
>

/**
 * Fails when a worker cannot resume a run (see `Kernel.ResumeError`). `Options.resume` fails with one of these, too:
 *
 * - `ToolNotFound`: this worker does not have a skill that the run needs.
 * - `ExtensionFailed`: any other failure of the host.
 *
 * @category errors
 * @since 0.2.0
 */
export type TakeUpError = ResumeError | ToolNotFound
