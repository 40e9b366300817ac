/**
 * How much of a reply under way a follower has received. Replies are cut differently for each follower, so text counts by
 * its length.
 */

import type { RunEvent } from "../../RunEvent.ts"

/** What was received of one reply. */
export interface Said {
  readonly text: number
  readonly thinking: number
  /** Starts and ends of blocks, and whole parts. */
  readonly marks: number
}

/** Nothing was received yet. */
export const silence: Said = { text: 0, thinking: 0, marks: 0 }

/** Adds an event of the reply. */
export const say = (said: Said, event: RunEvent): Said => {
  const piece = pieceOf(event)
  if (piece !== undefined) return { ...said, [piece.track]: said[piece.track] + piece.text.length }
  return isMark(event) ? { ...said, marks: said.marks + 1 } : said
}

/** The events of a reply without what was received of it. */
export const restOf = (reply: ReadonlyArray<RunEvent>, said: Said): ReadonlyArray<RunEvent> => {
  if (said === silence) return reply
  const left = { ...said }
  return reply.flatMap((event): ReadonlyArray<RunEvent> => {
    const piece = pieceOf(event)
    if (piece === undefined) return isMark(event) && left.marks-- > 0 ? [] : [event]
    const skipped = Math.min(left[piece.track], piece.text.length)
    left[piece.track] -= skipped
    return skipped === piece.text.length ? [] : [piece.from(skipped)]
  })
}

/** A text in an event, and the event with the rest of the text. */
interface Piece {
  readonly track: "text" | "thinking"
  readonly text: string
  readonly from: (start: number) => RunEvent
}

const pieceOf = (event: RunEvent): Piece | undefined => {
  if (event.type === "text_chunk" || event.type === "block_content") {
    return { track: "text", text: event.text, from: (start) => ({ ...event, text: event.text.slice(start) }) }
  }
  if (event.type === "stream_part" && event.part.type === "reasoning-delta") {
    const { part } = event
    const from = (start: number): RunEvent => ({ ...event, part: { ...part, delta: part.delta.slice(start) } })
    return { track: "thinking", text: part.delta, from }
  }
  return undefined
}

const isMark = (event: RunEvent): boolean =>
  event.type === "block_start" ||
  event.type === "block_complete" ||
  (event.type === "stream_part" && event.part.type === "tool-call")
