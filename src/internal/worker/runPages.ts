/**
 * Selects the runs that a worker considers: all runs page by page, and runs that are due at a known time.
 *
 * Queries alternate between the next page of the oldest runs and the page of the newest. Thousands of runs that cannot
 * be claimed therefore neither cost much nor hide a new run. A single timer waits for the nearest due time.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Semaphore from "effect/Semaphore"
import type { RunHead, RunStatus, RunStoreShape, StoreError } from "../../RunStore.ts"
import { logIgnored } from "../../kit/foreignCode.ts"

/** Reads the runs of a store page by page. */
export interface Pages {
  /** Reads the next page of the oldest runs. Between two of these pages, reads the page of the newest runs. */
  readonly next: Effect.Effect<void>
  /** Reads all pages, beginning with the first. */
  readonly all: Effect.Effect<void>
}

/** The operations of reading pages. */
export interface Looking {
  readonly list: RunStoreShape["list"]
  readonly consider: (head: RunHead, now: number) => Effect.Effect<void, StoreError>
  readonly isFull: () => boolean
  /** Held while a run is considered, so that two queries never consider the same run or claim the same slot. */
  readonly one?: Semaphore.Semaphore | undefined
  /** Runs per page. Default: 100. */
  readonly size?: number | undefined
}

/** Creates the pages of unclaimed root runs with these statuses. `consider` gets each run in turn, unless `isFull`. */
export const make = (status: ReadonlyArray<RunStatus["type"]>, looking: Looking): Pages => {
  const { consider, isFull, list, one = Semaphore.makeUnsafe(1), size = 100 } = looking
  let after: RunHead | undefined
  // Runs that arrive while the pages are read are left for the next pass. Otherwise a steady stream of runs would keep
  // the reader at the end.
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
          // An unreadable run must not hide the runs after it.
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
    // Alternates, so that a new run need not wait until all earlier pages are read.
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

/** Runs by id, each with the time at which it is due. */
export interface DueRuns {
  readonly times: Map<string, Time>
  /** Opened when a run is added. */
  readonly added: Latch.Latch
}

/** A due time in milliseconds since the epoch, for a run at this revision. */
export interface Time {
  readonly revision: number
  readonly until: number
}

/** Creates an empty list of due runs. */
export const dueRuns = (): DueRuns => ({ times: new Map(), added: Latch.makeUnsafe() })

/** Sets the due time of a run. If there are too many runs, those with the latest times are dropped. */
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

/** Waits until a run is due, and removes it from the list. */
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

const notLooked = logIgnored("a worker could not poll for runs")

const most = 10_000

/** Returns the run that is due first. An infinite time is never due. */
const nearestOf = (times: DueRuns["times"]): { readonly runId: string; readonly until: number } | undefined => {
  let nearest: { readonly runId: string; readonly until: number } | undefined
  for (const [runId, { until }] of times) {
    if (until < (nearest?.until ?? Infinity)) nearest = { runId, until }
  }
  return nearest
}
