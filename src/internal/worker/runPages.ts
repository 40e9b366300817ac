/**
 * Looking through the runs of a store a page at a time.
 *
 * A look reads one page, the oldest first, and the next but one goes on from
 * there; the one in between reads the newest. So thousands that nothing can be
 * done with neither cost much nor hide one that comes on.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { RunHead, RunStoreShape, StoreError } from "../../RunStore.ts"
import { passedOver } from "../base/effects.ts"

/** Runs to look at. */
export interface Pages {
  /** Looks at the next page of the oldest; when it was not the last one, at the newest in between. */
  readonly next: Effect.Effect<void>
  /** Looks at every page, from the first. */
  readonly all: Effect.Effect<void>
}

/** How to look. */
export interface Looking {
  readonly list: RunStoreShape["list"]
  readonly consider: (head: RunHead, now: number) => Effect.Effect<void, StoreError>
  readonly isFull: () => boolean
}

/** How many runs one look reads. */
const size = 100

/** The root runs of one status that nobody holds: `consider` is given each in turn, unless `isFull`. */
export const make = (status: RunHead["status"]["type"], { consider, isFull, list }: Looking): Pages => {
  let after: RunHead | undefined
  // What comes while the pages are read is left to the next time: else steady work would keep the reader at their end.
  let until = Infinity
  let areMoreBehind = false

  const page = Effect.fnUntraced(
    function* (order: "oldest" | "newest") {
      if (isFull()) return false
      const now = yield* Clock.currentTimeMillis
      const filter = { status: [status], roots: true, unleased: true, order, limit: size } as const
      const isOldest = order === "oldest"
      const heads = yield* list(isOldest && after !== undefined ? { ...filter, after } : filter)
      for (const head of isOldest ? heads : heads.toReversed()) {
        if (isFull()) return false
        if (isOldest) after = head.createdAt > until ? undefined : head
        // One that cannot be read hides no other.
        yield* Effect.catchCause(consider(head, now), notLooked)
      }
      if (isOldest && heads.length < size) after = undefined
      return isOldest && after !== undefined
    },
    Effect.catchCause((cause) => Effect.as(notLooked(cause), false))
  )

  return {
    // What was submitted just now does not wait until all pages before it were read.
    next: Effect.gen(function* () {
      if (after === undefined) until = yield* Clock.currentTimeMillis
      areMoreBehind = yield* page(areMoreBehind ? "newest" : "oldest")
    }),
    all: Effect.gen(function* () {
      after = undefined
      until = Infinity
      while (yield* page("oldest"));
    })
  }
}

const notLooked = passedOver("a worker could not look for runs")
