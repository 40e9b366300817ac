/**
 * Follows a journal that can only be polled.
 *
 * Readers sleep until a change of the run is announced or the interval ends. An announcement between a query and the
 * sleep prevents the sleep, so no record is missed and none arrives twice.
 */

import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import type { RunRecord } from "../../RunState.ts"

/** The readers of each run. */
export interface Followers {
  /** Wakes the readers of a run, or all readers. */
  readonly wake: (runId?: string) => void
  readonly has: (runId: string) => boolean
  /** Ends the following for all present and future readers. */
  readonly end: Effect.Effect<void>
  /** The records, a page at a time, until the following ends. */
  readonly follow: <E>(options: Following<E>) => Stream.Stream<RunRecord, E>
}

/** What is followed, and how. */
interface Following<E> {
  readonly runId: string
  readonly from: number
  /** The next records after a revision. Empty if there are none yet. */
  readonly page: (after: number) => Effect.Effect<ReadonlyArray<RunRecord>, E>
  /** The longest sleep. */
  readonly interval: Duration.Input
}

/** Creates followers without readers. */
export const make = (): Followers => {
  const followers = new Map<string, Set<() => void>>()
  let isOver = false

  const wake: Followers["wake"] = (runId) => {
    const woken = runId === undefined ? [...followers.values()] : [followers.get(runId) ?? []]
    for (const set of woken) for (const follower of set) follower()
  }

  const join = (runId: string, follower: () => void) => {
    const set = followers.get(runId) ?? new Set()
    followers.set(runId, set.add(follower))
    return () => {
      set.delete(follower)
      if (set.size === 0) followers.delete(runId)
    }
  }

  const follow = <E>({ from, interval, page, runId }: Following<E>): Stream.Stream<RunRecord, E> =>
    Stream.unwrap(
      Effect.gen(function* () {
        const latch = Latch.makeUnsafe()
        yield* Effect.acquireRelease(
          Effect.sync(() => join(runId, () => latch.openUnsafe())),
          (leave) => Effect.sync(leave)
        )
        const sleep = Effect.race(latch.await, Effect.sleep(interval))
        let after = from
        // A read during the end may fail because of it.
        const unlessOver = (error: E): Effect.Effect<never, E | Cause.Done> =>
          isOver ? Cause.done() : Effect.fail(error)
        const look: Effect.Effect<ReadonlyArray<RunRecord>, E | Cause.Done> = Effect.suspend(() => {
          latch.closeUnsafe()
          if (isOver) return Cause.done()
          return Effect.flatMap(Effect.catch(page(after), unlessOver), (records) => {
            after = records.at(-1)?.revision ?? after
            return records.length > 0 ? Effect.succeed(records) : Effect.andThen(sleep, look)
          })
        })
        return Stream.fromIterableEffectRepeat(look)
      })
    )

  const end = Effect.sync(() => {
    isOver = true
    wake()
  })

  return { wake, has: (runId) => followers.has(runId), end, follow }
}
