/** The text and the thinking of a reply, while it is streamed and when it is whole. */

import * as BlockParser from "../../BlockParser.ts"
import type { Content } from "../../Content.ts"
import type { DialectName } from "../../Dialect.ts"
import type { RunEvent } from "../../RunEvent.ts"

/** A piece that is shown. */
export interface Piece {
  readonly kind: "text" | "thinking"
  readonly text: string
}

type Streamed = Extract<
  RunEvent,
  { readonly type: "text_chunk" | "block_start" | "block_content" | "block_complete" | "stream_part" }
>

/**
 * A reply in progress. Text outside blocks and the answer are shown; other blocks are calls or notes. Its methods change
 * it in place.
 */
export class ReplyText {
  #isFinal = false
  #shown = { text: "", thinking: "" }

  /** Reads a piece of a reply. */
  push(event: Streamed): ReadonlyArray<Piece> {
    switch (event.type) {
      case "text_chunk":
        return this.#show("text", event.text)
      case "block_content":
        return this.#isFinal ? this.#show("text", event.text) : []
      case "stream_part":
        return event.part.type === "reasoning-delta" ? this.#show("thinking", event.part.delta) : []
      default:
        this.#isFinal = event.type === "block_start" && event.blockType === "final"
        return []
    }
  }

  /** Returns what was not shown of a whole reply, and begins the next one. A slow reader may have lost pieces. */
  complete(contents: ReadonlyArray<Content>, dialect: DialectName): ReadonlyArray<Piece> {
    const before = this.#shown
    this.reset()
    for (const content of contents) {
      if (content.type === "thinking" && !content.redacted) this.#show("thinking", content.content)
      else if (content.type === "text") this.#whole(content.text, dialect)
    }
    const whole = this.#shown
    this.reset()
    return (["thinking", "text"] as const).flatMap((kind) => {
      const rest = whole[kind].startsWith(before[kind]) ? whole[kind].slice(before[kind].length) : ""
      return rest === "" ? [] : [{ kind, text: rest }]
    })
  }

  /** Discards the reply. */
  reset(): void {
    this.#isFinal = false
    this.#shown = { text: "", thinking: "" }
  }

  #whole(text: string, dialect: DialectName): void {
    if (dialect === "tools") return void this.#show("text", text)
    const parser = BlockParser.make()
    for (const part of [...parser.push(text), ...parser.flush()]) {
      if (part.type === "text_chunk") this.#show("text", part.text)
      else if (part.type === "block_content" && this.#isFinal) this.#show("text", part.text)
      else if (part.type !== "block_content") this.#isFinal = part.type === "block_start" && part.blockType === "final"
    }
  }

  #show(kind: Piece["kind"], text: string): ReadonlyArray<Piece> {
    // White space before the first word and between blocks is not text.
    const piece = this.#shown[kind] === "" ? text.trimStart() : text
    if (piece === "") return []
    this.#shown[kind] += piece
    return [{ kind, text: piece }]
  }
}
