/**
 * Keeps runs in PostgreSQL.
 *
 * Uses the store of `SqlRunStore` on a client of its own, with one connection that listens: followers are notified of
 * records appended by any process, of the first ones and of the end at once, in between every 100 milliseconds. Workers
 * rest until then, and check once a minute. Behind a
 * pooler that shares connections between transactions, notifications do not come back: the store finds that out when it
 * is opened, logs a warning and polls. The package `@effect/sql-pg` is loaded when the layer is built, so other
 * applications do not need it.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import * as SqlClient from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { closedInTime } from "../kit/closedInTime.ts"
import { RunStore, type StoreError } from "../RunStore.ts"
import { failed } from "./internal/sqlFault.ts"
import * as Postgres from "./internal/postgres.ts"
import * as Tables from "./internal/runTables.ts"
import * as SqlRunStore from "./SqlRunStore.ts"

/**
 * Options of the connection and of the store.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * The URL of the database, as in `postgres://user:password@host:5432/database?sslmode=verify-full`. A missing password
   * is read from the config `PGPASSWORD`. TLS is set as for `libpq`, by the parameters `sslmode`, `sslrootcert`,
   * `sslcert` and `sslkey` or the config `PGSSLMODE`, `PGSSLROOTCERT`, `PGSSLCERT` and `PGSSLKEY`.
   */
  readonly url: Redacted.Redacted
  /** Maximum number of connections, at least 2, of which one listens. Default: 10. */
  readonly maxConnections?: number | undefined
  /**
   * Interval for finding records that were not announced. Default: 5 seconds, and half a second behind a pooler that
   * loses announcements.
   */
  readonly pollInterval?: SqlRunStore.Options["pollInterval"] | undefined
}

/**
 * Adds the password in `PGPASSWORD` to a URL that has none, so that no command line needs one. The layers of this
 * package do so themselves; use it for a client of your own.
 *
 * @category converting
 * @since 0.1.0
 */
export const withPassword: (url: Redacted.Redacted) => Effect.Effect<Redacted.Redacted> = Postgres.withPassword

/**
 * Keeps runs in PostgreSQL.
 *
 * For a client of your own, use `SqlRunStore.layer` and pass the stream of `client.listen("kernai_runs")` as `changes`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<RunStore, StoreError> =>
  closedInTime(
    Layer.effect(RunStore, make(options)).pipe(Layer.provide(Reactivity.layer)),
    "a store in PostgreSQL",
    "2 seconds"
  )

/**
 * A client of a PostgreSQL database for `ClusterNode`, and for statements of your own. Each statement has a time limit,
 * after which its connection is closed, and the client closes in time: a database that is cut off silently holds no
 * process.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerSqlClient = (
  options: Pick<Options, "url" | "maxConnections">
): Layer.Layer<SqlClient.SqlClient, StoreError> =>
  closedInTime(
    Layer.effect(SqlClient.SqlClient, Postgres.make(options, { listening: 0, usual: 10 })).pipe(
      Layer.provide(Reactivity.layer)
    ),
    "a client of PostgreSQL",
    "2 seconds"
  )

/** Says that announcements may have been lost. */
const lost = Stream.succeed({ payload: "" })

const make = Effect.fnUntraced(
  function* (options: Options) {
    const client = yield* Postgres.make(options, { listening: 1, usual: 10 })
    const make = (given: SqlRunStore.Options) =>
      Effect.provideService(SqlRunStore.make(given), SqlClient.SqlClient, client)
    if (client.isPooled) return yield* make({ pollInterval: options.pollInterval })
    const listen = client.listen(Tables.channel)
    // The first listener is ready before the store. If it is lost, polling covers the time until the next one.
    const first = Stream.fromQueue(yield* listen)
    const later = Effect.map(listen, (notices) => Stream.concat(lost, Stream.fromQueue(notices)))
    const next = Stream.retry(Stream.unwrap(later), Schedule.spaced("1 second"))
    const changes = first.pipe(
      Stream.catch(() => next),
      Stream.map(({ payload }) => payload),
      Stream.orDie
    )
    const { pollInterval = "5 seconds" } = options
    return yield* make({ pollInterval, changes })
  },
  Effect.catchTag("SqlError", failed("open"))
)
