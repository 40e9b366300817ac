/**
 * A client of PostgreSQL. The package `@effect/sql-pg` is loaded when it is made, so nobody else needs it.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import type * as Queue from "effect/Queue"
import type * as Reactivity from "effect/reactivity/Reactivity"
import type * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { StoreError } from "../../KernelError.ts"

/** How to reach the database. */
export interface Options {
  /** As in `postgres://user:password@host:5432/database`. */
  readonly url: Redacted.Redacted
  /** Connections in all: 2 unless told, at least 1. */
  readonly maxConnections?: number | undefined
}

/** A client that also listens. The package has a type for it, which whoever has no such package could not look up. */
export interface Client extends SqlClient {
  readonly listen: (
    channel: string
  ) => Effect.Effect<Queue.Dequeue<{ readonly payload: string }, SqlError>, SqlError, Scope.Scope>
}

/** Connects with as many connections as were asked for, or the usual number. */
export const make = /*#__PURE__*/ Effect.fnUntraced(
  function* (
    options: Options,
    connections: { readonly least: number; readonly usual: number }
  ): Effect.fn.Return<Client, StoreError | SqlError, Reactivity.Reactivity | Scope.Scope> {
    const PgClient = yield* Effect.tryPromise({
      try: () => import("@effect/sql-pg/PgClient"),
      catch: () => unavailable("the package @effect/sql-pg is not installed")
    })
    return yield* PgClient.make({
      url: options.url,
      maxConnections: Math.max(connections.least, options.maxConnections ?? connections.usual),
      applicationName: "kernai",
      maxMessageSize: LONGEST
    })
  },
  Effect.catchTag("SqlError", (error) => Effect.fail(unavailable(error.message)))
)

/** The database cannot be used. */
export const unavailable = (detail: string): StoreError =>
  new StoreError({ operation: "open", reason: "unavailable", detail })

/** Bytes of one row: of a record with the longest reply, several times over. */
const LONGEST = 256 * 1024 * 1024
