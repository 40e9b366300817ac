/**
 * Converts events to entries of a recorder.
 *
 * The classic entries are those of the block protocol, under its names. Entries of kernai's own events are recorded
 * between them. Entries of phases leave out data that other entries already hold.
 */

import type { Block } from "../../Block.ts"
import type { HostedCall } from "../../Call.ts"
import * as Content from "../../Content.ts"
import type { Message } from "../../Message.ts"
import type { MediaRef, PhaseEvent, RunEvent, TaskRef } from "../../RunEvent.ts"
import { isStored } from "../state/recordSchema.ts"
import type { FinishReason } from "../../StreamPart.ts"
import type { Usage } from "../../Usage.ts"
import type { Json, JsonObject } from "../../kit/json.ts"
import { plain } from "../../kit/json.ts"
import { commonPrefix } from "../../kit/lists.ts"
import { isSkillResult } from "../skill/skillOutput.ts"
import { references } from "../../store-kit/Medium.ts"

/** The names of the block protocol's own entries. */
export const classic: ReadonlySet<string> = new Set([
  "messages_sent",
  "llm_response",
  "blocks_parsed",
  "plan_rejected",
  "plan",
  "json",
  "builtin_result",
  "builtin_error",
  "skill_execute",
  "skill_result",
  "skill_error",
  "protocol_execute",
  "protocol_result",
  "protocol_error",
  "workflow_start",
  "task_start",
  "task_complete",
  "task_error",
  "workflow_complete",
  "workflow_error",
  "informational_only",
  "no_blocks_stall",
  "result"
])

/** Returns the data of an entry, or undefined for events that are only emitted live. */
export const dataOf = (event: RunEvent, base: number): Json | undefined =>
  replyData(event, base) ?? callData(event) ?? workflowData(event)

/** Returns the data of events about requests, replies and their blocks. */
const replyData = (event: RunEvent, base: number): Json | undefined => {
  switch (event.type) {
    case "messages_sent":
      return {
        base,
        append: event.messages.slice(base).map(messageOf),
        ...(event.cache === undefined ? {} : { cache: { ...event.cache } })
      }
    case "llm_response":
      return {
        content: event.content,
        latency_ms: event.latencyMs,
        ...(isCut(event.finishReason) ? { finish_reason: event.finishReason } : {}),
        ...tokensOf(event.usage),
        ...(event.cacheMissed === undefined ? {} : { cache_missed: event.cacheMissed }),
        ...(event.dropped === undefined ? {} : { dropped: { ...event.dropped } })
      }
    case "blocks_parsed":
      return event.blocks.map((block) => blockEntry(block, event.ignored))
    case "plan_rejected":
      return { reason: event.reason, raw: event.raw }
    case "plan":
    case "json":
      return event.content
    case "result":
      return event.text
    case "informational_only":
      return { kinds: event.kinds }
    case "no_blocks_stall":
      return { prose_preview: event.prosePreview }
    case "block_unclosed":
      return { type: event.blockType, name: event.name, content: event.content, finish_reason: event.finishReason }
    case "partial_usage":
      return tokensOf(event.usage)
    default:
      return undefined
  }
}

const callData = (event: RunEvent): JsonObject | undefined => {
  switch (event.type) {
    case "builtin_result":
      return { command: event.command, result: event.result }
    case "builtin_error":
      return { command: event.command, error: short(event.error, event.command) }
    case "skill_execute":
      return { skill: event.skill, params: plain(event.input) }
    case "skill_result":
      return {
        skill: event.skill,
        // Of a `SkillResult` only the text is recorded.
        result: isSkillResult(event.output) ? event.output.text : plain(event.output),
        duration_ms: event.durationMs,
        ...(event.metadata === undefined || Object.keys(event.metadata).length === 0
          ? {}
          : { metadata: plain(event.metadata) }),
        ...(event.truncated === true ? { truncated: true } : {})
      }
    case "skill_error":
      return { skill: event.skill, error: short(event.error, event.skill) }
    case "call_leaked":
      return { name: event.name, call_id: event.callId }
    case "protocol_execute":
      return { protocol: event.protocol, request: event.request }
    case "protocol_result":
      return {
        protocol: event.protocol,
        result: plain(event.result),
        ...(event.message === undefined ? {} : { message: event.message }),
        ...mediaOf(event.media),
        duration_ms: event.durationMs
      }
    case "protocol_error":
      return {
        protocol: event.protocol,
        error: short(event.error, event.protocol),
        ...(event.durationMs === undefined ? {} : { duration_ms: event.durationMs })
      }
    default:
      return undefined
  }
}

/** Returns media by reference, in the format of contents. */
const mediaOf = (media: ReadonlyArray<MediaRef> = []): JsonObject =>
  media.length === 0
    ? {}
    : {
        media: media.map(({ fileId, mediaType, type }) => ({
          type,
          ...(fileId === undefined ? {} : { file_id: fileId }),
          ...(mediaType === undefined ? {} : { media_type: mediaType })
        }))
      }

const workflowData = (event: RunEvent): JsonObject | undefined => {
  switch (event.type) {
    case "workflow_start":
      return {
        goal: event.goal,
        strategy: event.strategy,
        tasks: event.tasks.map(({ dependsOn, id, input, parallel, status }) => ({
          id,
          input,
          parallel,
          depends_on: dependsOn,
          status
        }))
      }
    case "task_start":
      return { ...taskOf(event), input: event.input, depends_on: event.dependsOn }
    case "task_complete":
      return { ...taskOf(event), result: event.result, duration_ms: event.durationMs }
    case "task_error":
      return { ...taskOf(event), error: event.error, duration_ms: event.durationMs }
    case "workflow_complete":
      // A list of pairs, because an object would move an id like `10` before one like `a`.
      return { results: event.results, duration_ms: event.durationMs }
    case "workflow_error":
      return { error: event.error, duration_ms: event.durationMs }
    default:
      return undefined
  }
}

const blockEntry = (block: Block, ignored: Extract<RunEvent, { type: "blocks_parsed" }>["ignored"]): JsonObject => ({
  type: block.type,
  content: block.content,
  ...(block.name === null ? {} : { name: block.name }),
  ...(ignored?.blocks.includes(block) === true ? { ignored: ignored.reason } : {})
})

const taskOf = ({ agent, childRunId, id }: TaskRef): JsonObject => ({
  task_id: id,
  ...(agent === undefined ? {} : { agent, child_run_id: childRunId })
})

/** Returns the data of the events that `dataOf` leaves out, or undefined for stream parts. */
export const phaseOf = (event: RunEvent): JsonObject | undefined => {
  switch (event.type) {
    case "block_start":
      return { type: event.blockType, name: event.name }
    case "block_complete":
      return { type: event.block.type, name: event.block.name }
    case "final":
      return { text: event.text }
    case "model_call_failed":
      return {
        model: event.model,
        call: event.call,
        reason: event.reason,
        error: event.error,
        ...(event.vendor === undefined ? {} : { vendor: event.vendor }),
        ...(event.dropped === undefined ? {} : { dropped: { ...event.dropped } })
      }
    default:
      return isStored(event) ? { revision: event.revision, ...storedData(event) } : undefined
  }
}

/** Returns the data of a stored event, except its revision. */
const storedData = (event: PhaseEvent): JsonObject => {
  switch (event.type) {
    case "turn_started":
    case "turn_completed":
      return { turn_id: event.turnId }
    case "agent_changed":
      return { from: event.from, to: event.to, call_id: event.callId }
    case "turn_prepared":
      return { model: event.model, dialect: event.dialect, tools: event.tools }
    case "model_started":
      return { attempt: event.attempt }
    case "model_restarted":
      return {
        attempt: event.attempt,
        ...(event.repair && { reason: event.repair.reason, left_out: event.repair.leftOut.map(({ type }) => type) })
      }
    case "model_completed":
      return completedData(event)
    case "tool_calls_started":
      return { questions: event.questions?.length ?? 0 }
    case "tool_calls_completed":
      return {}
    case "tool_call_started":
      return { call_id: event.callId, change: event.change?.type ?? null }
    case "tool_call_completed":
      return {
        call_id: event.callId,
        error: event.result.error?.name ?? null,
        skipped: event.result.skipped ?? false,
        ...mediaOf(references([...(event.result.output ?? []), ...(event.result.message?.content ?? [])]))
      }
    case "run_started":
      return { agent: event.agent, parent_run_id: event.parentRunId ?? null }
    case "paused":
      return { reason: event.reason, metadata: plain(event.metadata) }
    case "run_completed":
      return { source: event.source, reason: event.reason ?? null }
    case "run_failed":
      return { error: event.error.tag, message: event.error.message }
    case "run_cancelled":
      return {
        by: event.by ?? null,
        reason: event.reason ?? null,
        in_flight: event.inFlight.map(({ callId, effects, name }) => ({
          call_id: callId,
          name,
          ...(effects === undefined ? {} : { effects })
        }))
      }
  }
}

const completedData = (event: Extract<PhaseEvent, { readonly type: "model_completed" }>): JsonObject => ({
  model: event.model,
  finish_reason: event.finishReason,
  outcome: event.outcome.type,
  ...(event.outcome.type === "corrective" ? { reason: event.outcome.reason, ...event.outcome.loop } : {}),
  calls: event.calls.length,
  ...mediaOf(references(event.message.content)),
  ...(event.hosted === undefined ? {} : { hosted: event.hosted.map(hostedEntry) }),
  ...(event.leftOut === undefined ? {} : { left_out: event.leftOut.map((medium) => ({ ...medium })) }),
  ...(event.costUsd === undefined ? {} : { cost_usd: event.costUsd })
})

/** Returns the number of equal messages at the start of two conversations, which need not be recorded again. */
export const shared = (before: ReadonlyArray<Message>, after: ReadonlyArray<Message>): number =>
  commonPrefix(before, after, isSame)

// Messages are shared objects, except for the system message, which is created each turn and is a single text.
const isSame = (a: Message | undefined, b: Message | undefined): boolean => {
  if (a === b) return true
  if (a === undefined || b === undefined || a.role !== b.role || a.name !== b.name) return false
  const [left, right] = [a.content[0], b.content[0]]
  return (
    a.content.length === 1 &&
    b.content.length === 1 &&
    left?.type === "text" &&
    right?.type === "text" &&
    left.text === right.text
  )
}

const messageOf = (message: Message): JsonObject => ({ role: message.role, content: message.content.map(contentOf) })

/** Returns a content without its bytes, because media are recorded by reference. */
const contentOf = (content: Content.Content): JsonObject => {
  switch (content.type) {
    case "image":
    case "audio":
    case "video":
    case "document": {
      const { data, ...rest } = content
      return data === undefined ? Content.encode(rest) : { ...Content.encode(rest), bytes: data.byteLength }
    }
    case "tool_result":
      return { ...Content.encode({ ...content, content: [] }), content: content.content.map(contentOf) }
    default:
      return Content.encode(Content.uiForm(content))
  }
}

/** Returns whether a reply ended otherwise than by the model. */
const isCut = (finishReason: FinishReason): boolean => finishReason !== "stop" && finishReason !== "tool-calls"

const tokensOf = (usage: Usage | null): JsonObject =>
  usage === null
    ? { prompt_tokens: null, completion_tokens: null, total_tokens: null }
    : {
        prompt_tokens: usage.inputTokens,
        completion_tokens: usage.outputTokens,
        total_tokens: usage.inputTokens + usage.outputTokens
      }

/** Returns the recorder's short form of an error that the model gets as a sentence. */
const short = (error: string, name: string | null): string => {
  switch (error) {
    case `Skill '${name}' not found`:
      return "not found"
    case `Skill '${name}' is not allowed`:
    case `Protocol '${name}' is not allowed`:
      return "not allowed"
    case `Protocol '${name}' has no handler`:
      return "handler missing"
    case `Unknown command '${name}'`:
      return "unknown"
    case "Command block missing skill name":
      return "no skill name in command block"
    default:
      return error
  }
}

const hostedEntry = ({ callId, input, isError, name, sources }: HostedCall): JsonObject => ({
  call_id: callId,
  name,
  input,
  is_error: isError === true,
  sources: sources.map((source) => ({ ...source }))
})
