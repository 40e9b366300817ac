/**
 * Polls a store for runs that need somebody: runs without a live lease, and runs whose questions are late.
 *
 * Queries for unclaimed runs alternate between the next page of the oldest runs and the page of the newest. So thousands
 * of runs that nobody can continue cost little, and a new run is found behind them.
 *
 * @since 0.1.0
 */

import * as Arr from "effect/Array"
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { RunHead, RunStoreShape, StatusWord, StoreError } from "../RunStore.ts"
import { answerBy } from "../internal/store/runStatus.ts"
import { logIgnored } from "../kit/foreignCode.ts"

/**
 * Reads the runs of a store page by page.
 *
 * @category models
 * @since 0.1.0
 */
export interface Pages {
  /**
   * Reads the next page of the oldest runs. Between two of these pages, reads the page of the newest runs. Returns whether
   * it read the last page, and no page or run before it failed.
   */
  readonly next: Effect.Effect<boolean>
  /** Reads all pages, beginning with the first. Returns whether no page or run failed. */
  readonly all: Effect.Effect<boolean>
  /** Begins again with the first page. Synchronous. */
  readonly restart: () => void
}

/**
 * How pages are read.
 *
 * @category models
 * @since 0.1.0
 */
export interface Polling {
  readonly list: RunStoreShape["list"]
  readonly consider: (head: RunHead, now: number) => Effect.Effect<void, StoreError>
  readonly isFull: () => boolean
  /** Held while a run is considered, so that two queries never consider the same run or claim the same place. */
  readonly one?: Semaphore.Semaphore | undefined
  /** Runs per page. Default: 100. */
  readonly size?: number | undefined
}

/** How far a reader of pages has come. */
interface Place {
  readonly after: RunHead | undefined
  /**
   * Runs that arrive while the pages are read are left for the next pass. Otherwise a steady stream of runs would keep
   * the reader at the end.
   */
  readonly until: number
  readonly areMoreBehind: boolean
  readonly hasFailed: boolean
}

const beginning: Place = { after: undefined, until: Infinity, areMoreBehind: false, hasFailed: false }

/**
 * Creates the pages of unclaimed root runs with these statuses. `consider` gets each run in turn, unless `isFull`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (status: ReadonlyArray<StatusWord>, polling: Polling): Pages => {
  const { consider, isFull, list, one = Semaphore.makeUnsafe(1), size = 100 } = polling
  let { after, areMoreBehind, hasFailed, until } = beginning

  const notRead = (cause: Cause.Cause<unknown>) =>
    Effect.suspend(() => {
      hasFailed = true
      return notPolled(cause)
    })

  const page = Effect.fnUntraced(
    function* (order: "oldest" | "newest") {
      if (isFull()) return false
      const now = yield* Clock.currentTimeMillis
      const filter = { status, roots: true, unleased: true, order, limit: size } as const
      const isOldest = order === "oldest"
      const heads = yield* list(isOldest && after !== undefined ? { ...filter, after } : filter)
      for (const head of isOldest ? heads : heads.toReversed()) {
        const isConsidered = Effect.suspend(() => {
          if (isFull()) return Effect.succeed(false)
          if (isOldest) after = head.createdAt > until ? undefined : head
          // An unreadable run must not hide the runs after it.
          return Effect.as(Effect.catchCause(consider(head, now), notRead), true)
        })
        if (!(yield* one.withPermits(1)(isConsidered))) return false
      }
      if (isOldest && heads.length < size) after = undefined
      return isOldest && after !== undefined
    },
    Effect.catchCause((cause) => Effect.as(notRead(cause), false))
  )

  const restart = () => {
    ;({ after, areMoreBehind, hasFailed, until } = beginning)
  }

  return {
    // Alternates, so that a new run need not wait until all earlier pages are read.
    next: Effect.gen(function* () {
      if (after === undefined) {
        until = yield* Clock.currentTimeMillis
        hasFailed = false
      }
      areMoreBehind = yield* page(areMoreBehind ? "newest" : "oldest")
      return after === undefined && !hasFailed
    }),
    all: Effect.gen(function* () {
      restart()
      while (yield* page("oldest"));
      return !hasFailed
    }),
    restart
  }
}

/**
 * Considers the waiting root runs whose questions are late, the earliest deadline first. Stops at the first one that has
 * time left, so that it is one query however many runs wait. Returns the deadline of that run, and whether no page or run
 * failed.
 *
 * @category running
 * @since 0.1.0
 */
export const late = Effect.fnUntraced(function* (
  { consider, list, size = 100 }: Pick<Polling, "consider" | "list" | "size">,
  /** Milliseconds for which a question may be late before its run is considered. */
  grace: number = 0
): Effect.fn.Return<{ readonly next: number; readonly isWhole: boolean }> {
  let next = Infinity
  let isWhole = true
  const notRead = (cause: Cause.Cause<unknown>) =>
    Effect.suspend(() => {
      isWhole = false
      return Effect.as(notPolled(cause), undefined)
    })
  for (let after: RunHead | undefined, isLast = false; !isLast;) {
    const now = yield* Clock.currentTimeMillis
    const filter = { status: ["waiting"], roots: true, order: "due", limit: size, after } as const
    const heads = yield* Effect.catchCause(list(filter), notRead)
    const [due, [early]] = Arr.span(heads ?? [], (head) => (answerBy(head) ?? 0) <= now - grace)
    for (const head of due) yield* Effect.catchCause(consider(head, now), notRead)
    if (early !== undefined) next = answerBy(early) ?? Infinity
    isLast = due.length < size
    after = due.at(-1)
  }
  return { next, isWhole }
})

const notPolled = logIgnored("a worker could not poll for runs")
