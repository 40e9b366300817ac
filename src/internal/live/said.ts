/**
 * How much of a reply under way a follower has received. Replies are cut differently for each follower, so text counts by
 * its length.
 */

import type { RunEvent } from "../../RunEvent.ts"

/** What was received of one reply. Its functions change it in place: each token of each follower passes here. */
export class Said {
  #text: number
  #thinking: number
  /** Starts and ends of blocks, and whole calls. */
  #marks: number

  constructor([text = 0, thinking = 0, marks = 0]: ReadonlyArray<number> = []) {
    this.#text = text
    this.#thinking = thinking
    this.#marks = marks
  }

  /** What another one is made of. */
  get counts(): readonly [text: number, thinking: number, marks: number] {
    return [this.#text, this.#thinking, this.#marks]
  }

  /** Forgets the reply: another one follows. */
  clear(): void {
    this.#text = 0
    this.#thinking = 0
    this.#marks = 0
  }

  /** Adds an event of the reply. */
  add(event: RunEvent): void {
    switch (event.type) {
      case "text_chunk":
      case "block_content":
        this.#text += event.text.length
        break
      case "block_start":
      case "block_complete":
        this.#marks++
        break
      case "stream_part":
        if (event.part.type === "reasoning-delta") this.#thinking += event.part.delta.length
        else if (event.part.type === "tool-call") this.#marks++
    }
  }

  /** Returns the events of the whole reply without what was received of it. */
  restOf(reply: ReadonlyArray<RunEvent>): ReadonlyArray<RunEvent> {
    let [text, thinking, marks] = [this.#text, this.#thinking, this.#marks]
    return reply.flatMap((event): ReadonlyArray<RunEvent> => {
      switch (event.type) {
        case "text_chunk":
        case "block_content": {
          const skipped = Math.min(text, event.text.length)
          text -= skipped
          return skipped === event.text.length ? [] : [{ ...event, text: event.text.slice(skipped) }]
        }
        case "block_start":
        case "block_complete":
          return marks-- > 0 ? [] : [event]
        case "stream_part": {
          const { part } = event
          if (part.type === "tool-call") return marks-- > 0 ? [] : [event]
          if (part.type !== "reasoning-delta") return [event]
          const skipped = Math.min(thinking, part.delta.length)
          thinking -= skipped
          return skipped === part.delta.length
            ? []
            : [{ ...event, part: { ...part, delta: part.delta.slice(skipped) } }]
        }
        default:
          return [event]
      }
    })
  }
}
