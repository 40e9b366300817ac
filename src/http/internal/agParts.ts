/** Converts the parts of a message to AG-UI: steps, text, reasoning, calls, activities. */

import type { Json, JsonObject } from "../../kit/json.ts"
import { type AgEvent, make, textOf } from "./agEvent.ts"
import { Transcript } from "./agTranscript.ts"
import { type Chunk, objectOf, wordOf } from "./uiChunk.ts"

/** The parts of one run. Its methods change it in place. */
export class AgParts {
  readonly #of: string
  readonly #messages: ReadonlyArray<JsonObject>
  /** Calls whose arguments are incomplete, and whether any were sent. */
  readonly #open = new Map<string, boolean>()
  /** Calls that were sent completely. */
  readonly #called = new Set<string>()
  #transcript: Transcript
  /** The open text or reasoning. */
  #part: { readonly kind: string; readonly id: string } | undefined
  /** The message that carries the calls of the turn. */
  #parent: string | undefined
  #turn = 0
  #isInTurn = false
  #isInStep = false

  constructor(of: string, messages: ReadonlyArray<JsonObject>) {
    this.#of = of
    this.#messages = messages
    this.#transcript = new Transcript(messages)
  }

  /** Starts for a page that has everything so far. */
  begin(): ReadonlyArray<AgEvent> {
    this.#transcript = new Transcript(this.#messages)
    return this.#isInTurn ? this.#step() : []
  }

  /** Returns the events for a chunk. */
  push(chunk: Chunk): ReadonlyArray<AgEvent> {
    const events = this.#eventsOf(chunk)
    for (const event of events) this.#transcript.add(event)
    return events
  }

  /** Ends all open parts. */
  close(): ReadonlyArray<AgEvent> {
    return [...this.#closeParts(), ...this.#unstep()]
  }

  #eventsOf(chunk: Chunk): ReadonlyArray<AgEvent> {
    switch (chunk.type) {
      case "start-step":
        return this.#begun()
      case "finish-step":
        this.#isInTurn = false
        return this.close()
      case "reset-step":
        return this.#withdrawn()
      case "text-start":
      case "reasoning-start":
        return this.#started(chunk.type === "text-start" ? "TEXT" : "REASONING", this.#idOf(wordOf(chunk, "id")))
      case "text-delta":
      case "reasoning-delta":
        return this.#delta(wordOf(chunk, "delta"))
      case "text-end":
      case "reasoning-end":
        return this.#ended()
      default:
        return chunk.type.startsWith("tool-") ? this.#call(chunk, wordOf(chunk, "toolCallId")) : this.#other(chunk)
    }
  }

  #call(chunk: Chunk, toolCallId: string): ReadonlyArray<AgEvent> {
    switch (chunk.type) {
      case "tool-input-start":
        return this.#callStarted(toolCallId, wordOf(chunk, "toolName"))
      case "tool-input-delta":
        this.#open.set(toolCallId, true)
        return [make("TOOL_CALL_ARGS", { toolCallId, delta: wordOf(chunk, "inputTextDelta") })]
      case "tool-input-available":
        return this.#whole(toolCallId, wordOf(chunk, "toolName"), chunk["input"])
      case "tool-output-available":
        return chunk["preliminary"] === true
          ? [make("CUSTOM", { name: "preliminary", value: { toolCallId, output: chunk["output"] ?? null } })]
          : [this.#result(toolCallId, textOf(chunk["output"]))]
      case "tool-output-denied":
        return [this.#result(toolCallId, "The call was refused.")]
      case "tool-input-error":
        return [
          ...this.#whole(toolCallId, wordOf(chunk, "toolName"), chunk["input"]),
          this.#result(toolCallId, wordOf(chunk, "errorText"))
        ]
      case "tool-output-error":
        return [this.#result(toolCallId, wordOf(chunk, "errorText"))]
      default:
        return []
    }
  }

  /** Data of a plan, a task or an agent is an activity; files, sources and progress are custom events. */
  #other(chunk: Chunk): ReadonlyArray<AgEvent> {
    const { type, ...value } = chunk
    if (type === "file" || type.startsWith("source-")) return [make("CUSTOM", { name: type, value })]
    // The form of a question is part of its interrupt.
    if (!type.startsWith("data-") || type === "data-form") return []
    const activityType = type.slice("data-".length)
    const id = wordOf(chunk, "id")
    if (chunk["transient"] === true) {
      return [make("CUSTOM", { name: activityType, value: { toolCallId: id, data: chunk["data"] ?? null } })]
    }
    const messageId = this.#idOf(`${activityType}-${id}`)
    return [make("ACTIVITY_SNAPSHOT", { messageId, activityType, content: objectOf(chunk, "data") })]
  }

  #begun(): ReadonlyArray<AgEvent> {
    const ended = this.close()
    this.#turn++
    this.#isInTurn = true
    this.#parent = undefined
    this.#transcript.begin()
    return [...ended, ...this.#step()]
  }

  #step(): ReadonlyArray<AgEvent> {
    this.#isInStep = true
    return [make("STEP_STARTED", { stepName: `turn ${this.#turn}` })]
  }

  #unstep(): ReadonlyArray<AgEvent> {
    if (!this.#isInStep) return []
    this.#isInStep = false
    return [make("STEP_FINISHED", { stepName: `turn ${this.#turn}` })]
  }

  #withdrawn(): ReadonlyArray<AgEvent> {
    const ended = this.#closeParts()
    this.#called.clear()
    this.#parent = undefined
    return [...ended, this.#transcript.withdraw()]
  }

  #started(kind: "TEXT" | "REASONING", messageId: string): ReadonlyArray<AgEvent> {
    this.#part = { kind, id: messageId }
    if (kind === "REASONING") {
      return [make("REASONING_START", { messageId }), make("REASONING_MESSAGE_START", { messageId, role: "reasoning" })]
    }
    this.#parent = messageId
    return [make("TEXT_MESSAGE_START", { messageId, role: "assistant" })]
  }

  #delta(delta: string): ReadonlyArray<AgEvent> {
    const part = this.#part
    return part === undefined ? [] : [make(`${part.kind}_MESSAGE_CONTENT`, { messageId: part.id, delta })]
  }

  #ended(): ReadonlyArray<AgEvent> {
    const part = this.#part
    if (part === undefined) return []
    this.#part = undefined
    const messageId = part.id
    const end = make(`${part.kind}_MESSAGE_END`, { messageId })
    return part.kind === "REASONING" ? [end, make("REASONING_END", { messageId })] : [end]
  }

  #callStarted(toolCallId: string, toolCallName: string): ReadonlyArray<AgEvent> {
    this.#open.set(toolCallId, false)
    this.#parent ??= this.#idOf(`calls-${this.#turn}`)
    return [make("TOOL_CALL_START", { toolCallId, toolCallName, parentMessageId: this.#parent })]
  }

  /** Sends the input of a call unless it was streamed. An input that changes later is not sent again. */
  #whole(toolCallId: string, name: string, input: Json | undefined): ReadonlyArray<AgEvent> {
    if (this.#called.has(toolCallId)) return []
    const started = this.#open.has(toolCallId) ? [] : this.#callStarted(toolCallId, name)
    const args = make("TOOL_CALL_ARGS", { toolCallId, delta: JSON.stringify(input ?? {}) })
    const isStreamed = this.#open.get(toolCallId) === true
    return [...started, ...(isStreamed ? [] : [args]), ...this.#callEnded(toolCallId)]
  }

  #callEnded(toolCallId: string): ReadonlyArray<AgEvent> {
    this.#open.delete(toolCallId)
    this.#called.add(toolCallId)
    return [make("TOOL_CALL_END", { toolCallId })]
  }

  #result(toolCallId: string, content: string): AgEvent {
    return make("TOOL_CALL_RESULT", {
      messageId: this.#idOf(`result-${toolCallId}`),
      toolCallId,
      content,
      role: "tool"
    })
  }

  #closeParts(): ReadonlyArray<AgEvent> {
    return [...this.#ended(), ...[...this.#open.keys()].flatMap((id) => this.#callEnded(id))]
  }

  /** Returns the id of a message, which includes its run. */
  #idOf(part: string): string {
    return `${this.#of}:${part}`
  }
}
