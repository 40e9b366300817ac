/**
 * Tracks the reply that a follower receives: how much of it was emitted, and the live events that another process sends
 * of it.
 */

import type { RunEvent } from "../../RunEvent.ts"

/**
 * A live event of another process.
 *
 * @category models
 * @since 0.1.0
 */
export interface LiveEvent {
  /** The last revision published before the event. */
  readonly after: number
  /** Whether it is the first event of its source. */
  readonly isFirst: boolean
  readonly event: RunEvent
}

/**
 * Tracks how much of the current reply a follower has received. Text is split differently for each follower, so it is
 * counted by length.
 *
 * Mutable for speed: each token of each follower passes here.
 *
 * @category models
 * @since 0.1.0
 */
export class Received {
  #text: number
  #thinking: number
  /** Starts and ends of blocks, and whole calls. */
  #marks: number

  constructor([text = 0, thinking = 0, marks = 0]: ReadonlyArray<number> = []) {
    this.#text = text
    this.#thinking = thinking
    this.#marks = marks
  }

  /** The counts, from which a copy can be constructed. */
  get counts(): readonly [text: number, thinking: number, marks: number] {
    return [this.#text, this.#thinking, this.#marks]
  }

  /** Resets the counts for the next reply. */
  clear(): void {
    this.#text = 0
    this.#thinking = 0
    this.#marks = 0
  }

  /** Counts an event of the reply. */
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

  /** Returns the part of a reply that has not been received. */
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

/** Number of early live events to keep. Beyond that a follower gets their text from the journal. */
const mostEarly = 10_000

/** Orders the live events of another process for one follower. */
export class Elsewhere {
  readonly #received: Received
  #early: Array<LiveEvent> = []
  /** The repeated reply of a new source, until it is longer than the emitted part. */
  #again: Array<RunEvent> | undefined

  constructor(received: Received) {
    this.#received = received
  }

  /** Returns the events that a follower at a revision emits for a live event. */
  take(live: LiveEvent, last: number): ReadonlyArray<RunEvent> {
    const { after, event, isFirst } = live
    if (after > last && this.#early.length < mostEarly) this.#early.push(live)
    if (after !== last) return []
    if (isFirst) this.#again = []
    this.#again?.push(event)
    const rest = this.#again === undefined ? [event] : this.#received.restOf(this.#again)
    if (rest.length > 0) this.#again = undefined
    for (const one of rest) this.#received.add(one)
    return rest
  }

  /** Returns the early events that can be emitted at a revision. */
  due(last: number): ReadonlyArray<RunEvent> {
    if (this.#early.length === 0) return []
    const early = this.#early
    this.#early = []
    return early.flatMap((live) => this.take(live, last))
  }
}
