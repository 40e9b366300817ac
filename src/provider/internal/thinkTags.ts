/**
 * Reads thinking that a model writes into its text: `<think>…</think>` at the beginning of a reply.
 *
 * Servers without a reader for the thinking of a model pass it on like this. Tags inside of the text are text.
 */

import type { Reply } from "./replyParts.ts"

/** Divides the text of a reply, however it arrives, into thinking and text. */
export class ThinkTags {
  readonly #reply: Reply
  #place: "start" | "thinking" | "behind" | "text" = "start"
  /** Pieces of text that may be the beginning of a tag. */
  #held: Array<string> = []

  constructor(reply: Reply) {
    this.#reply = reply
  }

  text(delta: string): void {
    if (this.#place === "text") return this.#reply.text(delta)
    this.#held.push(delta)
    const text = this.#held.join("")
    if (this.#place === "start") this.#start(text)
    else if (this.#place === "thinking") this.#think(text)
    else this.#behind(text)
  }

  /** Reports what is held: no tag can follow before a call or the end of the reply. */
  end(): void {
    const held = this.#held
    this.#held = []
    for (const piece of held) {
      if (this.#place === "thinking") this.#reply.thinking(piece)
      else this.#reply.text(piece)
    }
  }

  #start(text: string): void {
    const spoken = text.trimStart()
    if (spoken.startsWith(opening)) {
      this.#place = "thinking"
      this.#think(spoken.slice(opening.length))
    } else if (!opening.startsWith(spoken) || text.length > mostHeld) {
      this.#place = "text"
      this.end()
    }
  }

  #think(text: string): void {
    const end = text.indexOf(closing)
    if (end === -1) {
      const known = text.length - heldLength(text)
      this.#held = known === text.length ? [] : [text.slice(known)]
      return this.#reply.thinking(text.slice(0, known))
    }
    this.#reply.thinking(text.slice(0, end))
    this.#place = "behind"
    this.#behind(text.slice(end + closing.length))
  }

  // The blank lines behind the thinking belong to neither.
  #behind(text: string): void {
    this.#held = []
    const spoken = text.trimStart()
    if (spoken === "") return
    this.#place = "text"
    this.#reply.text(spoken)
  }
}

/** The most characters before a tag, so that a reply of blanks is not held. */
const mostHeld = 200

const opening = "<think>"
const closing = "</think>"

/** Returns how many characters at the end of a text may begin the closing tag. */
const heldLength = (text: string): number => {
  for (let length = Math.min(closing.length - 1, text.length); length > 0; length--)
    if (closing.startsWith(text.slice(text.length - length))) return length
  return 0
}
