/**
 * Announces runs with new records to the listeners of a PostgreSQL database.
 *
 * PostgreSQL commits transactions that notify one at a time, over all connections. So appends do not notify: a run is
 * noted after its commit, and a separate statement announces all runs noted since the last one. Statements keep a
 * distance, because a run that works alone appends every few milliseconds. If a notification is lost, listeners wait for
 * their next poll.
 */

import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import { inTime } from "../../kit/foreignCode.ts"
import * as Tables from "./runTables.ts"

/** Notes the key of a run that has new records. With `isUrgent`, it is announced at once. Synchronous. */
export type Announce = (id: string, isUrgent: boolean) => void

/** Marks the key of a run that was cancelled. No key begins like this. */
export const cancelledMark = "%x"

/** Announces runs while a scope is open. Runs noted before it closes are still announced, within a second. */
export const make = (sql: SqlClient): Effect.Effect<Announce, never, Scope.Scope> =>
  // A notification does not survive the server, so its commit does not wait for the disk.
  spaced((ids) =>
    sql`
      SELECT pg_notify(${Tables.channel}, id), set_config('synchronous_commit', 'off', true)
      FROM json_array_elements_text(${JSON.stringify(ids)}::json) AS id`.pipe(
      Effect.catch((error) => Effect.logDebug("runs with new records were not announced", error)),
      Effect.asVoid
    )
  )

/** Sends the keys that were noted since the last time, each once, at a distance of time or when one is urgent. */
export const spaced = Effect.fnUntraced(function* (
  send: (ids: ReadonlyArray<string>) => Effect.Effect<void>
): Effect.fn.Return<Announce, never, Scope.Scope> {
  const noted = yield* Queue.unbounded<string>()
  const urgent = Latch.makeUnsafe()
  const sent = (ids: ReadonlyArray<string>) => send([...new Set(ids)])
  const rest = Effect.flatMap(Queue.clear(noted), (ids) => (ids.length > 0 ? sent(ids) : Effect.void))
  yield* Effect.addFinalizer(() => inTime(rest, 1_000, () => Effect.void))
  const next = Effect.flatMap(Queue.takeAll(noted), (ids) => {
    urgent.closeUnsafe()
    return Effect.uninterruptible(sent(ids))
  })
  const pause = Effect.race(urgent.await, Effect.sleep(distance))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(next, pause)))
  return (id, isUrgent) => {
    Queue.offerUnsafe(noted, id)
    if (isUrgent) urgent.openUnsafe()
  }
})

/** Milliseconds between two statements, without an urgent one. */
const distance = 100
