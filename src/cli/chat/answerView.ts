/** Shows the answer of a chat on the output while it streams, and other events as progress. */

import type { RunEvent } from "../../RunEvent.ts"
import type { RunResult } from "../../RunState.ts"
import { type Drawing, plain } from "../plainDrawing.ts"
import { RunLines } from "../runLines.ts"
import { sourceLines } from "../sourceLines.ts"
import type { Shape as Screen } from "../screen.ts"
import { workLines } from "../workspace/workText.ts"
import type * as Text from "../terminalText.ts"

/** Shows the events of one run. */
export class AnswerView {
  readonly #screen: Screen
  readonly #look: Text.Look
  readonly #lines: RunLines
  readonly #drawing: Drawing
  /** The part of the streaming text that was given to the drawing. */
  #text = ""
  /** The shown texts of this turn. */
  #shown = ""
  #isFinal = false

  constructor(screen: Screen, look: Text.Look, drawing: Drawing = plain()) {
    this.#drawing = drawing
    this.#screen = screen
    this.#look = look
    this.#lines = new RunLines((line) => {
      this.#endText()
      screen.progress(line)
    }, look)
  }

  show(event: RunEvent): void {
    if (hidden.has(event.type)) return this.#endText()
    if (event.type === "tool_calls_started") {
      this.#endText()
      // The chat asks the open questions itself.
      const decided = (event.questions ?? []).filter(({ answer }) => answer !== undefined)
      return this.#lines.show({ ...event, questions: decided })
    }
    if (event.depth > 0) return this.#lines.show(event)
    switch (event.type) {
      case "text_chunk":
        return this.#write(event.text)
      case "block_start":
        this.#endText()
        this.#isFinal = event.blockType === "final"
        return
      case "block_content":
        return this.#isFinal ? this.#write(event.text) : undefined
      case "block_complete":
        if (event.block.type !== "final") return this.#lines.show(event)
        this.#isFinal = false
        return this.#complete(event.block.content)
      case "model_restarted":
        this.#shown = ""
        this.#isFinal = false
        return this.#lines.show(event)
      case "run_completed":
        this.#endText()
        return event.result === undefined ? undefined : this.#answer(event.result)
      default:
        this.#lines.show(event)
        for (const line of workLines(event, this.#look)) this.#screen.progress(`${line}\n`)
    }
  }

  /** Ends all open lines. */
  end(): void {
    this.#endText()
    this.#lines.end()
  }

  #write(text: string): void {
    const piece = this.#text === "" ? text.trimStart() : text
    if (piece === "") return
    this.#lines.end()
    this.#text += piece
    this.#out(this.#drawing.push(piece))
  }

  #endText(): void {
    this.#out(this.#drawing.end())
    this.#shown += this.#text
    this.#text = ""
  }

  #out(drawn: string): void {
    if (drawn !== "") this.#screen.out(drawn)
  }

  /** Shows an answer, unless its turn has shown it, and the sources that its run names. */
  #answer({ messages, text }: RunResult<unknown>): void {
    if (!this.#shown.includes(text.trim())) this.#complete(text)
    const sources = sourceLines(messages, this.#look)
    if (sources !== "") this.#screen.progress(sources)
  }

  /** Shows the rest of a text, or all of it if a slow terminal lost pieces. */
  #complete(text: string): void {
    const whole = text.trimStart()
    if (!whole.startsWith(this.#text)) this.#endText()
    this.#write(whole.slice(this.#text.length))
    this.#endText()
  }
}

/** Events that are not shown in a chat, or that are questions. */
const hidden: ReadonlySet<RunEvent["type"]> = new Set<RunEvent["type"]>(["turn_started", "model_completed", "paused"])
