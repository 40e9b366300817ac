/**
 * The options and the operations of a driver of stored runs.
 */

import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import type * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import type { Agent } from "../../Agent.ts"
import type { ResumeOptions } from "../../Kernel.ts"
import type { ResumeError, StoreError, ToolNotFound } from "../../KernelError.ts"
import type { Resumption } from "../../RunOptions.ts"
import type { RunHead, RunStore } from "../../RunStore.ts"
import type { AnySkill } from "../../Skill.ts"

/**
 * An agent whose stored runs are driven. `R` are the services its instructions need.
 *
 * @category models
 * @since 0.1.0
 */
export type Runnable<R = never> = Agent<unknown, AnySkill<unknown>, R, unknown>

/**
 * The options of a driver.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<R = never> {
  /** The agents it can run. A run names its agent; runs of other agents are left to other processes. */
  readonly agents: ReadonlyArray<Runnable<NoInfer<R>>>
  /** The name of this process in records and leases. Two processes must not share a name. Default: a random one. */
  readonly workerId?: string | undefined
  /** How many runs it drives at once, at least 1. Further runs wait. Default: any number. */
  readonly concurrency?: number | undefined
  /**
   * The parties for whom a run takes its place, from the widest to the narrowest, such as a tenant and its user. Parties
   * that wait for places take turns, and within a tenant its users. Default: the tenant of the caller who started the
   * run, and the caller; a run without a caller has no party.
   */
  readonly partiesOf?: ((run: RunHead) => ReadonlyArray<string>) | undefined
  /**
   * The part of the places that the runs of one party can hold, more than 0 and at most 1. The others are left to other
   * parties, even if its runs never end: a party takes no more than this part of the places that it does not find taken.
   * Default: 0.5.
   */
  readonly share?: number | undefined
  /**
   * When a crashed run is attempted again: at once after the first crash, then by this schedule, and not at all when the
   * schedule ends. Of the runs that were in progress when a process died, one at a time is attempted until it makes
   * progress. Progress of the run or of a task restarts the schedule. Default: 5 times, starting at 1 second, each wait twice the last.
   */
  readonly retry?: Schedule.Schedule<unknown> | undefined
  /**
   * Which failed runs are attempted again like crashed ones, not before the time that their provider names. Default:
   * `isPassing`.
   */
  readonly retries?: ((head: RunHead) => boolean) | undefined
  /**
   * How long a run may take to finish its step, with the calls it started, when this process gives it up. Default: 4
   * seconds. Runs that take longer are interrupted, and abandoned after `Limits.cleanUpTimeout`.
   */
  readonly drain?: Duration.Input | undefined
  /**
   * Decides how a run is resumed, such as what becomes of calls in flight, or which skills are allowed. Runs once this
   * process has the run, and may need services that no agent needs. If it fails, the run stays unchanged: any other
   * process may attempt it, this one after 30 seconds (2 if the store did not respond) or once the run has changed.
   *
   * @example
   * const resume = ({ runId }: RunStore.RunHead) =>
   *   Effect.map(RunStore.inFlight(runId), (calls) => ({
   *     recover: Object.fromEntries(calls.map((call) => [call.callId, ledger.find(call.idempotencyKey) ?? "retry"]))
   *   }))
   */
  readonly resume?: ((head: RunHead) => TakeUp | Effect.Effect<TakeUp, TakeUpError, RunStore | R>) | undefined
  /**
   * Called with the head and the exit of each run it attempted. Default: logs why a run stopped.
   */
  readonly onRun?: ((head: RunHead, exit: Exit.Exit<unknown, TakeUpError>) => Effect.Effect<void>) | undefined
}

/**
 * How a driver resumes a run.
 *
 * @category models
 * @since 0.1.0
 */
export type TakeUp = Pick<
  ResumeOptions,
  "recover" | "rewind" | "context" | "provider" | "allowedSkills" | "onTaskComplete"
>

/**
 * The errors for which a driver cannot resume a run (see `Kernel.ResumeError`). `Options.resume` may fail with one of
 * these, too:
 *
 * - `ToolNotFound`: this process does not have a skill that the run needs.
 * - `ExtensionFailed`: any other failure of the host.
 *
 * @category errors
 * @since 0.1.0
 */
export type TakeUpError = ResumeError | ToolNotFound

/**
 * The claim of this process on a run. Returned by the source of the run, it tells whether this process still has it.
 *
 * The store fences every append by the revision of the run, so a claim is never needed for the journal. It keeps two
 * processes from doing the same work, and from entering the same `write` skill.
 *
 * @category models
 * @since 0.1.0
 */
export interface Claim {
  /** Returns whether another process may have the run by now. Called before each step, and must not block. */
  readonly isLost: () => boolean
  /**
   * Returns whether this process has the run, given the stored head of its root. Called right before a `write` skill is
   * entered; the revision of the run has already been compared. Default: `isLost` decides alone.
   */
  readonly prove?: ((root: RunHead) => Effect.Effect<boolean, StoreError>) | undefined
  /** Keeps the claim while the run is driven, by renewing a lease for instance. The run is interrupted when it ends. */
  readonly keep?: Effect.Effect<void> | undefined
  /**
   * Whether the run is a suspect of a crash, and no other suspect is attempted in this process. Stored in the journal,
   * so that only crashes of its own count against a run.
   */
  readonly isAlone?: boolean | undefined
  /**
   * Whether another process has the run, and lends it to this one. `RunDriver.drive` then ends as soon as the run
   * needs another attempt, which the lender decides about.
   */
  readonly isLent?: boolean | undefined
  /** Gives the claim back after the attempt, however it ended. */
  readonly release?: Effect.Effect<void> | undefined
}

/**
 * The next need of a stored run:
 *
 * - `Attempt`: it can be attempted now. A suspect was being run when a process crashed or lost it, and is attempted with
 *   no other suspect beside it.
 * - `Wait`: nothing before a time, in milliseconds since the epoch: its next retry, or the deadline of its questions.
 * - `Rest`: nothing until it changes.
 * - `Changed`: it has changed since its head was read.
 * - `UnknownAgent`: another process, since this one does not have its agent, or is drained of it.
 *
 * @category models
 * @since 0.1.0
 */
export type Next =
  | { readonly _tag: "Attempt"; readonly isSuspect?: boolean }
  | { readonly _tag: "Rest" | "Changed" | "UnknownAgent" }
  | { readonly _tag: "Wait"; readonly until: number }

/**
 * How `RunDriver.drive` ended:
 *
 * - `AtRest`: the run is at rest in the store. It needs a driver again at `next`, if it is still at that revision.
 * - `Refused`: the run rejected what it was to be resumed with, and has not changed.
 * - `UnknownAgent`: the run needs a process with its agent, which this one does not have, or of which it is drained.
 * - `Postponed`: this process cannot continue the run, which has not changed: it cannot read its journal, or lacks a skill.
 *   The run needs a driver again at `next`, since the process may have been replaced by then.
 * - `Again`: a lent run needs another attempt, or another process has advanced it.
 *
 * @category models
 * @since 0.1.0
 */
export type Driven =
  | { readonly _tag: "AtRest"; readonly next?: { readonly revision: number; readonly at: number } }
  | { readonly _tag: "Postponed"; readonly next: { readonly revision: number; readonly at: number } }
  | { readonly _tag: "Refused"; readonly error: TakeUpError }
  | { readonly _tag: "UnknownAgent"; readonly agent: string }
  | { readonly _tag: "Again" }

/**
 * Drives the runs that this process has, however it got them.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunDriver {
  /** The name of this process in records and leases. */
  readonly workerId: string
  /**
   * Lists this process in its store until the scope closes, and follows the drains of operators (see `Processes`).
   * Succeeds once they are known. Without it, the process cannot be drained.
   */
  readonly register: Effect.Effect<void, never, Scope.Scope>
  /** Returns whether this process has an agent, and no operator has drained it. Synchronous. */
  readonly takes: (agent: string) => boolean
  /** Waits until the drain of an agent ended, so that its runs are looked for again. */
  readonly undrained: Effect.Effect<void>
  /**
   * Decides what a run needs next. What needs no claim is done at once: questions are declined after their deadline, and
   * a run that crashed too often fails. Both are fenced, so several processes may try.
   */
  readonly next: (head: RunHead) => Effect.Effect<Next, StoreError>
  /**
   * Attempts a run once: waits for a place, gets the claim, resumes the run, gives the claim back and reports. Returns
   * undefined without a claim. When it is interrupted, the run first finishes its step.
   */
  readonly attempt: (
    head: RunHead,
    claim: Effect.Effect<Claim | undefined>,
    how?: Asked
  ) => Effect.Effect<Exit.Exit<unknown, TakeUpError> | undefined>
  /**
   * Attempts a run until it is at rest in the store, even if another process brings it there. Resumes a run at rest if it
   * is asked to and the run is still at the given revision. Ends at once for a run of an unknown agent. When it is
   * interrupted, the run first finishes its step.
   */
  readonly drive: (runId: string, claim: Claim, how?: Asked) => Effect.Effect<Driven>
}

/**
 * How a caller wants a run to be resumed: the revision it saw, and its answers and decisions.
 *
 * @category models
 * @since 0.1.0
 */
export interface Asked extends Resumption {
  readonly revision: number
}
