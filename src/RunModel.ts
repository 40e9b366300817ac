/**
 * The data of a run: its state, its turns, questions, and result.
 *
 * Everything here is JSON-safe; skills, layers and fibers are never part of it.
 *
 * @since 0.1.0
 */

import type { DialectName } from "./Dialect.ts"
import type { Call, CallResult, Effects } from "./Call.ts"
import type { Json, JsonObject } from "./kit/json.ts"
import type { Asking } from "./internal/words/asking.ts"
import type { Generation } from "./Generation.ts"
import type { Message } from "./Message.ts"
import type { Model } from "./Model.ts"
import type { Plan } from "./Plan.ts"
import type { FinishReason } from "./StreamPart.ts"
import type * as Usage from "./Usage.ts"

// ---------------------------------------------------------------- models

/**
 * The phase of a run: its last stored phase event.
 *
 * @category models
 * @since 0.1.0
 */
export type Phase =
  | "run_started"
  | "turn_started"
  | "turn_prepared"
  | "model_started"
  | "model_completed"
  | "tool_calls_started"
  | "tool_call_started"
  | "tool_call_completed"
  | "tool_calls_completed"
  | "turn_completed"

/**
 * The cause of a run's end: its host, the model, or the turn limit.
 *
 * @category models
 * @since 0.1.0
 */
export type RunSource = "caller" | "model_done" | "max_turns"

/**
 * A stored failure: the tag of the error, its message, and its fields if it is a typed error.
 *
 * @category models
 * @since 0.1.0
 */
export interface ErrorInfo {
  readonly tag: string
  readonly message: string
  readonly fields?: JsonObject
}

/**
 * A call that was in flight when its run was cancelled. It may have had an effect.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallLeft {
  readonly callId: string
  readonly name: string | null
  /** A `write` call may have acted. */
  readonly effects?: Effects
}

/**
 * The status of a run by its journal: running or paused at a phase, cancelled, completed, or failed.
 * `RunStore.RunStatus` also shows whether a worker runs it.
 *
 * @category models
 * @since 0.1.0
 */
export type Status =
  | { readonly type: "running"; readonly phase: Phase }
  | {
      readonly type: "paused"
      readonly phase: Phase
      readonly reason: string
      readonly metadata: Json
      readonly createdAt: number
    }
  | {
      readonly type: "completed"
      readonly phase: Phase
      readonly source: RunSource
      readonly reason?: string
      readonly metadata?: Json
      readonly createdAt: number
    }
  | { readonly type: "failed"; readonly phase: Phase; readonly error: ErrorInfo; readonly createdAt: number }
  | {
      readonly type: "cancelled"
      readonly phase: Phase
      readonly reason?: string
      readonly by?: string
      readonly createdAt: number
    }

/**
 * A prompt as a change to the previous one: keep the first `base` messages and append the new ones. Holds the system
 * text only if it changed.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromptDelta {
  readonly base: number
  readonly append: ReadonlyArray<Message>
  /** Absent: unchanged. Null: none. */
  readonly system?: string | null
}

/**
 * Differences between the model call of a turn and the settings of the agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface ModelArgs {
  readonly model?: Model
  readonly generation?: Generation
  readonly cacheBreakpoints?: ReadonlyArray<number>
}

/**
 * The meaning of a reply for the run. `corrective` is the message sent to the model next.
 *
 * @category models
 * @since 0.1.0
 */
export type Outcome =
  | { readonly type: "workflow"; readonly plan: Plan; readonly note?: string }
  | { readonly type: "tools"; readonly note?: string }
  | { readonly type: "final"; readonly text: string }
  | { readonly type: "prose"; readonly text: string }
  | {
      readonly type: "corrective"
      readonly reason: "informational" | "stall" | "cut" | "empty" | "output" | "plan" | "loop"
      readonly corrective: string
    }

/**
 * A change of one call at its review, by a hook or a policy: the call in its new form, or a result that is used without
 * running it.
 *
 * @category models
 * @since 0.1.0
 */
export type CallChange =
  | { readonly type: "rewrite"; readonly call: Call }
  | { readonly type: "skip"; readonly result: CallResult }

/**
 * A call that waits for a person. The answer is stored in the journal.
 *
 * @category models
 * @since 0.1.0
 */
export interface Question {
  readonly callId: string
  readonly name: string
  readonly input: Json
  readonly reason: string
  /**
   * The question of the running call. Absent if the question is whether the call may run.
   *
   * @since 0.1.0
   */
  readonly asking?: Asking
  /**
   * The time at which the question is declined unless it was answered, in milliseconds since the epoch (see
   * `Policy.confirm`).
   *
   * @since 0.1.0
   */
  readonly answerBy?: number
  readonly answer?: Answer
}

/**
 * A question that waits for its answer, and where it was asked.
 *
 * @category models
 * @since 0.1.0
 */
export interface OpenQuestion extends Question {
  /** The run that asks: the run itself, or a child below it. */
  readonly runId: string
  /** The names of the agents from the run down to the one that asks. */
  readonly agents: ReadonlyArray<string>
}

/**
 * A person's decision about a call.
 *
 * @category models
 * @since 0.1.0
 */
export interface Answer {
  readonly callId: string
  readonly approved: boolean
  readonly reason?: string
  readonly by?: string
  /** The input to run the call with, instead of the requested one. */
  readonly input?: Json
  /**
   * The values of the form that the call asks for (`Question.asking`).
   *
   * @since 0.1.0
   */
  readonly values?: JsonObject
  /**
   * True if the person dismissed the question without a decision; `approved` is then false.
   *
   * @since 0.1.0
   */
  readonly dismissed?: boolean
}

/**
 * One prompt, one reply, and its results.
 *
 * @category models
 * @since 0.1.0
 */
export interface Turn {
  readonly turnId: string
  /** Counts from 1; the `step` of its events is one less. */
  readonly turn: number
  readonly attempt: number
  readonly startedAt: number
  /** Messages that the host sent during the run, before this turn. */
  readonly steering?: ReadonlyArray<Message>
  readonly model?: string
  readonly args?: ModelArgs
  /** The conversation before the prompt of this turn was prepared, kept as long as the prompt may be prepared again. */
  readonly before?: { readonly prompt: ReadonlyArray<Message>; readonly system: string | null }
  readonly dialect: DialectName
  readonly tools: ReadonlyArray<string>
  readonly message?: Message
  readonly usage: Usage.Usage | null
  readonly finishReason?: FinishReason
  readonly latencyMs?: number
  readonly outcome?: Outcome
  readonly pending: ReadonlyArray<Call>
  readonly inFlight: ReadonlyArray<Call>
  /** In order of arrival; `Call.inOrder` gives source order. */
  readonly completed: ReadonlyArray<CallResult>
  /** Ids of the calls, in source order. */
  readonly order: ReadonlyArray<string>
  /** Ids of calls that were in flight and that a resume retried or resolved. */
  readonly recovered?: ReadonlyArray<string>
}

/**
 * The origin of a fork. Records up to that revision are copied; later ones are the fork's own.
 *
 * @category models
 * @since 0.1.0
 */
export interface ForkedFrom {
  readonly runId: string
  readonly revision: number
}

/**
 * A stop of a run before its own end.
 *
 * @category models
 * @since 0.1.0
 */
export type Stop =
  | { readonly type: "pause"; readonly reason?: string; readonly metadata?: Json }
  | { readonly type: "finish"; readonly reason?: string; readonly metadata?: Json }

/**
 * The state of a run.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunState {
  readonly runId: string
  readonly rootRunId: string
  readonly parentRunId: string | undefined
  readonly depth: number
  readonly taskId: string | undefined
  readonly forkedFrom: ForkedFrom | undefined
  readonly agent: string
  /** The agent that the run was handed over to, and its first turn. Undefined: the agent it started with. */
  readonly handoff: { readonly agent: string; readonly turn: number } | undefined
  readonly revision: number
  readonly status: Status
  /** A small JSON object of the host; hooks and resumes merge into it. */
  readonly context: JsonObject
  /** The initial messages of the run: history, then the input. */
  readonly input: ReadonlyArray<Message>
  /** The number of messages in `input` that precede this run. */
  readonly history: number
  readonly turns: ReadonlyArray<Turn>
  readonly currentTurn: Turn | undefined
  /** The conversation so far: the last prompt, and after a turn also the messages that it added. */
  readonly prompt: ReadonlyArray<Message>
  readonly system: string | null
  /**
   * The revision of the last phase event. `settledRevision` is that of the last one whose hook is known to have run.
   */
  readonly phaseRevision: number
  readonly settledRevision: number
  readonly questions: ReadonlyArray<Question>
  /** The end of the run that `onRunCompleted` paused. */
  readonly completing: { readonly source: RunSource; readonly reason?: string; readonly metadata?: Json } | undefined
  /** The stop that a hook asked for while other calls were in flight. */
  readonly deferred: Stop | undefined
  readonly usage: Usage.Usage
  readonly costUsd: number
  /** Model calls whose provider reported no usage. */
  readonly unreportedTurns: number
  readonly emptyReplies: number
  readonly createdAt: number
  readonly updatedAt: number
}

/**
 * State changes without an event of their own.
 *
 * @category models
 * @since 0.1.0
 */
export interface Delta {
  /** The hook of the phase before this record has run. */
  readonly settled?: boolean
  /** Merged into the context. */
  readonly context?: JsonObject
  /** Ids that move from pending to in flight. */
  readonly launched?: ReadonlyArray<string>
  /** Effects of the launched calls, so that processes without their skills know them. */
  readonly effects?: Effects
  /** Ids that move from in flight back to pending, already accepted. */
  readonly retried?: ReadonlyArray<string>
  /** Ids that move from in flight back to pending, already accepted: these calls ask a person. */
  readonly returned?: ReadonlyArray<string>
  /** Results that the caller gave for calls in flight. */
  readonly resolved?: ReadonlyArray<CallResult>
  /** A person's decisions: from `Kernel.answer` only those for this run, possibly none; from a resume all of them. */
  readonly answers?: ReadonlyArray<Answer>
  /** Questions asked at review, after a hook changed a call, or by calls that ran. */
  readonly asked?: ReadonlyArray<Question>
  /** Returns to turn_started, so that the turn is prepared again. */
  readonly rewind?: boolean
  readonly completing?: { readonly source: RunSource; readonly reason?: string; readonly metadata?: Json }
  readonly deferred?: Stop
  /**
   * Usage that no event reports: a refused reply, the preparation of a prompt that was not stored, or a call that asks a
   * person.
   */
  readonly spent?: Usage.Expense
  /**
   * The run was resumed. Settings of the agent, such as a higher `maxSteps`, apply from the agent and are not stored.
   */
  readonly resumed?: boolean
}

/**
 * The result of a completed run. Computed from its state, so a resumed run returns the same result as an undisturbed
 * one.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunResult<out Output = string> {
  readonly runId: string
  /** Only completed runs have a result. */
  readonly status: "completed"
  /** The name of the agent that answered: the one the run was started with, or handed over to. */
  readonly agent: string
  /** The answer, decoded by the agent's output schema. */
  readonly output: Output
  /** The answer as written by the model. */
  readonly text: string
  /** Usage of all turns, tasks, prompts and refused replies, as far as providers reported it. */
  readonly usage: Usage.Usage
  /** Cost in US dollars by the models' prices. A model without a `price` adds nothing. */
  readonly costUsd: number
  readonly turns: number
  /** Null for a turn whose provider reported no usage. */
  readonly perTurnUsage: ReadonlyArray<Usage.Usage | null>
  /** Model calls whose provider reported no usage; `usage` does not include them. */
  readonly unreportedTurns: number
  readonly finishReason: FinishReason
  /** The messages of this run, without the history before it: input, replies, results, steering. */
  readonly messages: ReadonlyArray<Message>
  /** The whole last reply of the model. */
  readonly finalMessage: Message | undefined
  readonly calls: ReadonlyArray<CallMade>
}

/**
 * A call of a completed run.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallMade {
  readonly callId: string
  readonly name: string | null
  readonly input: Json
  readonly isError: boolean
  readonly error?: string
  readonly durationMs: number | undefined
  /** Counts from 1. */
  readonly turn: number
  /** True if the call was in flight when the run stopped, and a resume retried or resolved it. */
  readonly recovered: boolean
}
