/**
 * Everything that happens in a run, as one union.
 *
 * Each event is published once, for all consumers: journal, stream, recorder, logger, telemetry and screens. Phase
 * events carry a revision, are stored, and make up the state of the run. The other events are emitted live only. A
 * skill passed to an agent as a value types its own events.
 *
 * @since 0.1.0
 */

import type { Block } from "./Block.ts"
import type { Json, JsonObject } from "./kit/json.ts"
import { plain } from "./kit/json.ts"
import type { PhaseEvent, RunScope } from "./RunRecord.ts"
import type { Kind } from "./Media.ts"
import type { ProviderReason, VendorWords } from "./KernelError.ts"
import type { Message } from "./Message.ts"
import type { AnySkill, SkillTypes } from "./Skill.ts"
import type { FinishReason, StreamPart } from "./StreamPart.ts"
import type { Usage } from "./Usage.ts"

export type * from "./RunRecord.ts"

// A type alias, so that declarations can inline it: an interface could not be named outside this module.
type Event<Type extends string> = RunScope & { readonly type: Type }

/**
 * Events inside a turn.
 *
 * @category models
 * @since 0.1.0
 */
export type TurnEvent =
  | (Event<"messages_sent"> & {
      readonly messages: ReadonlyArray<Message>
      /** From the second prompt on, if the first is long enough to be cached. */
      readonly cache?: CacheForecast
    })
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
      /** The requested model, as `provider/model`; the run may continue with another call. */
      readonly model: string
      /** Counts the model calls for one reply, from 1. More than one are made by middleware. */
      readonly call: number
      readonly reason: ProviderReason
      readonly error: string
      /** The vendor's own error text, without secrets. For developers; models never see it. */
      readonly vendor?: VendorWords
      /** Set if the request left out these options and no event has named them yet. */
      readonly dropped?: DroppedOptions
    })
  | (Event<"llm_response"> & {
      readonly content: string
      readonly latencyMs: number
      readonly finishReason: FinishReason
      /** The vendor's own word for an end that is `other`. */
      readonly vendorReason?: string
      readonly usage: Usage | null
      /** Set if the vendor read far fewer tokens from its cache than the `expected` ones. */
      readonly cacheMissed?: { readonly expected: number; readonly read: number }
      /** Set with the first reply to requests that left out these options, and when they change. A failed call may name them first. */
      readonly dropped?: DroppedOptions
    })
  | (Event<"blocks_parsed"> & {
      readonly blocks: ReadonlyArray<Block>
      /** Blocks that have no effect, such as a final answer beside calls, and why. */
      readonly ignored?: { readonly blocks: ReadonlyArray<Block>; readonly reason: string }
    })
  | (Event<"plan_rejected"> & { readonly reason: string; readonly raw: string })
  | (Event<"plan"> & { readonly content: string })
  | (Event<"json"> & { readonly content: string })
  | (Event<"informational_only"> & { readonly kinds: ReadonlyArray<string> })
  | (Event<"no_blocks_stall"> & { readonly prosePreview: string; readonly kinds: ReadonlyArray<string> })
  /** A reply was cut before its vendor reported its usage. This partial usage is counted instead. */
  | (Event<"partial_usage"> & { readonly usage: Usage })
  | (Event<"final"> & { readonly text: string })
  | (Event<"result"> & { readonly text: string })

/**
 * An estimate of how much of a prompt the vendor reads from its cache: `tokens` of the `possible` ones, and the change
 * that lost the rest.
 *
 * @category models
 * @since 0.1.0
 */
export interface CacheForecast {
  readonly tokens: number
  readonly possible: number
  readonly lost: "model" | "tools" | "system" | "messages" | "expired" | null
}

/**
 * Options of the agent that the model does not accept, such as `temperature` or `thinking.budget`. The request is sent
 * without them.
 *
 * @category models
 * @since 0.1.0
 */
export interface DroppedOptions {
  readonly provider: string
  readonly model: string
  readonly options: ReadonlyArray<string>
}

/**
 * Events of calls.
 *
 * @category models
 * @since 0.1.0
 */
export type CallEvent =
  | (Event<"skill_error"> & { readonly skill: string | null; readonly callId: string; readonly error: string })
  | (Event<"builtin_result"> & { readonly command: string; readonly result: string })
  | (Event<"builtin_error"> & { readonly command: string; readonly error: string })
  /** A skill or protocol did not stop when its call was interrupted. The run continues without it. */
  | (Event<"call_leaked"> & { readonly callId: string; readonly name: string })
  | (Event<"protocol_execute"> & { readonly protocol: string; readonly callId: string; readonly request: string })
  | (Event<"protocol_result"> & {
      readonly protocol: string
      readonly callId: string
      /** The answer, or the first text of a message. */
      readonly result: Json
      /**
       * The message, if the handler returned one, with byte counts in place of bytes.
       *
       * @since 0.1.0
       */
      readonly message?: Json
      /**
       * The stored media of the answer, by reference.
       *
       * @since 0.1.0
       */
      readonly media?: ReadonlyArray<MediaRef>
      readonly durationMs: number
    })
  | (Event<"protocol_error"> & {
      readonly protocol: string
      readonly callId: string
      readonly error: string
      readonly durationMs?: number
    })

/**
 * A reference to a stored medium.
 *
 * @category models
 * @since 0.1.0
 */
export interface MediaRef {
  readonly type: "image" | "audio" | "video" | "document"
  /** The id in the `MediaStore`. Absent for a medium that is given by its URL. */
  readonly fileId?: string
  readonly mediaType?: string
  /** The type that the bytes have, if it contradicts the given `mediaType`, which counts. */
  readonly bytesType?: string
}

/**
 * A task: the work of a child run, for a part of a plan or for a call of another agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface TaskRef {
  /** The id in the plan. The call id for a call of another agent. */
  readonly id: string
  readonly callId: string
  /** The run of the task, and the `runId` of its own events. */
  readonly childRunId: string
  /** The agent of the child run. Absent if it is the agent of the parent. */
  readonly agent?: string
}

/**
 * Events of workflows and of tasks. A call of another agent is a task, too.
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
  | (Event<"task_start"> & TaskRef & { readonly input: Json; readonly dependsOn: ReadonlyArray<string> })
  | (Event<"task_complete"> & TaskRef & { readonly result: string; readonly durationMs: number })
  | (Event<"task_error"> & TaskRef & { readonly error: string; readonly durationMs: number })
  | (Event<"workflow_complete"> & {
      readonly results: ReadonlyArray<readonly [id: string, result: string]>
      readonly durationMs: number
    })
  | (Event<"workflow_error"> & { readonly error: string; readonly durationMs: number })

/**
 * Events of skill calls, typed by the skills themselves.
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
          /**
           * The input as written by the model, before its schema decodes it and adds defaults: a `Date` is still a
           * string here.
           */
          readonly input: SkillTypes.Input<S>
          /** The kinds of media that the skill declares to produce. */
          readonly produces?: ReadonlyArray<Kind>
        })
      | (RunScope & {
          readonly type: "skill_result"
          readonly skill: SkillTypes.Name<S>
          readonly callId: string
          readonly output: SkillTypes.Output<S>
          /**
           * The stored media of the result, by reference: `output` holds them as the skill returned them, before they had
           * an id.
           *
           * @since 0.1.0
           */
          readonly media?: ReadonlyArray<MediaRef>
          readonly durationMs: number
          readonly metadata?: JsonObject
          /** The result was cut at the result limit before it was sent to the model. */
          readonly truncated?: boolean
        })
      | (RunScope & {
          readonly type: "skill_progress"
          readonly skill: SkillTypes.Name<S>
          readonly callId: string
          readonly progress?: SkillTypes.Progress<S>
          /** The result so far, in place of `progress`. The next one, or `skill_result`, replaces it. */
          readonly output?: unknown
        })
  : never

/**
 * An event of a run.
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
 * Returns true if an event is a piece of a stream. A slow consumer may lose such events.
 *
 * @category guards
 * @since 0.1.0
 */
export const isStreamed = (event: RunEvent): boolean => streamed.has(event.type)

export {
  /**
   * Returns true if a run is at rest after an event: it paused, completed, failed or was cancelled. The run is the one
   * named by the event's `runId`; runs below it have such events, too.
   *
   * @category guards
   * @since 0.1.0
   */
  isRest
} from "./internal/state/state.ts"

/**
 * Encodes an event as JSON, for a page, a log or a queue. Bytes become their count, other values without a JSON form
 * become text, and `[more]` replaces content nested deeper than 100 levels or following 100,000 objects and lists.
 *
 * An event may hold the result of a skill, such as a picture, which `JSON.stringify` would write byte by byte. Send
 * events only to recipients who may read everything in them: `turn_prepared` and `messages_sent` hold the agent's
 * instructions, `run_started` holds the history.
 *
 * @category codecs
 * @since 0.1.0
 */
export const toJson = (event: RunEvent): Json => plain(event)
