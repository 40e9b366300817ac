/**
 * Positions in the events of a run: the ids of server-sent events, and the `Last-Event-ID` of a client that reconnects.
 *
 * A stored event has its revision as its id. A live event adds the amount of the current reply sent so far, so that a
 * client that reconnects in the middle of a reply continues at the exact character.
 */

import type { RunEvent } from "../../RunEvent.ts"
import { Received } from "../../store-kit/Follow.ts"

/** A position in the events of a run. */
export interface Position {
  /** The last revision that was sent. */
  readonly after: number
  /** The amounts sent of the reply after it. */
  readonly received: ReadonlyArray<number>
}

/** The position before the first event. */
export const start: Position = { after: 0, received: [] }

/** Parses an id. Returns undefined for an id that was never issued. */
export const parse = (id: string): Position | undefined => {
  if (!/^\d{1,15}(?:\.\d{1,15}){0,3}$/.test(id)) return undefined
  const [after = 0, ...received] = id.split(".").map(Number)
  return { after, received }
}

/** Gives events their ids, one after the other. */
export class Ids {
  #after: number
  readonly #received: Received

  constructor({ after, received }: Position) {
    this.#after = after
    this.#received = new Received(received)
  }

  /** Returns the id of the next event. */
  next(event: RunEvent): string {
    if ("revision" in event) {
      this.#after = event.revision
      this.#received.clear()
      return String(event.revision)
    }
    this.#received.add(event)
    const [text, thinking, marks] = this.#received.counts
    return `${this.#after}.${text}.${thinking}.${marks}`
  }
}
