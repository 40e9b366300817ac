/**
 * Which runs of a store a worker looks at: all of them a page at a time, and those that it looks at again at a time.
 *
 * A query reads one page, the oldest first, and the query after the next continues from there; the one in between reads
 * the newest. So thousands of runs that cannot be claimed neither cost much nor hide a new one. One timer waits for the
 * nearest time, however many runs have one.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import type { RunHead, RunStatus, RunStoreShape, StoreError } from "../../RunStore.ts"
import { passedOver } from "../base/foreignCode.ts"

/** Runs to look at. */
export interface Pages {
  /** Reads the next page of the oldest runs and, unless it was the last, the newest in between. */
  readonly next: Effect.Effect<void>
  /** Reads every page from the first on. */
  readonly all: Effect.Effect<void>
}

/** How to go through them. */
export interface Looking {
  readonly list: RunStoreShape["list"]
  readonly consider: (head: RunHead, now: number) => Effect.Effect<void, StoreError>
  readonly isFull: () => boolean
  /** Held while a run is considered, so that no two look at one run, or take one place. */
  readonly one?: Semaphore.Semaphore | undefined
  /** The number of runs that one query reads. Default: 100. */
  readonly size?: number | undefined
}

/** The unclaimed root runs with these statuses: `consider` gets each in turn, unless `isFull`. */
export const make = (status: ReadonlyArray<RunStatus["type"]>, looking: Looking): Pages => {
  const { consider, isFull, list, one = Semaphore.makeUnsafe(1), size = 100 } = looking
  let after: RunHead | undefined
  // Runs that arrive while the pages are read are left for the next time. Otherwise steady work would keep the reader
  // at the end.
  let until = Infinity
  let areMoreBehind = false

  const page = Effect.fnUntraced(
    function* (order: "oldest" | "newest") {
      if (isFull()) return false
      const now = yield* Clock.currentTimeMillis
      const filter = { status, roots: true, unleased: true, order, limit: size } as const
      const isOldest = order === "oldest"
      const heads = yield* list(isOldest && after !== undefined ? { ...filter, after } : filter)
      for (const head of isOldest ? heads : heads.toReversed()) {
        const isLooked = Effect.suspend(() => {
          if (isFull()) return Effect.succeed(false)
          if (isOldest) after = head.createdAt > until ? undefined : head
          // An unreadable run hides no other.
          return Effect.as(Effect.catchCause(consider(head, now), notLooked), true)
        })
        if (!(yield* one.withPermits(1)(isLooked))) return false
      }
      if (isOldest && heads.length < size) after = undefined
      return isOldest && after !== undefined
    },
    Effect.catchCause((cause) => Effect.as(notLooked(cause), false))
  )

  return {
    // A run that was just submitted does not wait until all pages before it are read.
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

/** Runs by their ids, each with the time at which it is looked at again. */
export interface DueRuns {
  readonly times: Map<string, Time>
  /** Opened when a run is added. */
  readonly added: Latch.Latch
}

/** A time in milliseconds since the epoch, for a run at this revision. */
export interface Time {
  readonly revision: number
  readonly until: number
}

/** Creates an empty list of runs to look at again. */
export const dueRuns = (): DueRuns => ({ times: new Map(), added: Latch.makeUnsafe() })

/** Notes the time of a run. Among very many runs, those whose time is furthest are forgotten. */
export const setDue = (
  { added, times }: DueRuns,
  { revision, runId }: Pick<RunHead, "revision" | "runId">,
  until: number
): void => {
  times.set(runId, { revision, until })
  added.openUnsafe()
  if (times.size < 2 * most) return
  const furthest = [...times].sort(([, a], [, b]) => b.until - a.until).slice(0, times.size - most)
  for (const [forgotten] of furthest) times.delete(forgotten)
}

/** Waits until the time of a run has come, and forgets the run. */
export const nextDue = Effect.fnUntraced(function* ({ added, times }: DueRuns): Effect.fn.Return<string> {
  for (;;) {
    added.closeUnsafe()
    const nearest = nearestOf(times)
    if (nearest === undefined) {
      yield* added.await
      continue
    }
    const wait = Math.max(0, nearest.until - (yield* Clock.currentTimeMillis))
    const isDue = yield* Effect.raceFirst(Effect.as(Effect.sleep(wait), true), Effect.as(added.await, false))
    if (!isDue) continue
    times.delete(nearest.runId)
    return nearest.runId
  }
})

const notLooked = passedOver("a worker could not look for runs")

const most = 10_000

/** The run whose time comes first. Some have no end to wait for. */
const nearestOf = (times: DueRuns["times"]): { readonly runId: string; readonly until: number } | undefined => {
  let nearest: { readonly runId: string; readonly until: number } | undefined
  for (const [runId, { until }] of times) {
    if (until < (nearest?.until ?? Infinity)) nearest = { runId, until }
  }
  return nearest
}
