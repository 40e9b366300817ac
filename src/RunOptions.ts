/**
 * Options of the kernel's verbs: how runs are started, resumed, answered and forked.
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Queue from "effect/Queue"
import type { AgentId } from "./Address.ts"
import type { CallResult } from "./Call.ts"
import type { Content } from "./Content.ts"
import type { Hooks } from "./Hooks.ts"
import type { JsonObject } from "./kit/json.ts"
import type { Media } from "./Media.ts"
import type { Message } from "./Message.ts"
import type { Middleware } from "./Middleware.ts"
import type { ProviderShape } from "./Provider.ts"
import type { Caller, GivenAnswer, RunRecord } from "./RunState.ts"

/**
 * The input of a run: text, media, contents, or a list of them.
 *
 * @category models
 * @since 0.1.0
 */
export type Input = string | Media | Content | ReadonlyArray<string | Media | Content>

/**
 * Options of every run, new or resumed.
 *
 * @category models
 * @since 0.1.0
 */
export interface CommonOptions {
  /** Provider of the model for this run. Default: by the agent's model string, else the provider in the layer. */
  readonly provider?: ProviderShape | undefined
  /**
   * Names of the skills that any agent of the run may use. It does not limit the agents that may be called: a policy
   * does. Not stored: give it again to `resume`. Default: all.
   */
  readonly allowedSkills?: ReadonlyArray<string> | undefined
  /**
   * Hooks of this run and of the runs below it, after those of the kernel and of the fiber. Not stored: give them again
   * to `resume`. Default: none.
   */
  readonly hooks?: Hooks | undefined
  /**
   * Middleware of this run and of the runs below it, inside that of the kernel and of the fiber. Not stored: give it again
   * to `resume`. Default: none.
   */
  readonly middleware?: ReadonlyArray<Middleware> | undefined
  /** Maximum number of turns of this run. Not stored: give it again to `resume`. Default: that of the agent. */
  readonly maxSteps?: number | undefined
  /**
   * Emit every part of a reply as `stream_part`, text included, as a replay of the stream needs it. Default: false, as
   * `text_chunk` and `block_content` carry the text.
   */
  readonly parts?: boolean | undefined
  /** Id of the worker, written into every record and used as the owner of leases. Default: `local`. */
  readonly workerId?: string | undefined
  /**
   * The address of the agent in this run on an `EventBus`: its key names the topic `agent.stream/<key>`, and its namespace
   * holds every topic of the run. Other agents of the run use their names as keys, in the same namespace. Not stored: give
   * it again to `resume`. Default: `agent/<name of the agent>`.
   */
  readonly address?: AgentId | undefined
  /**
   * Cancels the run when it is aborted, as `Kernel.cancel` does: the run is at rest with the status `cancelled`, and the
   * reason of the signal is kept as text.
   */
  readonly signal?: AbortSignal | undefined
  /**
   * Messages for the run while it is in progress. Each one becomes a user message of the next turn and part of the
   * journal, and leaves the queue once it is stored. A run whose answer is ready takes another turn when a message
   * waits and `maxSteps` allows it. A message whose media cannot be stored stays in the queue and fails the run. Use
   * one queue per run. If a store fails and it is unknown whether it kept a message, the message stays and may be
   * delivered again.
   */
  readonly steering?: Queue.Dequeue<Input, unknown> | undefined
  /**
   * Called once for every finished task of a plan, for a program that reads no events: `task_complete` and `task_error`
   * say the same. Its failures are logged and change nothing.
   */
  readonly onTaskComplete?: ((task: TaskReport) => Effect.Effect<void>) | undefined
}

/**
 * Options of a new run.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunOptions extends CommonOptions {
  /** Id of the run. Default: a random one. */
  readonly runId?: string | undefined
  /**
   * Messages before the input, which are not part of the result. Media over 64 KiB in them are stored like those of the
   * input, as long as there is room.
   */
  readonly history?: ReadonlyArray<Message> | undefined
  /**
   * A small JSON object of the host: skills read it, hooks change it, the journal stores it. A run of an agent with a
   * `context` schema must be given a value of that schema, which is stored encoded.
   */
  readonly context?: JsonObject | undefined
  /** The caller who starts the run, its owner. Stored with the run and the runs below it, and given to policies. */
  readonly caller?: Caller | undefined
}

/**
 * Options of a run that is only stored. The other options belong to the worker that runs it.
 *
 * @category models
 * @since 0.1.0
 */
export interface SubmitOptions extends Pick<
  RunOptions,
  "runId" | "history" | "context" | "caller" | "provider" | "workerId"
> {}

/**
 * Options of a schedule.
 *
 * @category models
 * @since 0.1.0
 */
export interface ScheduleOptions extends Omit<SubmitOptions, "runId"> {
  /** The name of the schedule. Its runs have the ids `<name>@<time>`, with the time in UTC. */
  readonly name: string
  /**
   * Five fields (minute, hour, day of the month, month, day of the week), or six with seconds before them. Hours that
   * begin with `*` are an interval, which runs through the hour that is repeated when clocks are put back. Other hours
   * are times of the day, which come once a day.
   */
  readonly cron: string
  /** The time zone of `cron`, such as `Europe/Berlin`. Default: that of this process. */
  readonly timeZone?: string | undefined
  /**
   * How late a run may start, if no process was running at its time or the store could not be reached. Default: 1
   * minute.
   */
  readonly late?: Duration.Input | undefined
}

/**
 * The last argument of functions that start a run: options, which an agent with a `context` schema requires, because
 * they hold its context. For an agent whose context is not known to the compiler, the run checks it.
 *
 * @category models
 * @since 0.1.0
 */
export type OptionsFor<Options extends Pick<RunOptions, "context">, C> = [C] extends [never]
  ? [options?: Options]
  : unknown extends C
    ? [options?: Omit<Options, "context"> & { readonly context?: unknown }]
    : [options: Omit<Options, "context"> & { readonly context: C }]

/**
 * Decides about a call that was in flight when its run stopped.
 *
 * `retry` runs it again under the same id and `idempotencyKey`. `resolve` gives its known result and runs nothing;
 * a program reads a list, a number, a boolean or null from its `value`. `fail` means that the outcome is unknown: the
 * resume fails with `InFlightToolCalls` and nothing is run.
 *
 * @example
 * const recover = { [callId]: { resolve: { output: [Content.text("sent")] } } }
 *
 * @category models
 * @since 0.1.0
 */
export type Recovery =
  | "retry"
  | "fail"
  | {
      readonly resolve: Pick<CallResult, "output" | "value"> | Pick<CallResult, "error">
    }

/**
 * Changes that a resume makes to a stored run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Resumption {
  /**
   * Merged into the context of the run and of its tasks that continue: JSON, for an agent with a `context` schema in its
   * encoded form.
   */
  readonly context?: JsonObject | undefined
  /**
   * Decisions about the calls that were in flight, by call id. Of the others, calls of `read` and `idempotent` skills are
   * retried, and calls of `write` skills count as `fail`.
   */
  readonly recover?: { readonly [callId: string]: Recovery } | undefined
  /** Answers to open questions. Questions without an answer stay open, and the run pauses again. */
  readonly answers?: ReadonlyArray<GivenAnswer> | undefined
  /** The caller who gives the answers. See `AnswerOptions.caller`. */
  readonly caller?: Caller | undefined
  /** Prepare the open turn again instead of asking the model with the stored prompt. Default: false. */
  readonly rewind?: boolean | undefined
  /**
   * Why this agent continues a run of another agent: a text for the journal. Without it such a run is refused with
   * `AgentMismatch`. The run keeps its own agent, so every later resume by another one needs a reason again.
   */
  readonly as?: string | undefined
}

/**
 * Options of a resumed run.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResumeOptions extends CommonOptions, Resumption, AtRevision {}

/**
 * Options of recorded answers.
 *
 * @category models
 * @since 0.1.0
 */
export interface AnswerOptions extends Pick<CommonOptions, "workerId">, AtRevision {
  /**
   * The caller who gives the answers. Its id is stored as their `by`. A question that names who may answer it (see
   * `Policy.confirm`) needs a caller.
   */
  readonly caller?: Caller | undefined
}

/**
 * Options of a cancellation.
 *
 * @category models
 * @since 0.1.0
 */
export interface CancelOptions extends Pick<CommonOptions, "workerId"> {
  /** The reason. Stored with the run, and part of `RunCancelled`. */
  readonly reason?: string | undefined
  /** The person or program that cancels the run. Stored with the run, and part of `RunCancelled`. */
  readonly by?: string | undefined
}

/**
 * Options of a follower.
 *
 * @category models
 * @since 0.1.0
 */
export interface FollowOptions {
  /** Emit only what happened after this revision. Default: 0, everything. */
  readonly after?: number | undefined
  /**
   * When the stream ends: at `rest`, once the run is completed, cancelled, failed or waiting; or at its `end`, once it
   * is completed or cancelled. Default: `rest`.
   */
  readonly until?: "rest" | "end" | undefined
}

/**
 * The revision on which a decision was based.
 *
 * @category models
 * @since 0.1.0
 */
export interface AtRevision {
  /**
   * The expected revision. If the run is at another one, the operation fails with `ConcurrentAppendError` and stores
   * nothing. Tasks have revisions of their own, which are not compared.
   */
  readonly revision?: number | undefined
}

/**
 * Reports a finished task to the host.
 *
 * @category models
 * @since 0.1.0
 */
export interface TaskReport {
  readonly taskId: string
  /** The input of the task, without the results it depends on. */
  readonly input: string
  readonly result: string | null
  readonly error: string | null
  readonly durationMs: number
}

/**
 * Options of a fork.
 *
 * @category models
 * @since 0.1.0
 */
export interface ForkOptions {
  /** The last revision that both runs have in common, at least 1. Default: the last one of the run. */
  readonly revision?: number | undefined
  /** Id of the fork. Default: a random one. */
  readonly runId?: string | undefined
  /**
   * Changes a record as it is copied into the fork: an answer, a result, the context. Later records build on the
   * change.
   */
  readonly edit?: ((record: RunRecord) => RunRecord) | undefined
}
