/**
 * The journal of a run: its records, and the phase events in them.
 *
 * The state of a run is the fold of its records, in any process.
 *
 * @since 0.1.0
 */

import type * as Schemas from "./internal/state/recordSchema.ts"
import type { TypeOf } from "./kit/schemas.ts"
import type { RunResult } from "./RunModel.ts"

// ---------------------------------------------------------------- events

/** The scope of an event. `step` is the turn minus 1, `at` is milliseconds of the Clock. */
export interface RunScope {
  readonly runId: string
  readonly rootRunId: string
  readonly step: number
  readonly depth: number
  readonly taskId: string | undefined
  readonly at: number
}

/** A stored event: its scope, and the fields of its schema. */
export type Stored<Type extends keyof typeof Schemas.events> = RunScope & {
  /** The revision of the record that holds this event. */
  readonly revision: number
} & TypeOf<(typeof Schemas.events)[Type]>

/** A run started, with its agent and its input. */
export interface RunStarted extends Stored<"run_started"> {}

/** A turn started. */
export interface TurnStarted extends Stored<"turn_started"> {}

/**
 * The conversation was handed over: later turns belong to another agent. `prompt` changes the conversation into the
 * dialect of that agent.
 */
export interface AgentChanged extends Stored<"agent_changed"> {}

/** The prompt of the turn is ready, given as a change to the previous one. */
export interface TurnPrepared extends Stored<"turn_prepared"> {}

/** The model is about to be asked. */
export interface ModelStarted extends Stored<"model_started"> {}

/**
 * The model is about to be asked again: the run stopped during the previous request, its reply was withdrawn, or the
 * vendor refused a content, which `repair` leaves out.
 */
export interface ModelRestarted extends Stored<"model_restarted"> {}

/** The reply arrived, with its meaning for the run. */
export interface ModelCompleted extends Stored<"model_completed"> {}

/**
 * The calls of the reply, with the questions they wait for. A call that a policy denied is among the questions with its
 * `answer` already set.
 */
export interface ToolCallsStarted extends Stored<"tool_calls_started"> {}

/** A call was reviewed. It runs as requested, as changed by `change`, or not at all. */
export interface ToolCallStarted extends Stored<"tool_call_started"> {}

/**
 * A call that was in flight has its result. The call itself was recorded when the reply arrived, or when it was
 * changed.
 */
export interface ToolCallCompleted extends Stored<"tool_call_completed"> {}

/** Every call of the reply has a result. */
export interface ToolCallsCompleted extends Stored<"tool_calls_completed"> {}

/** The turn became part of the conversation. */
export interface TurnCompleted extends Stored<"turn_completed"> {}

/** The run waits for a person or its host. */
export interface Paused extends Stored<"paused"> {}

/** The run ended: with an answer, at its turn limit, or by its host. */
export interface RunCompleted<out Output = unknown> extends Stored<"run_completed"> {
  /** Set for root runs. Absent in the journal, from which it is computed. */
  readonly result?: RunResult<Output>
}

/** The run failed. It can be resumed from its last record. */
export interface RunFailed extends Stored<"run_failed"> {}

/** The run was cancelled, by any process. It is at rest; only an explicit resume continues it. */
export interface RunCancelled extends Stored<"run_cancelled"> {}

/** The events from which the state of a run is folded. */
export type PhaseEvent<Output = unknown> =
  | RunStarted
  | TurnStarted
  | AgentChanged
  | TurnPrepared
  | ModelStarted
  | ModelRestarted
  | ModelCompleted
  | ToolCallsStarted
  | ToolCallStarted
  | ToolCallCompleted
  | ToolCallsCompleted
  | TurnCompleted
  | Paused
  | RunCompleted<Output>
  | RunFailed
  | RunCancelled

/**
 * State changes without an event of their own.
 *
 * @category models
 * @since 0.1.0
 */
export interface Delta extends TypeOf<typeof Schemas.delta> {}

/**
 * One entry of a journal: the phase events of one transition, or a change without events such as a launch or a resume.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunRecord extends TypeOf<typeof Schemas.recordFacts> {
  readonly events: ReadonlyArray<PhaseEvent>
  readonly delta: Delta
}
