/**
 * An answer as a person sees it grow: Markdown, and a card for every call.
 *
 * Steps and tokens are left out; whoever wants them uses `kernai run`. What a
 * slow terminal missed of the stream is made up for when the text is whole.
 */

import type { RunEvent } from "../../RunEvent.ts"
import * as Markdown from "../markdown.ts"
import { initial, type Options as Look, paint } from "../pen.ts"
import * as Render from "../renderRun.ts"
import type { Shape as Screen } from "../screen.ts"
import * as Text from "../terminalText.ts"

/** Who hears of the events of one run. */
export interface Teller {
  readonly tell: (events: ReadonlyArray<RunEvent>) => void
  /** Ends the line that is open. */
  readonly end: () => void
}

/** Tells a run on a screen. */
export const make = (screen: Screen, look: Look): Teller => {
  const markdown = Markdown.make(look.colors)
  let pen = initial
  /** What was shown of the text that is being written, and what of this turn. */
  let shown = ""
  let said = ""
  let isFinal = false

  const write = (text: string) => {
    const piece = shown === "" ? text.replace(/^\s+/, "") : text
    if (piece === "") return
    if (shown === "") endLine()
    shown += piece
    const lines = markdown.push(piece)
    if (lines !== "") screen.out(lines)
  }
  const endText = () => {
    if (shown === "") return
    screen.out(markdown.end())
    said += shown
    shown = ""
  }
  const endLine = () => {
    const end = Render.end(pen)
    if (end !== "") screen.progress(end)
    pen = initial
  }
  const whole = (text: string) => {
    const due = text.trimStart()
    if (due.startsWith(shown)) write(due.slice(shown.length))
    else {
      endText()
      write(due)
    }
    endText()
  }
  const card = (line: string) => {
    endText()
    endLine()
    screen.progress(`${line}\n`)
  }
  const draw = (event: RunEvent) => {
    endText()
    const [next, text] = Render.step(pen, event, look)
    pen = next
    if (text !== "") screen.progress(text)
  }

  const tell = (event: RunEvent) => {
    const margin = "  ".repeat(Math.min(event.depth, 8))
    switch (event.type) {
      case "skill_execute":
        return card(margin + opened(event.skill, event.input, look))
      case "skill_result":
        return card(margin + closed(event.skill, event.durationMs, event.output, look))
      case "skill_error":
        return card(margin + failed(event.skill ?? "call", event.error, look))
    }
    if (event.depth > 0) return isToldOfTask(event) ? draw(event) : undefined
    switch (event.type) {
      case "text_chunk":
        return write(event.text)
      case "block_start":
        endText()
        isFinal = event.blockType === "final"
        return isFinal || event.blockType === "command" ? undefined : draw(event)
      case "block_content":
        return isFinal ? write(event.text) : draw(event)
      case "block_complete":
        if (event.block.type === "command") return
        if (!isFinal) return draw(event)
        isFinal = false
        return whole(event.block.content)
      case "turn_started":
        endText()
        said = ""
        isFinal = false
        return
      case "model_restarted":
        draw(event)
        said = ""
        isFinal = false
        return
      case "run_completed":
        endText()
        if (event.result !== undefined && !said.includes(event.result.text.trim())) whole(event.result.text)
        return
      default:
        return quiet.has(event.type) ? undefined : draw(event)
    }
  }

  return {
    tell: (events) => events.forEach(tell),
    end: () => {
      endText()
      endLine()
    }
  }
}

/** What a person in a conversation need not see, or is asked about. */
const quiet: ReadonlySet<RunEvent["type"]> = new Set<RunEvent["type"]>([
  "turn_started",
  "model_completed",
  "tool_calls_started",
  "paused",
  "text_chunk",
  "block_content"
])

/** A block of a task is shown when it is whole, unless its calls or its result tell the same. */
const isToldOfTask = (event: RunEvent): boolean =>
  event.type === "block_complete"
    ? event.block.type !== "command" && event.block.type !== "final"
    : event.type !== "block_start" && !quiet.has(event.type)

const opened = (name: string, input: unknown, look: Look): string =>
  `${paint("╭", "label", look)} ${Text.excerpt(name, 40)}  ${paint(brief(input, look.columns - 48), "quiet", look)}`

const closed = (name: string, durationMs: number, output: unknown, look: Look): string =>
  `${paint("╰", "label", look)} ${Text.excerpt(name, 40)}  ${paint(Text.duration(durationMs), "good", look)}  ${brief(output, look.columns - 60)}`

const failed = (name: string, error: string, look: Look): string =>
  `${paint("╰", "label", look)} ${Text.excerpt(name, 40)}  ${paint(`failed: ${brief(error, look.columns - 60)}`, "bad", look)}`

const brief = (value: unknown, room: number): string =>
  Text.excerpt(typeof value === "string" ? value : (JSON.stringify(value) ?? ""), Math.max(20, room))
