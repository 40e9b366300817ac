/**
 * Converts the text, reasoning and calls of a reply in progress to chunks.
 *
 * Text outside blocks, the answer and native text are text parts; thinking is a reasoning part. Other blocks are calls
 * or notes, which are sent with the whole reply.
 */

import * as BlockParser from "../../BlockParser.ts"
import type { Content } from "../../Content.ts"
import type { DialectName } from "../../Dialect.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { StreamPart } from "../../StreamPart.ts"
import { type Chunk, chunk } from "./uiChunk.ts"

type Piece = Extract<
  RunEvent,
  { readonly type: "text_chunk" | "block_start" | "block_content" | "block_complete" | "stream_part" }
>

type Kind = "text" | "reasoning"

/** A reply in progress. Its methods change it in place. */
export class UiReply {
  #open: { readonly kind: Kind; readonly id: string } | undefined
  #parts = 0
  /** Whether the open block is the answer. */
  #isFinal = false
  /** The amount of this reply that was sent, and the amount of the whole reply that is skipped for that reason. */
  #sent = nothing
  #passed = nothing
  #started: Array<string> = []

  /** The calls whose input was streamed. */
  get started(): ReadonlyArray<string> {
    return this.#started
  }

  /** Reads a piece of the reply. */
  push(event: Piece): ReadonlyArray<Chunk> {
    if (event.type === "stream_part") return this.#part(event.part)
    return event.type === "block_start" || event.type === "block_complete"
      ? this.#block(event.type === "block_start" && event.blockType === "final")
      : this.#text(event.type, event.text)
  }

  #block(isFinal: boolean): ReadonlyArray<Chunk> {
    this.#isFinal = isFinal
    return this.close()
  }

  #text(type: "text_chunk" | "block_content", text: string): ReadonlyArray<Chunk> {
    if (type === "block_content") return this.#isFinal ? this.#delta("text", text) : []
    // White space between blocks is not text.
    return this.#delta("text", this.#open?.kind === "text" ? text : text.trimStart())
  }

  #part(part: StreamPart): ReadonlyArray<Chunk> {
    switch (part.type) {
      case "reasoning-delta":
        return this.#delta("reasoning", part.delta)
      case "reasoning-end":
        return this.close()
      case "tool-params-start":
        return this.#begin(part.id, part.name)
      case "tool-params-delta":
        return this.#started.includes(part.id) ? [inputDelta(part.id, part.delta)] : []
      case "tool-call":
        // A call whose input was not streamed. The vendor's own calls are no parts of the message.
        return part.providerExecuted === true || this.#started.includes(part.id)
          ? []
          : [...this.#begin(part.id, part.name), inputDelta(part.id, JSON.stringify(part.params))]
      default:
        return []
    }
  }

  #begin(toolCallId: string, toolName: string): ReadonlyArray<Chunk> {
    this.#started.push(toolCallId)
    return [...this.close(), chunk("tool-input-start", { toolCallId, toolName })]
  }

  /**
   * Adds the parts of a whole reply that were not streamed, in its order, and begins the next reply. `called` returns the
   * chunks of a native call.
   */
  complete(
    content: ReadonlyArray<Content>,
    dialect: DialectName,
    called: (callId: string) => ReadonlyArray<Chunk>
  ): ReadonlyArray<Chunk> {
    const chunks = [...this.close()]
    this.#passed = this.#sent
    for (const part of content) {
      if (part.type === "thinking" && !part.redacted) chunks.push(...this.#delta("reasoning", part.content))
      else if (part.type === "text") chunks.push(...this.#whole(part.text, dialect))
      else if (part.type === "tool_use") chunks.push(...called(part.callId))
      chunks.push(...this.close())
    }
    this.reset()
    return chunks
  }

  #whole(text: string, dialect: DialectName): ReadonlyArray<Chunk> {
    if (dialect === "tools") return this.#text("text_chunk", text)
    const parser = BlockParser.make()
    return [...parser.push(text), ...parser.flush()].flatMap((part) => {
      switch (part.type) {
        case "text_chunk":
        case "block_content":
          return this.#text(part.type, part.text)
        case "block_start":
          return this.#block(part.blockType === "final")
        default:
          return this.#block(false)
      }
    })
  }

  /** Ends the open part. */
  close(): ReadonlyArray<Chunk> {
    const open = this.#open
    this.#open = undefined
    return open === undefined ? [] : [chunk(`${open.kind}-end`, { id: open.id })]
  }

  /** Discards the reply. */
  reset(): void {
    this.#open = undefined
    this.#isFinal = false
    this.#sent = nothing
    this.#passed = nothing
    this.#started = []
  }

  #delta(kind: Kind, text: string): ReadonlyArray<Chunk> {
    const passed = Math.min(this.#passed[kind], text.length)
    this.#passed = { ...this.#passed, [kind]: this.#passed[kind] - passed }
    const delta = text.slice(passed)
    if (delta === "") return []
    this.#sent = { ...this.#sent, [kind]: this.#sent[kind] + delta.length }
    if (this.#open?.kind === kind) return [chunk(`${kind}-delta`, { id: this.#open.id, delta })]
    const ended = this.close()
    const id = `${kind}-${++this.#parts}`
    this.#open = { kind, id }
    return [...ended, chunk(`${kind}-start`, { id }), chunk(`${kind}-delta`, { id, delta })]
  }
}

const nothing: { readonly [K in Kind]: number } = { text: 0, reasoning: 0 }

const inputDelta = (toolCallId: string, inputTextDelta: string): Chunk =>
  chunk("tool-input-delta", { toolCallId, inputTextDelta })
