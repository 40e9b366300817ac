/**
 * Announces runs with new records to the other processes of a PostgreSQL database.
 *
 * A notification inside the transaction of an append would make all commits of the database wait for each other. So keys
 * are announced after their commits, all that wait in one statement. An announcement that is lost delays followers until
 * their next look, and nothing else.
 */

import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import { inTime } from "../../internal/base/effects.ts"
import * as Tables from "./runTables.ts"

/** Announces the key of a run, soon. */
export type Announce = (id: string) => void

/** Announces with a client until the end of a scope, where keys that still wait are announced. */
export const make = Effect.fnUntraced(function* (sql: SqlClient): Effect.fn.Return<Announce, never, Scope.Scope> {
  const waiting = new Set<string>()
  const latch = Latch.makeUnsafe()
  const send = Effect.suspend(() => {
    latch.closeUnsafe()
    const ids = [...waiting]
    waiting.clear()
    if (ids.length === 0) return Effect.void
    return sql.unsafe(Tables.announcePostgres, [JSON.stringify(ids)]).pipe(
      Effect.onInterrupt(() => Effect.sync(() => ids.forEach((id) => waiting.add(id)))),
      Effect.catch((error) => Effect.logDebug("runs were not announced", error))
    )
  })
  yield* Effect.addFinalizer(() => inTime(send, "1 second", () => Effect.void))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(latch.await, send)))
  return (id) => {
    waiting.add(id)
    latch.openUnsafe()
  }
})
