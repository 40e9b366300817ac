/**
 * Following a journal that is read by asking for it.
 *
 * Readers sleep until somebody says that a run went on, or until it is time to
 * look again. Whoever is woken between a look and the sleep does not sleep, so
 * nothing is missed and nothing comes twice.
 */

import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import type { RunRecord } from "../../RunState.ts"

/** Who waits for which run. */
export interface Followers {
  /** Wakes those who follow a run; all of them without one. */
  readonly wake: (runId?: string) => void
  readonly has: (runId: string) => boolean
  /** Ends it for all, and for whoever comes later. */
  readonly end: Effect.Effect<void>
  /** The records a page at a time, until the end of all. */
  readonly follow: <E>(options: Following<E>) => Stream.Stream<RunRecord, E>
}

/** What is followed, and how. */
interface Following<E> {
  readonly runId: string
  readonly from: number
  /** The next records after a revision; none when there are no more yet. */
  readonly page: (after: number) => Effect.Effect<ReadonlyArray<RunRecord>, E>
  /** How long to sleep at most. */
  readonly interval: Duration.Input
}

/** Nobody waits yet. */
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
        // What is read while the end comes may fail of it.
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
