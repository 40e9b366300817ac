/**
 * The places of a driver: how many runs it drives at once.
 */

import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"

/** The places of a driver. */
export interface Places {
  /** Returns whether all places are taken. If so, notes that somebody wanted one. */
  readonly isFull: () => boolean
  /** Forgets that somebody wanted a place. */
  readonly unwant: () => void
  /** Waits until a place that somebody wanted is free. */
  readonly freed: Effect.Effect<void>
  /** Holds a place during the work. Waits for a free one first. */
  readonly hold: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

/** Creates free places. */
export const make = (size: number): Places => {
  const permits = Semaphore.makeUnsafe(size)
  const free = Latch.makeUnsafe()
  let taken = 0
  let isWanted = false
  const enter = Effect.sync(() => void taken++)
  const leave = Effect.sync(() => {
    if (taken-- === size && isWanted) free.openUnsafe()
  })
  return {
    isFull: () => {
      isWanted ||= taken >= size
      return taken >= size
    },
    unwant: () => {
      isWanted = false
    },
    // A place that becomes free during a query is noticed after the query.
    freed: Effect.andThen(
      free.await,
      Effect.sync(() => void free.closeUnsafe())
    ),
    hold: (work) =>
      permits.withPermits(1)(
        Effect.acquireUseRelease(
          enter,
          () => work,
          () => leave
        )
      )
  }
}
