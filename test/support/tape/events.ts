/** Our events under the names and shapes of the vectors. */
import type { RunEvent } from "kernai"
import type { Json } from "../../../src/Content.ts"
import { isSkillResult } from "../../../src/internal/skill/skillOutput.ts"
import { mediaIds } from "./media.ts"
import { withoutHint, translate, documented } from "./words.ts"

type Pair = readonly [string, Json]

/** Our events under the names and shapes of the vectors; those they do not know are left out. */
export const toldEvent = (event: RunEvent.RunEvent): ReadonlyArray<Pair> => {
  switch (event.type) {
    case "text_chunk":
    case "block_content":
      return [[event.type, event.text]]
    case "block_start":
      return [["block_start", { type: event.blockType, name: event.name }]]
    case "plan":
    case "json":
      return [[event.type, event.content]]
    case "final":
      return [["final", event.text]]
    case "builtin_result":
      return [["builtin_result", { command: event.command, result: documented(event.result) }]]
    case "skill_result": {
      const metadata = event.metadata === undefined ? {} : { metadata: event.metadata }
      return [["skill_result", { skill: event.skill, result: raw(event.output), ...metadata }]]
    }
    case "skill_error":
      return event.skill === null ? [] : [["skill_error", { skill: event.skill, error: withoutHint(event.error) }]]
    case "protocol_execute":
      return [["protocol_execute", { protocol: event.protocol, request: event.request }]]
    case "protocol_result":
      return [["protocol_result", { protocol: event.protocol, result: event.result }]]
    case "protocol_error":
      return [["protocol_error", { protocol: event.protocol, error: event.error }]]
    case "workflow_start":
      return [["workflow_start", { goal: event.goal, strategy: event.strategy, tasks: event.tasks.map(wireTask) }]]
    case "task_start":
      return [["task_start", { id: event.id, input: event.input }]]
    case "task_complete":
      return [["task_complete", { id: event.id, result: event.result }]]
    case "task_error":
      return [["task_error", { id: event.id, error: event.error }]]
    case "workflow_complete":
      return [["workflow_complete", Object.fromEntries(event.results)]]
    case "informational_only":
      return [["informational_only", { kinds: [...event.kinds] }]]
    case "no_blocks_stall":
      return [["no_blocks_stall", { prose_preview: event.prosePreview }]]
    default:
      return []
  }
}

const wireTask = ({
  dependsOn,
  ...task
}: {
  readonly dependsOn: ReadonlyArray<string>
  readonly [key: string]: unknown
}): Json => {
  const { id, input, parallel, status } = JSON.parse(JSON.stringify(task))
  return { id, input, parallel, depends_on: [...dependsOn], status }
}

/** What a skill returned, as the vectors write it. */
const raw = (value: unknown): Json => {
  if (Array.isArray(value)) return value.map(raw)
  if (isMedia(value))
    return {
      media: mediaIds.get(Buffer.from(value.source.bytes).toString("base64")) ?? "",
      kind: value.kind,
      mime: value.mimeType
    }
  if (isSkillResult(value)) return value.text
  return value === undefined ? null : JSON.parse(JSON.stringify(value))
}

const isMedia = (
  value: unknown
): value is { readonly kind: string; readonly mimeType: string; readonly source: { readonly bytes: Uint8Array } } =>
  typeof value === "object" &&
  value !== null &&
  "mimeType" in value &&
  "source" in value &&
  typeof value.source === "object" &&
  value.source !== null &&
  "bytes" in value.source

export const wantedEvent = ([name, data]: Pair): Pair =>
  name === "skill_error" || name === "builtin_result" ? [name, translate(data)] : [name, data]

/** Neighbouring text or content pieces are one. */
export const merge = (events: ReadonlyArray<Pair>): ReadonlyArray<Pair> => {
  const merged: Array<Pair> = []
  for (const [name, data] of events) {
    const last = merged.at(-1)
    if ((name === "text_chunk" || name === "block_content") && last?.[0] === name) {
      merged[merged.length - 1] = [name, `${String(last[1])}${String(data)}`]
    } else if (!((name === "text_chunk" || name === "block_content") && data === "")) merged.push([name, data])
  }
  return merged
}
