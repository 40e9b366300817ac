/**
 * The journal of a run: its records, and the phase events in them.
 *
 * The state of a run is the fold of its records, in any process.
 *
 * @since 0.2.0
 */

import type { DialectName } from "./Dialect.ts"
import type { Call, CallResult } from "./Call.ts"
import type { Message } from "./Message.ts"
import type {
  Delta,
  Question,
  ErrorInfo,
  ForkedFrom,
  ModelArgs,
  Outcome,
  PromptDelta,
  RunResult,
  RunSource,
  CallChange
} from "./RunModel.ts"
import type { FinishReason } from "./StreamPart.ts"
import type { Expense, Usage } from "./Usage.ts"
import type { Json, JsonObject } from "./internal/base/json.ts"

/** Where an event happened. `step` counts from 0, `at` is milliseconds of the Clock. */
export interface RunScope {
  readonly runId: string
  readonly rootRunId: string
  readonly step: number
  readonly depth: number
  readonly taskId: string | undefined
  readonly at: number
}

interface Phase<Type extends string> extends RunScope {
  readonly type: Type
  /** The commit this event is part of. */
  readonly revision: number
}

/** A run began: who runs, and what it was asked. */
export interface RunStarted extends Phase<"run_started"> {
  readonly agent: string
  readonly parentRunId: string | undefined
  /** The run this one was forked from, and the last commit they have in common. */
  readonly forkedFrom?: ForkedFrom
  readonly messages: ReadonlyArray<Message>
  /** How many of them were said before this run. */
  readonly history: number
  readonly context: JsonObject
}

/** A turn was opened. */
export interface TurnStarted extends Phase<"turn_started"> {
  readonly turnId: string
  /** What was said to the run since its last turn, now part of the conversation. */
  readonly steering?: ReadonlyArray<Message>
}

/**
 * The conversation was handed over: the turns from here on belong to another agent. `prompt` is how the conversation
 * changes into the dialect of that agent.
 */
export interface AgentChanged extends Phase<"agent_changed"> {
  readonly from: string
  readonly to: string
  /** The call that handed it over. */
  readonly callId: string
  readonly prompt: PromptDelta
}

/** The prompt of the turn is made, told as what is new in it. */
export interface TurnPrepared extends Phase<"turn_prepared"> {
  readonly model: string
  readonly dialect: DialectName
  readonly prompt: PromptDelta
  readonly tools: ReadonlyArray<string>
  /** What differs from the agent's own model and generation for this turn. */
  readonly args?: ModelArgs
  /** What models used that had a part in making it, as one that sums up does (CP-15). */
  readonly spent?: Expense
}

/** The model is about to be asked. */
export interface ModelStarted extends Phase<"model_started"> {
  readonly attempt: number
}

/** The model is about to be asked again: the run was cut off while it was (DR-24). */
export interface ModelRestarted extends Phase<"model_restarted"> {
  readonly attempt: number
}

/** The reply is there, with what it means for the run. */
export interface ModelCompleted extends Phase<"model_completed"> {
  readonly message: Message
  /** Who answered, as `provider/model`: a fallback is visible here. */
  readonly model: string
  readonly usage: Usage | null
  readonly costUsd?: number
  readonly finishReason: FinishReason
  readonly latencyMs: number
  readonly outcome: Outcome
  readonly calls: ReadonlyArray<Call>
}

/**
 * The calls of the reply are open, with the questions they wait for (DR-22). A call that a policy denied is among these,
 * with its `answer`: nobody is asked about it.
 */
export interface ToolCallsStarted extends Phase<"tool_calls_started"> {
  /** The batch a hook put in place of the model's, if it did. */
  readonly calls?: ReadonlyArray<Call>
  readonly questions?: ReadonlyArray<Question>
}

/** A call was reviewed: it will run as it is, as `change` says, or not at all (DR-11). */
export interface ToolCallStarted extends Phase<"tool_call_started"> {
  readonly callId: string
  readonly change?: CallChange
}

/** A call has its result. */
export interface ToolCallCompleted extends Phase<"tool_call_completed"> {
  readonly callId: string
  readonly result: CallResult
  /** What a child run used (CP-15). */
  readonly spent?: Expense & { readonly turns: number }
}

/** Every call of the reply has its result. */
export interface ToolCallsCompleted extends Phase<"tool_calls_completed"> {}

/** The turn is part of the conversation. */
export interface TurnCompleted extends Phase<"turn_completed"> {
  readonly turnId: string
}

/** The run waits, for a person or for its host (DR-9). */
export interface Paused extends Phase<"paused"> {
  readonly reason: string
  readonly metadata: Json
}

/** The run ended: with an answer, at its limit, or by its host (DR-10, DR-20). */
export interface RunCompleted<out Output = unknown> extends Phase<"run_completed"> {
  readonly source: RunSource
  readonly reason?: string
  readonly metadata?: Json
  /** Of a root run. Absent in the journal: it is computed from it. */
  readonly result?: RunResult<Output>
}

/** The run failed. It can be resumed from where it stood (DR-18). */
export interface RunFailed extends Phase<"run_failed"> {
  readonly error: ErrorInfo
}

/** The events a run's state is folded from. */
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

/**
 * One entry of a journal: the phase events of one transition, or a change without events such as a launch or a resume.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunRecord {
  readonly runId: string
  readonly revision: number
  readonly op: "phase" | "launch" | "pause" | "resume"
  readonly events: ReadonlyArray<PhaseEvent>
  readonly delta: Delta
  readonly createdAt: number
  readonly workerId: string
}
