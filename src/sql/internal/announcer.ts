/**
 * Announces runs with new records to the listeners of a PostgreSQL database.
 *
 * PostgreSQL commits transactions that notify one at a time, over all connections. So appends do not notify: a run is
 * noted after its commit, and a separate statement announces all runs noted since the last one. If a notification is
 * lost, listeners wait for their next poll.
 */

import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import { inTime } from "../../kit/foreignCode.ts"
import * as Tables from "./runTables.ts"

/** Notes the key of a run that has new records. Synchronous. */
export type Announce = (id: string) => void

/** Announces runs while a scope is open. Runs noted before it closes are still announced, within a second. */
export const make = Effect.fnUntraced(function* (sql: SqlClient): Effect.fn.Return<Announce, never, Scope.Scope> {
  const noted = yield* Queue.unbounded<string>()
  // A notification does not survive the server, so its commit does not wait for the disk.
  const send = (ids: ReadonlyArray<string>) =>
    sql`
      SELECT pg_notify(${Tables.channel}, id), set_config('synchronous_commit', 'off', true)
      FROM json_array_elements_text(${JSON.stringify([...new Set(ids)])}::json) AS id`.pipe(
      Effect.catch((error) => Effect.logDebug("runs with new records were not announced", error))
    )
  const rest = Effect.flatMap(Queue.clear(noted), (ids) => (ids.length > 0 ? Effect.asVoid(send(ids)) : Effect.void))
  yield* Effect.addFinalizer(() => inTime(rest, 1_000, () => Effect.void))
  const next = Effect.flatMap(Queue.takeAll(noted), (ids) => Effect.uninterruptible(send(ids)))
  yield* Effect.forkScoped(Effect.forever(next))
  return (id) => {
    Queue.offerUnsafe(noted, id)
  }
})
