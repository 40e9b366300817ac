/**
 * Shows runs as lines: turns, blocks, calls and tokens. Lines are complete, so those of parallel tasks never mix, and
 * no wider than the terminal.
 */

import type { Block } from "../Block.ts"
import * as Media from "../Media.ts"
import type { RunEvent, TaskRef } from "../RunEvent.ts"
import type { LeftOut, Outcome } from "../RunModel.ts"
import { waitReason } from "../studio/FailureCause.ts"
import * as Text from "./terminalText.ts"

/** Writes a line for each shown event of a run and its tasks. */
export class RunLines {
  readonly #write: (text: string) => void
  readonly #look: Text.Look
  /** Streaming text, by run. */
  readonly #streams = new Map<string, Stream>()

  constructor(write: (text: string) => void, look: Text.Look) {
    this.#write = write
    this.#look = look
  }

  show(event: RunEvent): void {
    const { depth, runId } = event
    const piece = pieceOf(event)
    if (piece !== undefined) {
      const before = this.#streams.get(runId)
      const continued = before?.label === piece.label ? before.text : ""
      if (continued === "") this.#end(runId)
      this.#streams.set(runId, { label: piece.label, text: continued + piece.text, depth })
      return
    }
    const lines = linesOf(event, this.#lookAt(depth))
    if (lines.length === 0) return
    this.#end(runId)
    for (const line of lines) this.#write(`${marginOf(depth)}${line}\n`)
  }

  /** Writes the rest of the streaming text. */
  end(): void {
    for (const runId of this.#streams.keys()) this.#end(runId)
  }

  #lookAt(depth: number): Text.Look {
    return { ...this.#look, columns: this.#look.columns - marginOf(depth).length }
  }

  #end(runId: string): void {
    const stream = this.#streams.get(runId)
    this.#streams.delete(runId)
    if (stream === undefined || stream.text.trim() === "") return
    this.#write(`${marginOf(stream.depth)}${row(stream.label, "", stream.text, this.#lookAt(stream.depth))}\n`)
  }
}

interface Stream {
  readonly label: string
  readonly text: string
  readonly depth: number
}

const pieceOf = (event: RunEvent): Pick<Stream, "label" | "text"> | undefined => {
  if (event.type === "text_chunk") return { label: "text", text: event.text }
  return event.type === "stream_part" && event.part.type === "reasoning-delta"
    ? { label: "thinking", text: event.part.delta }
    : undefined
}

const marginOf = (depth: number): string => "  ".repeat(Math.min(depth, 8))

const row = (label: string, name: string, text: string, look: Text.Look, tone?: Text.Tone): string => {
  const start = Text.excerpt(label, 20).padEnd(9)
  const columns = look.columns - Text.width(start) - 4
  // A narrow terminal has room for the beginnings of the name and of the text.
  const title = name === "" ? "" : `${Text.excerpt(name, Math.max(8, Math.min(40, columns - 12)))}  `
  const room = Math.max(8, columns - Text.width(title))
  const rest = Text.excerpt(text, room)
  return `  ${Text.paint(`${start} `, "label", look)}${title}${tone === undefined ? rest : Text.paint(rest, tone, look)}`
}

const noted = (text: string, look: Text.Look): string =>
  `  ${Text.paint(`! ${Text.excerpt(text, look.columns - 5)}`, "warning", look)}`

const linesOf = (event: RunEvent, look: Text.Look): ReadonlyArray<string> => {
  const note = noteOf(event)
  if (note !== undefined) return [noted(note, look)]
  switch (event.type) {
    case "turn_started": {
      const task = event.taskId === undefined ? "" : ` of task ${Text.excerpt(event.taskId, 40)}`
      return [Text.paint(`turn ${event.step + 1}${task}`, "title", look)]
    }
    case "tool_calls_started":
      return [
        ...(event.questions ?? []).map(({ answer, name, reason }) =>
          noted(`${name} ${answer === undefined ? "waits for a person" : "does not run"}: ${reason}`, look)
        ),
        ...(event.decisions ?? []).flatMap(({ decision, reason }) =>
          decision === "denied" ? [noted(`does not run: ${reason ?? "denied"}`, look)] : []
        )
      ]
    case "block_complete":
      return [row(event.block.type, event.block.name ?? "", event.block.content, look)]
    case "stream_part":
      return event.part.type === "tool-call" ? [row("call", event.part.name, textOf(event.part.params), look)] : []
    case "model_completed":
      return [
        row("model", event.model, modelFacts(event), look),
        ...(event.leftOut ?? []).map((medium) => noted(leftOutNote(medium), look)),
        ...correctionOf(event.outcome, look)
      ]
    case "workflow_start":
      return [row("workflow", event.goal, `${event.tasks.length} tasks, ${event.strategy}`, look)]
    case "workflow_complete":
      return [row("workflow", "done", Text.duration(event.durationMs), look)]
    case "agent_changed":
      return [row("agent", event.to, `takes over from ${event.from}`, look)]
    case "task_start":
      return [row(...titleOf(event), textOf(event.input), look)]
    default: {
      const end = endOf(event)
      if (end === undefined) return []
      const [label, name, { durationMs, error, output }] = end
      if (error !== undefined) return [row(label, name, `failed: ${error}`, look, "bad")]
      const time = durationMs === undefined ? "" : `${Text.duration(durationMs)}: `
      return [row(label, name, `${time}${textOf(output)}`, look)]
    }
  }
}

/** Returns the label and name of a task. A call of another agent is named by the agent. */
const titleOf = ({ agent, callId, id }: TaskRef): readonly [label: string, name: string] =>
  agent !== undefined && id === callId ? ["agent", agent] : ["task", id]

const textOf = (value: unknown): string => {
  if (Media.isMedia(value)) return `[${value.kind} ${value.mimeType}]`
  if (Array.isArray(value) && value.some(Media.isMedia)) return value.map(textOf).join(" ")
  return resultText(value) ?? JSON.stringify(value) ?? ""
}

/** Returns the text of a result: itself, or that beside its media and metadata. */
export const resultText = (output: unknown): string | undefined => {
  if (typeof output === "string") return output
  return typeof output === "object" &&
    output !== null &&
    "~kernai/SkillResult" in output &&
    "text" in output &&
    typeof output.text === "string"
    ? output.text
    : undefined
}

const modelFacts = (event: Extract<RunEvent, { type: "model_completed" }>): string =>
  [
    Text.tokens(event.usage),
    ...Text.cost(event.costUsd),
    Text.duration(event.latencyMs),
    ...(event.finishReason === "stop" || event.finishReason === "tool-calls" ? [] : [`ended by ${event.finishReason}`])
  ].join(", ")

const leftOutNote = ({ mediaType, reason, type }: LeftOut): string => `${type} (${mediaType}) left out: ${reason}`

/** Returns the correction that a reply gets, unless another event reports it. */
const correctionOf = (outcome: Outcome, look: Text.Look): ReadonlyArray<string> =>
  outcome.type === "corrective" && ["cut", "empty", "output", "loop"].includes(outcome.reason)
    ? [noted(`asking again: ${outcome.corrective}`, look)]
    : []

/** Returns a note about an event in which a reply or a call did not work as intended. */
const noteOf = (event: RunEvent): string | undefined => {
  switch (event.type) {
    case "model_restarted":
      return `asking again, attempt ${event.attempt}`
    case "paused":
      return `paused: ${waitReason(event)}`
    case "block_unclosed":
      return `the block ${event.blockType} was never closed (${event.finishReason})`
    case "blocks_parsed":
      return event.ignored && `${typesOf(event.ignored.blocks)} ignored: ${event.ignored.reason}`
    case "informational_only":
      return `only ${event.kinds.join(", ")}: asking to continue`
    case "no_blocks_stall":
      return "no block that does anything: asking again"
    case "plan_rejected":
      return `the plan was rejected: ${event.reason}`
    case "call_leaked":
      return `${event.name} did not stop when it was interrupted`
    default:
      return undefined
  }
}

const typesOf = (blocks: ReadonlyArray<Block>): string => [...new Set(blocks.map(({ type }) => type))].join(", ")

interface End {
  readonly durationMs?: number | undefined
  readonly output?: unknown
  readonly error?: string
}

/** Returns the label, the name and the end of an event that ends a call, a task or a workflow. */
const endOf = (event: RunEvent): readonly [label: string, name: string, end: End] | undefined => {
  switch (event.type) {
    case "skill_result":
      return ["skill", event.skill, event]
    case "skill_error":
      return ["skill", event.skill ?? "", { error: event.error }]
    case "protocol_result":
      return ["protocol", event.protocol, { durationMs: event.durationMs, output: event.result }]
    case "protocol_error":
      return ["protocol", event.protocol, { error: event.error }]
    case "builtin_result":
      return ["builtin", event.command, { output: event.result }]
    case "builtin_error":
      return ["builtin", event.command, { error: event.error }]
    case "task_complete":
      return [...titleOf(event), { durationMs: event.durationMs, output: event.result }]
    case "task_error":
      return [...titleOf(event), { error: event.error }]
    case "workflow_error":
      return ["workflow", "", { error: event.error }]
    default:
      return undefined
  }
}
