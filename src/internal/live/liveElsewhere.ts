/**
 * Live events of runs that another process runs.
 *
 * They arrive beside the journal, which alone is complete: an event is emitted once the revision it follows is, and
 * dropped when the next one was. A source that is connected again repeats the reply under way from its beginning.
 */

import type * as Stream from "effect/Stream"
import type { RunEvent } from "../../RunEvent.ts"
import type * as RunStore from "../../RunStore.ts"
import type { Said } from "./said.ts"

/** A live event of another process. */
export interface LiveEvent {
  /** The last revision that was published before it. */
  readonly after: number
  /** Whether it is the first one of its source. */
  readonly isFirst: boolean
  readonly event: RunEvent
}

/** Emits the live events of a run of a tree from a revision on. Ends when the run is at rest, and never fails. */
export type Source = (rootRunId: string, runId: string, after: number) => Stream.Stream<LiveEvent>

/** Lets followers of a store receive live events of other processes. */
export const connectLive = (store: RunStore.RunStoreShape, source: Source): void => {
  sources.set(store, source)
}

/** Where the live events of other processes come from, if the store has such a source. */
export const liveElsewhere = (store: RunStore.RunStoreShape): Source | undefined => sources.get(store)

const sources = new WeakMap<RunStore.RunStoreShape, Source>()

/** The live events of another process on their way to one follower. */
export class Elsewhere {
  readonly #said: Said
  #early: Array<LiveEvent> = []
  /** The reply of a new source, until it is longer than what was emitted of it. */
  #again: Array<RunEvent> | undefined

  constructor(said: Said) {
    this.#said = said
  }

  /** Returns what a follower at a revision emits of an event. */
  take(live: LiveEvent, last: number): ReadonlyArray<RunEvent> {
    const { after, event, isFirst } = live
    if (after > last && this.#early.length < mostEarly) this.#early.push(live)
    if (after !== last) return []
    if (isFirst) this.#again = []
    this.#again?.push(event)
    const rest = this.#again === undefined ? [event] : this.#said.restOf(this.#again)
    if (rest.length > 0) this.#again = undefined
    for (const one of rest) this.#said.add(one)
    return rest
  }

  /** Returns the events that arrived before the revision they follow. */
  due(last: number): ReadonlyArray<RunEvent> {
    if (this.#early.length === 0) return []
    const early = this.#early
    this.#early = []
    return early.flatMap((live) => this.take(live, last))
  }
}

/** A follower whose journal is late by more events than this reads their text when it is stored. */
const mostEarly = 10_000
