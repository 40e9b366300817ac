/**
 * Following a journal that is read by asking for it.
 *
 * Readers sleep until somebody says that a run went on, or until it is time to
 * look again. Whoever is woken between a look and the sleep does not sleep, so
 * nothing is missed and nothing comes twice.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import type { RunRecord } from "../RunState.ts"

/** Who waits for which run. */
export interface Followers {
  /** Wakes those who follow a run; all of them without one. */
  readonly wake: (runId?: string) => void
  readonly has: (runId: string) => boolean
  /** The records a page at a time, for ever. */
  readonly follow: <E>(options: {
    readonly runId: string
    readonly from: number
    /** The next records after a revision; none when there are no more yet. */
    readonly page: (after: number) => Effect.Effect<ReadonlyArray<RunRecord>, E>
    /** How long to sleep at most. */
    readonly interval: Duration.Input
  }) => Stream.Stream<RunRecord, E>
}

/** Nobody waits yet. */
export const make = (): Followers => {
  const followers = new Map<string, Set<() => void>>()

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

  const follow: Followers["follow"] = ({ from, interval, page, runId }) =>
    Stream.unwrap(
      Effect.gen(function* () {
        const latch = Latch.makeUnsafe()
        yield* Effect.acquireRelease(
          Effect.sync(() => join(runId, () => latch.openUnsafe())),
          (leave) => Effect.sync(leave)
        )
        const sleep = Effect.race(latch.await, Effect.sleep(interval))
        let after = from
        const look: ReturnType<typeof page> = Effect.suspend(() => {
          latch.closeUnsafe()
          return Effect.flatMap(page(after), (records) => {
            after = records.at(-1)?.revision ?? after
            return records.length > 0 ? Effect.succeed(records) : Effect.andThen(sleep, look)
          })
        })
        return Stream.fromIterableEffectRepeat(look)
      })
    )

  return { wake, has: (runId) => followers.has(runId), follow }
}
