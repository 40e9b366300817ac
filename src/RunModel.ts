/**
 * The data of a run: its state, its turns, questions, and result.
 *
 * Everything here is JSON-safe; skills, layers and fibers are never part of it.
 *
 * @since 0.2.0
 */

import type { DialectName } from "./Dialect.ts"
import type { Call, CallResult } from "./Call.ts"
import type { Json, JsonObject } from "./internal/base/json.ts"
import type { Generation } from "./Generation.ts"
import type { Message } from "./Message.ts"
import type { Model } from "./Model.ts"
import type { Plan } from "./Plan.ts"
import type { FinishReason } from "./StreamPart.ts"
import type * as Usage from "./Usage.ts"

// ---------------------------------------------------------------- models

/**
 * The last committed phase event (DR-3).
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
 * Who ended a run: its host, the model, or the turn limit.
 *
 * @category models
 * @since 0.1.0
 */
export type RunSource = "caller" | "model_done" | "max_turns"

/**
 * A failure as it is kept: the tag of the error and its sentence, and its fields when it was a typed one.
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
 * Where a run stands: it runs or waits at a phase, has ended, or failed.
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

/**
 * How a prompt follows from the last one: its first `base` messages are those
 * already stored, in order, and `append` are new. The system text is told when
 * it changed.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromptDelta {
  readonly base: number
  readonly append: ReadonlyArray<Message>
  /** Absent: as before. Null: none. */
  readonly system?: string | null
}

/**
 * How one turn's model call differs from what the agent says.
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
 * What a reply means for the run (DR-26). `corrective` is what the model is told next.
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
 * A hook's or a policy's change of one call at review (DR-11, DR-22): the call
 * in its new form, or the result that stands in for running it.
 *
 * @category models
 * @since 0.1.0
 */
export type CallChange =
  | { readonly type: "rewrite"; readonly call: Call }
  | { readonly type: "skip"; readonly result: CallResult }

/**
 * A call that waits for a person (DR-22). An answer is part of the journal.
 *
 * @category models
 * @since 0.1.0
 */
export interface Question {
  readonly callId: string
  readonly name: string
  readonly input: Json
  readonly reason: string
  readonly answer?: Answer
}

/**
 * A question that waits for its answer, and where it was asked.
 *
 * @category models
 * @since 0.2.0
 */
export interface OpenQuestion extends Question {
  /** The run that asks: the run itself, or a child below it. */
  readonly runId: string
  /** The names of the agents from the run down to the one that asks. */
  readonly agents: ReadonlyArray<string>
}

/**
 * What a person decided about a call (DR-22).
 *
 * @category models
 * @since 0.1.0
 */
export interface Answer {
  readonly callId: string
  readonly approved: boolean
  readonly reason?: string
  readonly by?: string
  /** Arguments to run with instead of the asked-for ones. */
  readonly input?: Json
}

/**
 * One prompt, one answer and its results.
 *
 * @category models
 * @since 0.1.0
 */
export interface Turn {
  readonly turnId: string
  /** Counts from 1; the step of its events is one less. */
  readonly turn: number
  readonly attempt: number
  readonly startedAt: number
  /** What was said to the run before this turn, while it was running. */
  readonly steering?: ReadonlyArray<Message>
  readonly model?: string
  readonly args?: ModelArgs
  /** The conversation before this turn's prompt was prepared, while it may still be prepared again (DR-19). */
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
  /** Ids of the batch, in source order. */
  readonly order: ReadonlyArray<string>
  /** Ids of calls that were cut off and run again, or given a result, by a resume (DR-17). */
  readonly recovered?: ReadonlyArray<string>
}

/**
 * Where a fork parted from another run. Up to that revision the fork is a copy, what follows was run anew.
 *
 * @category models
 * @since 0.1.0
 */
export interface ForkedFrom {
  readonly runId: string
  readonly revision: number
}

/**
 * How a run is stopped before its own end.
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
  /** The agent that the run was handed over to, and its first turn. Undefined: the agent it began with. */
  readonly handed: { readonly agent: string; readonly turn: number } | undefined
  readonly revision: number
  readonly status: Status
  /** The host's own small JSON; hooks and resumes merge into it. */
  readonly context: JsonObject
  /** What the run began with: history, then the input. */
  readonly input: ReadonlyArray<Message>
  /** How many messages of the input were said before this run. */
  readonly history: number
  readonly turns: ReadonlyArray<Turn>
  readonly currentTurn: Turn | undefined
  /** The conversation so far: the last prompt, and from the end of a turn on what that turn added. */
  readonly prompt: ReadonlyArray<Message>
  readonly system: string | null
  /** Revision of the last phase event, and of the last one whose settle hook is known to have run (DR-8). */
  readonly phaseRevision: number
  readonly settledRevision: number
  readonly questions: ReadonlyArray<Question>
  /** The end that onRunCompleted paused (DR-10). */
  readonly completing: { readonly source: RunSource; readonly reason?: string; readonly metadata?: Json } | undefined
  /** The stop a hook asked for while other calls were under way, until it is made (DR-9, DR-10). */
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
 * State changes that no event tells.
 *
 * @category models
 * @since 0.1.0
 */
export interface Delta {
  /** The settle hook of the phase before this record has run. */
  readonly settled?: boolean
  /** Merged into the context. */
  readonly context?: JsonObject
  /** Ids that move from pending to in flight. */
  readonly launched?: ReadonlyArray<string>
  /** Ids that go back from in flight to pending, accepted (DR-17). */
  readonly retried?: ReadonlyArray<string>
  /** Results given by the caller for calls in flight (DR-17). */
  readonly resolved?: ReadonlyArray<CallResult>
  /**
   * What a person decided: from `Kernel.answer` only the answers for this run, maybe none; from a resume all of them.
   */
  readonly answers?: ReadonlyArray<Answer>
  /** Approvals asked for at review, after a hook changed a call (AC-19). */
  readonly asked?: ReadonlyArray<Question>
  /** Back to turn_started, so that the turn is prepared again (DR-19). */
  readonly rewind?: boolean
  readonly completing?: { readonly source: RunSource; readonly reason?: string; readonly metadata?: Json }
  readonly deferred?: Stop
  /** What a refused reply used, or the making of a prompt that was not committed: no event tells it. */
  readonly spent?: Usage.Expense
  /** The run was taken up again. What its agent allows it now, such as more turns, is the agent's and not kept. */
  readonly resumed?: boolean
}

/**
 * The result of a completed run. Computed from its state, so a resumed run returns what an undisturbed one does.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunResult<out Output = string> {
  readonly runId: string
  /** A run that ended otherwise has no result. */
  readonly status: "completed"
  /** The name of the agent that answered: the one the run was started with, or handed over to. */
  readonly agent: string
  /** The answer, decoded by the agent's output schema. */
  readonly output: Output
  /** The answer as the model wrote it. */
  readonly text: string
  /** Usage of all turns, tasks, prompts and refused replies, as far as providers reported it. */
  readonly usage: Usage.Usage
  /** Cost in US dollars by the models' prices. A model without a `price` adds nothing. */
  readonly costUsd: number
  readonly turns: number
  /** Null for a turn whose provider reported no usage. */
  readonly perTurnUsage: ReadonlyArray<Usage.Usage | null>
  /** Model calls whose provider reported no usage: `usage` is too low by them. */
  readonly unreportedTurns: number
  readonly finishReason: FinishReason
  /** The messages of this run, without the history before it: input, replies, results, steering. */
  readonly messages: ReadonlyArray<Message>
  /** The last reply of the model, whole. */
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
  /** Was the call in flight when the run stopped, and retried or resolved by a resume? */
  readonly recovered: boolean
}
