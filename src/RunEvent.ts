/**
 * Everything that happens in a run, as one union.
 *
 * Each event is published once and read by all: journal, stream, recorder,
 * logger, telemetry and screens. Phase events carry a revision and are what
 * the run's state is folded from; the others are told live only. A skill given
 * to an agent as a value types its own events.
 *
 * @since 0.1.0
 */
import type { Block } from "./Block.ts"
import type { Call, CallResult } from "./Call.ts"
import type { Json, JsonObject } from "./internal/json.ts"
import type { ProviderReason } from "./KernelError.ts"
import type { Message } from "./Message.ts"
import type { AnySkill, SkillTypes } from "./Skill.ts"
import type { FinishReason, StreamPart } from "./StreamPart.ts"
import type { Usage } from "./Usage.ts"
import type {
  Approval,
  ErrorInfo,
  ForkedFrom,
  ModelArgs,
  Outcome,
  PromptDelta,
  RunResult,
  RunSource,
  ToolResponseChange
} from "./RunState.ts"

/**
 * Where an event happened. `step` counts from 0, `at` is milliseconds of the Clock.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunScope {
  readonly runId: string
  readonly rootRunId: string
  readonly step: number
  readonly depth: number
  readonly taskId: string | undefined
  readonly at: number
}

interface Event<Type extends string> extends RunScope {
  readonly type: Type
}

interface Phase<Type extends string> extends Event<Type> {
  /** The commit this event is part of. */
  readonly revision: number
}

// ---------------------------------------------------------------- phases (DR-4)

/**
 * A run began: who runs, and what it was asked.
 *
 * @category phases
 * @since 0.1.0
 */
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

/**
 * A turn was opened.
 *
 * @category phases
 * @since 0.1.0
 */
export interface TurnStarted extends Phase<"turn_started"> {
  readonly turnId: string
  /** What was said to the run since its last turn, now part of the conversation. */
  readonly steering?: ReadonlyArray<Message>
}

/**
 * The prompt of the turn is made, told as what is new in it.
 *
 * @category phases
 * @since 0.1.0
 */
export interface TurnPrepared extends Phase<"turn_prepared"> {
  readonly model: string
  readonly dialect: "blocks" | "tools"
  readonly prompt: PromptDelta
  readonly tools: ReadonlyArray<string>
  /** What differs from the agent's own model and generation for this turn. */
  readonly args?: ModelArgs
}

/**
 * The model is about to be asked.
 *
 * @category phases
 * @since 0.1.0
 */
export interface ModelStarted extends Phase<"model_started"> {
  readonly attempt: number
}

/**
 * The model is about to be asked again: the run was cut off while it was (DR-24).
 *
 * @category phases
 * @since 0.1.0
 */
export interface ModelRestarted extends Phase<"model_restarted"> {
  readonly attempt: number
}

/**
 * The reply is there, with what it means for the run.
 *
 * @category phases
 * @since 0.1.0
 */
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
 * The calls of the reply are open, with the questions they wait for (DR-22).
 *
 * @category phases
 * @since 0.1.0
 */
export interface ToolCallsStarted extends Phase<"tool_calls_started"> {
  /** The batch a hook put in place of the model's, if it did. */
  readonly calls?: ReadonlyArray<Call>
  readonly approvals?: ReadonlyArray<Approval>
}

/**
 * A call was reviewed: it will run as it is, as `change` says, or not at all (DR-11).
 *
 * @category phases
 * @since 0.1.0
 */
export interface ToolCallStarted extends Phase<"tool_call_started"> {
  readonly toolCallId: string
  readonly change?: ToolResponseChange
}

/**
 * A call has its result.
 *
 * @category phases
 * @since 0.1.0
 */
export interface ToolCallCompleted extends Phase<"tool_call_completed"> {
  readonly toolCallId: string
  readonly result: CallResult
  /** What a child run used (CP-15). */
  readonly spent?: { readonly usage: Usage; readonly costUsd: number; readonly turns: number }
}

/**
 * Every call of the reply has its result.
 *
 * @category phases
 * @since 0.1.0
 */
export interface ToolCallsCompleted extends Phase<"tool_calls_completed"> {}
/**
 * The turn is part of the conversation.
 *
 * @category phases
 * @since 0.1.0
 */
export interface TurnCompleted extends Phase<"turn_completed"> {
  readonly turnId: string
}

/**
 * The run waits, for a person or for its host (DR-9).
 *
 * @category phases
 * @since 0.1.0
 */
export interface Paused extends Phase<"paused"> {
  readonly reason: string
  readonly metadata: Json
}

/**
 * The run ended: with an answer, at its limit, or by its host (DR-10, DR-20).
 *
 * @category phases
 * @since 0.1.0
 */
export interface RunCompleted<out Output = unknown> extends Phase<"run_completed"> {
  readonly source: RunSource
  readonly reason?: string
  readonly metadata?: Json
  /** Absent in the journal: it is computed from it. */
  readonly result?: RunResult<Output>
}

/**
 * The run failed. It can be resumed from where it stood (DR-18).
 *
 * @category phases
 * @since 0.1.0
 */
export interface RunFailed extends Phase<"run_failed"> {
  readonly error: ErrorInfo
}

/**
 * The events a run's state is folded from.
 *
 * @category phases
 * @since 0.1.0
 */
export type PhaseEvent<Output = unknown> =
  | RunStarted
  | TurnStarted
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

// ---------------------------------------------------------------- live

/**
 * What happens inside a turn (BP sections 10 and 11).
 *
 * @category models
 * @since 0.1.0
 */
export type TurnEvent =
  | (Event<"messages_sent"> & { readonly messages: ReadonlyArray<Message> })
  | (Event<"text_chunk"> & { readonly text: string })
  | (Event<"block_start"> & { readonly blockType: string; readonly name: string | null })
  | (Event<"block_content"> & { readonly text: string })
  | (Event<"block_complete"> & { readonly block: Block })
  | (Event<"block_unclosed"> & {
      readonly blockType: string
      readonly name: string | null
      readonly content: string
      readonly finishReason: FinishReason
    })
  | (Event<"stream_part"> & {
      readonly turnId: string
      readonly turn: number
      readonly attempt: number
      readonly part: StreamPart
    })
  | (Event<"model_call_failed"> & {
      /** Who was asked, as `provider/model`; the run may go on with another call (DR-23). */
      readonly model: string
      /** Counts the calls middleware made for this turn, from 1. */
      readonly call: number
      readonly reason: ProviderReason
      readonly error: string
    })
  | (Event<"llm_response"> & { readonly content: string; readonly latencyMs: number; readonly usage: Usage | null })
  | (Event<"blocks_parsed"> & { readonly blocks: ReadonlyArray<Block> })
  | (Event<"plan_rejected"> & { readonly reason: string; readonly raw: string })
  | (Event<"plan"> & { readonly content: string })
  | (Event<"json"> & { readonly content: string })
  | (Event<"blocks_ignored"> & { readonly kinds: ReadonlyArray<string>; readonly reason: string })
  | (Event<"informational_only"> & { readonly kinds: ReadonlyArray<string> })
  | (Event<"no_blocks_stall"> & { readonly prosePreview: string; readonly kinds: ReadonlyArray<string> })
  | (Event<"reply_cut"> & { readonly finishReason: FinishReason })
  /** The model goes round in circles; once told, doing it again fails the run. */
  | (Event<"loop_detected"> & { readonly repeats: number; readonly names: ReadonlyArray<string> })
  | (Event<"output_rejected"> & { readonly detail: string })
  | (Event<"final"> & { readonly text: string })
  | (Event<"result"> & { readonly text: string })

/**
 * What happens to calls.
 *
 * @category models
 * @since 0.1.0
 */
export type CallEvent =
  | (Event<"skill_error"> & { readonly skill: string | null; readonly callId: string; readonly error: string })
  | (Event<"skill_leaked"> & { readonly skill: string; readonly callId: string })
  | (Event<"builtin_result"> & { readonly command: string; readonly result: string })
  | (Event<"builtin_error"> & { readonly command: string; readonly error: string })
  | (Event<"protocol_execute"> & { readonly protocol: string; readonly callId: string; readonly request: string })
  | (Event<"protocol_result"> & {
      readonly protocol: string
      readonly callId: string
      readonly result: Json
      readonly durationMs: number
    })
  | (Event<"protocol_error"> & {
      readonly protocol: string
      readonly callId: string
      readonly error: string
      readonly durationMs?: number
    })

/**
 * What happens to the tasks of a workflow.
 *
 * @category models
 * @since 0.1.0
 */
export type TaskEvent =
  | (Event<"workflow_start"> & {
      readonly goal: string
      readonly strategy: string
      readonly tasks: ReadonlyArray<{
        readonly id: string
        readonly input: string
        readonly parallel: boolean
        readonly dependsOn: ReadonlyArray<string>
        readonly status: string
      }>
    })
  | (Event<"task_start"> & { readonly id: string; readonly input: string; readonly dependsOn: ReadonlyArray<string> })
  | (Event<"task_complete"> & { readonly id: string; readonly result: string; readonly durationMs: number })
  | (Event<"task_error"> & { readonly id: string; readonly error: string; readonly durationMs: number })
  | (Event<"workflow_complete"> & {
      readonly results: ReadonlyArray<readonly [id: string, result: string]>
      readonly durationMs: number
    })
  | (Event<"workflow_error"> & { readonly error: string; readonly durationMs: number })

/**
 * The events of skill calls, typed by the skills themselves.
 *
 * @category models
 * @since 0.1.0
 */
export type SkillEvents<S extends AnySkill<unknown>> = S extends unknown
  ?
      | (RunScope & {
          readonly type: "skill_execute"
          readonly skill: SkillTypes.Name<S>
          readonly callId: string
          /** Parameters as the model gave them, before defaults (BP-67). */
          readonly input: SkillTypes.Input<S>
        })
      | (RunScope & {
          readonly type: "skill_result"
          readonly skill: SkillTypes.Name<S>
          readonly callId: string
          readonly output: SkillTypes.Output<S>
          readonly durationMs: number
          readonly metadata?: JsonObject
          /** Cut at the result limit before the model saw it (AC-14). */
          readonly truncated?: boolean
        })
  : never

/**
 * One thing that happened in a run.
 *
 * @category models
 * @since 0.1.0
 */
export type RunEvent<Output = unknown, S extends AnySkill<unknown> = AnySkill<unknown>> =
  | PhaseEvent<Output>
  | TurnEvent
  | CallEvent
  | TaskEvent
  | SkillEvents<S>

/**
 * The type names of events.
 *
 * @category models
 * @since 0.1.0
 */
export type Type = RunEvent["type"]

const streamed: ReadonlySet<Type> = new Set<Type>(["text_chunk", "block_content", "stream_part"])

/**
 * Tells whether an event is a piece of a stream: what a slow consumer may lose.
 *
 * @category guards
 * @since 0.1.0
 */
export const isStreamed = (event: RunEvent): boolean => streamed.has(event.type)
