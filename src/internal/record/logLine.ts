/**
 * Events as log lines: `[Kernai] LEVEL key=value …`.
 *
 * A line has the event, its run or call, and the duration. It holds no prompts, inputs or results. Each value is a
 * plain or quoted word on the same line.
 */

import type { ModelCompleted, RunEvent, TaskRef } from "../../RunEvent.ts"
import { quote } from "../../kit/text.ts"
import { vendorLine } from "../errors/failedCall.ts"

/** Returns the line of an event, or undefined for events that are not logged. */
export const line = (event: RunEvent, debug: boolean): string | undefined => {
  const entry = entryOf(event)
  if (entry === undefined || (entry.level === "DEBUG" && !debug)) return undefined
  let text = `[Kernai] ${entry.level} event=${entry.event} run=${show(event.runId)} step=${event.step}`
  if (event.taskId !== undefined) text += ` task=${show(event.taskId)}`
  for (const [key, value] of entry.fields) if (value !== undefined) text += ` ${key}=${show(value)}`
  return text
}

type Value = string | number | boolean | null | undefined

interface Entry {
  readonly level: "DEBUG" | "INFO" | "WARN" | "ERROR"
  readonly event: string
  readonly fields: ReadonlyArray<readonly [key: string, value: Value]>
}

const entryOf = (event: RunEvent): Entry | undefined =>
  ofReply(event) ?? ofBlocks(event) ?? ofWork(event) ?? ofRun(event)

/** Returns the entry of an event about a model call. */
const ofReply = (event: RunEvent): Entry | undefined => {
  switch (event.type) {
    case "messages_sent":
      return request(event)
    case "llm_response":
      return response(event)
    case "partial_usage":
      return warn("llm.partial_usage", [
        ["prompt_tokens", event.usage.inputTokens],
        ["completion_tokens", event.usage.outputTokens]
      ])
    case "model_completed":
      return corrected(event) ?? withoutMedia(event)
    default:
      return undefined
  }
}

/** Returns the entry of a request: a warning if it lost what the vendor had cached. */
const request = ({ cache, messages }: Extract<RunEvent, { type: "messages_sent" }>): Entry =>
  (cache === undefined || cache.lost === null ? debug : warn)("llm.request", [
    ["messages", messages.length],
    ["cached", cache?.tokens],
    ["cacheable", cache?.possible],
    ["lost", cache?.lost ?? undefined]
  ])

/** Returns the entry of a reply: a warning if options were dropped, or less was read from the cache than expected. */
const response = (event: Extract<RunEvent, { type: "llm_response" }>): Entry => {
  const { cacheMissed, dropped, latencyMs, usage } = event
  return (cacheMissed === undefined && dropped === undefined ? debug : warn)("llm.response", [
    ["latency_ms", latencyMs],
    ["prompt_tokens", usage?.inputTokens ?? null],
    ["completion_tokens", usage?.outputTokens ?? null],
    ["cache_expected", cacheMissed?.expected],
    ["cache_read", cacheMissed?.read],
    ["dropped", dropped?.options.join(",")]
  ])
}

/** Returns the entry of a reply that the model must write again and that no other event reports. */
const corrected = ({ finishReason, outcome }: ModelCompleted): Entry | undefined =>
  outcome.type === "corrective" && ["cut", "empty", "output", "goal", "loop"].includes(outcome.reason)
    ? warn("agent.corrected", [
        ["reason", outcome.reason],
        ["finish_reason", finishReason],
        ["repeats", outcome.loop?.repeats],
        ["names", outcome.loop?.names.join(",")]
      ])
    : undefined

/** Returns the entry of a reply to a request that left out media. */
const withoutMedia = ({ leftOut }: ModelCompleted): Entry | undefined =>
  leftOut &&
  warn("llm.media_left_out", [
    ["types", leftOut.map(({ type }) => type).join(",")],
    ["reasons", [...new Set(leftOut.map(({ reason }) => reason))].join("; ")]
  ])

/** Returns the entry of an event about the blocks of a reply. */
const ofBlocks = (event: RunEvent): Entry | undefined => {
  switch (event.type) {
    case "block_start":
      return debug("block.detected", block(event.blockType, event.name))
    case "block_complete":
      return debug("block.complete", block(event.block.type, event.block.name))
    case "block_unclosed":
      return warn("block.unclosed", [...block(event.blockType, event.name), ["finish_reason", event.finishReason]])
    case "blocks_parsed":
      return event.ignored === undefined
        ? undefined
        : warn("agent.blocks_ignored", [
            ["kinds", [...new Set(event.ignored.blocks.map(({ type }) => type))].join(",")],
            ["reason", event.ignored.reason]
          ])
    case "plan_rejected":
      return warn("workflow.plan_rejected", [["reason", event.reason]])
    case "informational_only":
      return info("agent.informational_only", [["kinds", event.kinds.join(",")]])
    case "no_blocks_stall":
      return info("agent.no_blocks_stall", [["kinds", event.kinds.join(",")]])
    case "final":
      return info("agent.complete", [["steps", event.step + 1]])
    default:
      return undefined
  }
}

/** Returns the entry of an event about a workflow or a call. */
const ofWork = (event: RunEvent): Entry | undefined => {
  switch (event.type) {
    case "workflow_start":
      return info("workflow.start", [
        ["strategy", event.strategy],
        ["tasks", event.tasks.length]
      ])
    case "workflow_complete":
      return info("workflow.complete", [
        ["tasks", event.results.length],
        ["duration_ms", event.durationMs]
      ])
    case "workflow_error":
      return error("workflow.deadlock", event.error, [["duration_ms", event.durationMs]])
    case "task_start":
      return info("task.start", task(event))
    case "task_complete":
      return info("task.complete", [...task(event), ["duration_ms", event.durationMs]])
    case "task_error":
      return error("task.error", event.error, [...task(event), ["duration_ms", event.durationMs]])
    case "agent_changed":
      return info("agent.changed", [
        ["from", event.from],
        ["to", event.to]
      ])
    case "skill_execute":
      return info("skill.execute", call(event.skill, event.callId))
    case "skill_result":
      return info("skill.result", [...call(event.skill, event.callId), ["duration_ms", event.durationMs]])
    case "skill_error":
      return error("skill.error", event.error, call(event.skill, event.callId))
    case "builtin_result":
      return info("builtin.execute", [["command", event.command]])
    case "builtin_error":
      return error("builtin.error", event.error, [["command", event.command]])
    case "call_leaked":
      return warn("call.leaked", [
        ["name", event.name],
        ["call", event.callId]
      ])
    case "protocol_execute":
      return info("protocol.execute", protocol(event.protocol, event.callId))
    case "protocol_result":
      return info("protocol.result", [...protocol(event.protocol, event.callId), ["duration_ms", event.durationMs]])
    case "protocol_error":
      return error("protocol.error", event.error, [
        ...protocol(event.protocol, event.callId),
        ["duration_ms", event.durationMs]
      ])
    default:
      return undefined
  }
}

/** Returns the entry of an event about the model's retries or the run's stops. */
const ofRun = (event: RunEvent): Entry | undefined => {
  switch (event.type) {
    case "model_restarted":
      return warn("llm.restart", [
        ["attempt", event.attempt],
        ["left_out", event.repair?.leftOut.map(({ type }) => type).join(" ")]
      ])
    case "model_call_failed":
      return error("llm.call_failed", event.error, [
        ["model", event.model],
        ["call", event.call],
        ["vendor", event.vendor === undefined ? undefined : vendorLine(event.vendor)],
        ["dropped", event.dropped?.options.join(",")]
      ])
    case "paused":
      return info("run.paused", [["reason", event.reason]])
    case "run_completed":
      return event.source === "model_done"
        ? undefined
        : info("run.completed", [
            ["source", event.source],
            ["reason", event.reason]
          ])
    case "run_failed":
      return error("run.failed", event.error.message, [["tag", event.error.tag]])
    case "run_cancelled":
      return info("run.cancelled", [
        ["by", event.by],
        ["reason", event.reason],
        ["in_flight", event.inFlight.length],
        ["writes", event.inFlight.filter(({ effects }) => effects === "write").length]
      ])
    default:
      return undefined
  }
}

type Fields = Entry["fields"]

const debug = (event: string, fields: Fields): Entry => ({ level: "DEBUG", event, fields })
const info = (event: string, fields: Fields): Entry => ({ level: "INFO", event, fields })
const warn = (event: string, fields: Fields): Entry => ({ level: "WARN", event, fields })
const error = (event: string, message: string, fields: Fields): Entry => ({
  level: "ERROR",
  event,
  fields: [...fields, ["error", message]]
})

const block = (type: string, name: string | null): Fields => [
  ["type", type],
  ["name", name ?? undefined]
]
const call = (skill: string | null, id: string): Fields => [
  ["skill", skill],
  ["call", id]
]
const task = ({ agent, id }: TaskRef): Fields => [
  ["id", id],
  ["agent", agent]
]
const protocol = (name: string, id: string): Fields => [
  ["protocol", name],
  ["call", id]
]

const maxLength = 1_000

/**
 * Formats a value. Plain words stay as they are, all other texts are quoted, including those that look like a number or
 * null.
 */
const show = (value: string | number | boolean | null): string => {
  if (typeof value !== "string") return String(value)
  const text = value.length <= maxLength ? value : `${value.slice(0, maxLength)}…`
  return isWord(text) ? text : quote(text)
}

const isWord = (text: string): boolean =>
  /^[\w.:/@+-]+$/.test(text) && Number.isNaN(Number(text)) && !["null", "true", "false"].includes(text)
