/**
 * The journal of a run: its records, and the phase events in them.
 *
 * The state of a run is the fold of its records, in any process.
 *
 * @since 0.1.0
 */

import type { DialectName } from "./Dialect.ts"
import type { Call, HostedCall, CallOutcome } from "./Call.ts"
import type { Message } from "./Message.ts"
import type {
  CallLeft,
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
import type { Json, JsonObject } from "./kit/json.ts"

/** The scope of an event. `step` is the turn minus 1, `at` is milliseconds of the Clock. */
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
  /** The revision of the record that holds this event. */
  readonly revision: number
}

/** A run started, with its agent and its input. */
export interface RunStarted extends Phase<"run_started"> {
  readonly agent: string
  readonly parentRunId: string | undefined
  /** The run this one was forked from, and the last revision they share. */
  readonly forkedFrom?: ForkedFrom
  readonly messages: ReadonlyArray<Message>
  /** The number of messages in the input that precede this run. */
  readonly history: number
  readonly context: JsonObject
}

/** A turn started. */
export interface TurnStarted extends Phase<"turn_started"> {
  readonly turnId: string
  /** Messages the host sent since the last turn, now part of the conversation. */
  readonly steering?: ReadonlyArray<Message>
}

/**
 * The conversation was handed over: later turns belong to another agent. `prompt` changes the conversation into the
 * dialect of that agent.
 */
export interface AgentChanged extends Phase<"agent_changed"> {
  readonly from: string
  readonly to: string
  /** The call that handed the conversation over. */
  readonly callId: string
  readonly prompt: PromptDelta
}

/** The prompt of the turn is ready, given as a change to the previous one. */
export interface TurnPrepared extends Phase<"turn_prepared"> {
  readonly model: string
  readonly dialect: DialectName
  readonly prompt: PromptDelta
  readonly tools: ReadonlyArray<string>
  /** Differences from the agent's model and generation settings in this turn. */
  readonly args?: ModelArgs
  /** Usage of models that helped to build the prompt, such as one that summarizes. */
  readonly spent?: Expense
}

/** The model is about to be asked. */
export interface ModelStarted extends Phase<"model_started"> {
  readonly attempt: number
}

/** The model is about to be asked again, because the run stopped during the previous request. */
export interface ModelRestarted extends Phase<"model_restarted"> {
  readonly attempt: number
}

/** The reply arrived, with its meaning for the run. */
export interface ModelCompleted extends Phase<"model_completed"> {
  readonly message: Message
  /** The model that replied, as `provider/model`; it may be a fallback. */
  readonly model: string
  readonly usage: Usage | null
  readonly costUsd?: number
  readonly finishReason: FinishReason
  readonly latencyMs: number
  readonly outcome: Outcome
  readonly calls: ReadonlyArray<Call>
  /** The calls that the vendor ran itself. Absent: none. */
  readonly hosted?: ReadonlyArray<HostedCall>
}

/**
 * The calls of the reply, with the questions they wait for. A call that a policy denied is among the questions with its
 * `answer` already set.
 */
export interface ToolCallsStarted extends Phase<"tool_calls_started"> {
  /** The calls that a hook put in place of the model's, if it did. */
  readonly calls?: ReadonlyArray<Call>
  readonly questions?: ReadonlyArray<Question>
}

/** A call was reviewed. It runs as requested, as changed by `change`, or not at all. */
export interface ToolCallStarted extends Phase<"tool_call_started"> {
  readonly callId: string
  readonly change?: CallChange
}

/**
 * A call that was in flight has its result. The call itself was recorded when the reply arrived, or when it was
 * changed.
 */
export interface ToolCallCompleted extends Phase<"tool_call_completed"> {
  readonly callId: string
  readonly result: CallOutcome
  /** Usage of a child run. */
  readonly spent?: Expense & { readonly turns: number }
}

/** Every call of the reply has a result. */
export interface ToolCallsCompleted extends Phase<"tool_calls_completed"> {}

/** The turn became part of the conversation. */
export interface TurnCompleted extends Phase<"turn_completed"> {
  readonly turnId: string
}

/** The run waits for a person or its host. */
export interface Paused extends Phase<"paused"> {
  readonly reason: string
  readonly metadata: Json
}

/** The run ended: with an answer, at its turn limit, or by its host. */
export interface RunCompleted<out Output = unknown> extends Phase<"run_completed"> {
  readonly source: RunSource
  readonly reason?: string
  readonly metadata?: Json
  /** Set for root runs. Absent in the journal, from which it is computed. */
  readonly result?: RunResult<Output>
}

/** The run failed. It can be resumed from its last record. */
export interface RunFailed extends Phase<"run_failed"> {
  readonly error: ErrorInfo
}

/** The run was cancelled, by any process. It is at rest; only an explicit resume continues it. */
export interface RunCancelled extends Phase<"run_cancelled"> {
  readonly reason?: string
  /** The person or program that cancelled it. */
  readonly by?: string
  /** The calls of this run that were in flight, with their effects: a `write` call may have acted. */
  readonly inFlight: ReadonlyArray<CallLeft>
}

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
