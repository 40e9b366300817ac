/**
 * What a run is: a fold of its records.
 *
 * A record is one commit: the phase events of one transition, or a change
 * without events (a launch, a resume). `advance` is pure and is the only way
 * state moves, live and after a crash alike. Everything here is JSON-safe;
 * skills, layers and fibers are never part of it (DR-2 to DR-5).
 *
 * @since 0.1.0
 */

import type { DialectName } from "./Dialect.ts"
import type { Call, CallResult } from "./Call.ts"
import * as Fold from "./internal/state/advance.ts"
import type { Json, JsonObject } from "./internal/base/json.ts"
import { open, turnLog } from "./internal/state/state.ts"
import type { Generation } from "./Generation.ts"
import type { Message } from "./Message.ts"
import type { Model } from "./Model.ts"
import type { Plan } from "./Plan.ts"
import type { FinishReason } from "./StreamPart.ts"
import type { PhaseEvent } from "./RunEvent.ts"
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
 * One commit (DR-4, DR-5).
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

// ---------------------------------------------------------------- the fold

/**
 * Moves a run forward by one record. The first record makes the state: it
 * throws when that is not a `run_started`. Pure: the same records give the same
 * state, in any process.
 *
 * @category combinators
 * @since 0.1.0
 */
export const advance = (state: RunState | undefined, record: RunRecord): RunState => open(Fold.advance(state, record))

/**
 * Folds a whole journal, as `advance` does; nothing when it is empty.
 *
 * @category combinators
 * @since 0.1.0
 */
export const fold = (records: Iterable<RunRecord>): RunState | undefined => {
  let state: RunState | undefined
  for (const record of records) state = Fold.advance(state, record)
  return state === undefined ? undefined : open(state)
}

// ---------------------------------------------------------------- getters

/**
 * Tells whether a commit of a run was copied from the run it was forked from, not run again.
 *
 * @category guards
 * @since 0.1.0
 */
export const isCopied = (state: Pick<RunState, "forkedFrom">, revision: number): boolean =>
  state.forkedFrom !== undefined && revision <= state.forkedFrom.revision

/**
 * How many turns are completed, without looking at them.
 *
 * @category getters
 * @since 0.1.0
 */
export const turnCount = (state: RunState): number => turnLog(state).length

export {
  answer,
  /**
   * A call of a run, as its result tells it (AC-21).
   *
   * @category models
   * @since 0.1.0
   */
  type CallMade,
  /**
   * What a turn adds to the conversation: what was said to it, the answer, then results or a corrective.
   *
   * @category getters
   * @since 0.1.0
   */
  messagesOf,
  /**
   * The result of a completed run, given its decoded output (AC-21).
   *
   * @category getters
   * @since 0.1.0
   */
  result,
  /**
   * What a finished run gives (AC-21). Computed from its state, so a resumed run gives what an undisturbed one does.
   *
   * @category models
   * @since 0.1.0
   */
  type RunResult
} from "./internal/state/runResult.ts"
