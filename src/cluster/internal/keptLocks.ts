/**
 * Keeps the shards of a runner whose renewal of their locks is late.
 *
 * Until a lock expires, no other runner may take its row. Yet Effect's sharding gives all shards up, and interrupts their
 * runs, when one renewal takes longer than the interval between two. So a renewal that is late, or fails, answers with the
 * locks that this process has proven and that last beyond the next renewal. The next one must succeed: without a proof
 * there is no second answer.
 */

import type { RunnerStorage } from "effect/cluster/RunnerStorage"
import type { ShardId } from "effect/cluster/ShardId"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { monotonic } from "../../kit/time.ts"

/** Milliseconds that a lock lasts, and that pass between two renewals. */
export interface LockTimes {
  readonly expiration: number
  readonly interval: number
}

/** Wraps the storage of locks. A renewal that is late goes on in the background, and is interrupted with the scope. */
export const make = Effect.fnUntraced(function* (
  storage: RunnerStorage["Service"],
  { expiration, interval }: LockTimes
): Effect.fn.Return<Pick<RunnerStorage["Service"], "acquire" | "refresh">, never, Scope.Scope> {
  const scope = yield* Effect.scope
  /** When the locks were last asked for that the database then granted, by the monotonic clock. */
  const proven = new Map<string, number>()
  const now = Clock.clockWith((clock) => Effect.sync(() => monotonic(clock)))
  const proving = <E>(asked: Effect.Effect<Array<ShardId>, E>) =>
    Effect.flatMap(now, (at) =>
      Effect.tap(asked, (granted) =>
        Effect.sync(() => {
          for (const shard of granted) proven.set(shard.toString(), at)
        })
      )
    )
  const patience = 0.8 * interval
  return {
    acquire: (address, shards) => proving(storage.acquire(address, shards)),
    refresh: (address, given) =>
      Effect.flatMap(now, (at) => {
        const shards = [...given]
        const renewed = proving(storage.refresh(address, shards))
        // The next renewal begins after an interval, and has failed after another one.
        const until = at + 2.1 * interval
        const lasts = (shard: ShardId) => (proven.get(shard.toString()) ?? -Infinity) + expiration >= until
        if (shards.length === 0 || !shards.every(lasts)) return renewed
        const isEarly = Effect.map(now, (later) => later < at + patience)
        // Not interrupted: a late answer proves the locks, too.
        const renewal = Effect.retry(renewed, { schedule: Schedule.spaced("100 millis"), while: () => isEarly })
        return Effect.forkIn(renewal, scope, { startImmediately: true }).pipe(
          Effect.flatMap(Fiber.join),
          Effect.timeoutOrElse({ duration: patience, orElse: () => Effect.succeed(shards) }),
          Effect.orElseSucceed(() => shards)
        )
      })
  }
})
