/**
 * A PostgreSQL client. It loads the package `@effect/sql-pg` when it is created, so programs without PostgreSQL do not
 * need the package.
 *
 * A connection that is cut off silently stays open: statements on it never end, and it cannot be returned to the pool.
 * So each statement has a time limit, after which it fails as if its connection were lost, and the connection is
 * closed.
 */

import * as Config from "effect/Config"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import type * as Reactivity from "effect/reactivity/Reactivity"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import { SqlError, StatementTimeoutError, UnknownError } from "effect/sql/SqlError"
import type * as Stream from "effect/Stream"
import { forkNow } from "../../kit/foreignCode.ts"
import { randomId } from "../../kit/randomId.ts"
import { StoreError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import { tlsOf } from "./postgresTls.ts"
import { wordsOf } from "./sqlFault.ts"

/** Options of the connection. */
export interface Options {
  /**
   * The URL of the database, as in `postgres://user:password@host:5432/database?sslmode=verify-full`. A missing password
   * is read from the config `PGPASSWORD`. TLS is set as for `libpq`, by the parameters `sslmode`, `sslrootcert`,
   * `sslcert` and `sslkey` or the config `PGSSLMODE`, `PGSSLROOTCERT`, `PGSSLCERT` and `PGSSLKEY`.
   */
  readonly url: Redacted.Redacted
  /** Maximum number of connections, at least 1. Default: 2. */
  readonly maxConnections?: number | undefined
}

type Listen = (
  channel: string
) => Effect.Effect<Queue.Dequeue<{ readonly payload: string }, SqlError>, SqlError, Scope.Scope>

/** A client that can also listen. */
interface Client extends SqlClient.SqlClient {
  readonly listen: Listen
  /** Whether notifications are lost, because a pooler shares connections between transactions. */
  readonly isPooled: boolean
}

/** Creates a client of `maxConnections` connections, or `usual` ones by default. `listening` of them only listen. */
export const make = Effect.fnUntraced(
  function* (
    options: Options,
    connections: { readonly listening: number; readonly usual: number }
  ): Effect.fn.Return<Client, StoreError | SqlError, Reactivity.Reactivity | Scope.Scope> {
    const [PgClient, PgConnection, PgPool] = yield* Effect.tryPromise({
      try: () =>
        Promise.all([
          import("@effect/sql-pg/PgClient"),
          import("@effect/sql-pg/PgConnection"),
          import("@effect/sql-pg/PgPool")
        ]),
      catch: () => unavailable("the package @effect/sql-pg is not installed")
    })
    const { appendTimeout } = yield* Limits
    const limit = 6 * Duration.toMillis(appendTimeout)
    const url = yield* withPassword(options.url)
    const way = {
      url,
      ssl: yield* tlsOf(Redacted.value(url)),
      applicationName: "kernai",
      maxMessageSize: LONGEST,
      // A listening connection sends nothing, and would otherwise never notice that its server is gone.
      keepAlive: "30 seconds"
    } as const
    const most = (options.maxConnections ?? connections.usual) - connections.listening
    // An append, an announcement and a query for cancellations need one each. If opened together on demand, one may
    // wait forever.
    const few = Math.max(1, Math.min(3, most))
    const isPooled = !(yield* isNotified(PgConnection.make({ ...way, prepare: false }), limit))
    if (isPooled) yield* Effect.logWarning(pooled)
    // A statement that was prepared by name may be unknown to the next connection of a pooler.
    const pool = yield* PgPool.make({
      ...way,
      prepare: !isPooled,
      minConnections: few,
      maxConnections: Math.max(1, most)
    })
    // The outcome of an abandoned statement is unknown, and its connection may be inside a transaction.
    const speak = (session: Effect.Success<typeof pool.reserve>) =>
      connectionOf(session, within(limit, pool.invalidate(session)))
    const client = yield* SqlClient.make({
      acquirer: Effect.map(pool.get, speak),
      borrower: (use) => pool.use((session) => use(speak(session))),
      transactionAcquirer: Effect.map(pool.reserve, speak),
      compiler: PgClient.makeCompiler(),
      driver: "pg",
      spanAttributes: [["db.system.name", "postgresql"]],
      prepareTransactionControls: !isPooled,
      commit,
      releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`
    })
    const listen: Listen = Effect.fnUntraced(function* (channel) {
      // Forked first so that it closes last: a closed connection need not stop listening.
      const scope = yield* Scope.fork(yield* Scope.Scope)
      const session = yield* PgConnection.make(way)
      return yield* within(limit, Effect.void)(Scope.provide(session.listen(channel), scope))
    })
    return Object.assign(client, { listen, isPooled })
  },
  Effect.catchTag("SqlError", (error) => Effect.fail(unavailable(wordsOf(error))))
)

/** Adds the password in `PGPASSWORD` to a URL that has none, so that no command line needs one. */
export const withPassword = Effect.fnUntraced(function* (url: Redacted.Redacted) {
  const password = yield* Effect.orElseSucceed(Config.option(Config.Redacted("PGPASSWORD")), Option.none)
  if (Option.isNone(password) || !URL.canParse(Redacted.value(url))) return url
  const whole = new URL(Redacted.value(url))
  if (whole.password !== "") return url
  whole.password = encodeURIComponent(Redacted.value(password.value))
  return Redacted.make(whole.href)
})

/** Creates the error of a database that cannot be used. */
export const unavailable = (detail: string): StoreError =>
  new StoreError({ operation: "open", reason: "unavailable", detail })

// ---------------------------------------------------------------- helpers

const pooled =
  "notifications of PostgreSQL do not come back, as behind a pooler that shares connections between transactions: " +
  "changes of other processes are polled for, and statements are not prepared by name"

/** Returns whether a connection that listens is notified by another one. */
const isNotified = (
  connect: Effect.Effect<Pick<Session, "query"> & { readonly listen: Listen }, SqlError, Scope.Scope>,
  limit: number
): Effect.Effect<boolean, SqlError> =>
  Effect.gen(function* () {
    const channel = `kernai_${randomId(yield* Random.Random)}`
    const { listen } = yield* connect
    const scope = yield* Scope.Scope
    const notices = yield* within(limit, Effect.void)(Scope.provide(listen(channel), scope))
    const { query } = yield* connect
    yield* within(limit, Effect.void)(query("SELECT pg_notify($1, '')", [channel], false))
    return Option.isSome(yield* Effect.timeoutOption(Queue.take(notices), "2 seconds"))
  }).pipe(Effect.scoped)

/** The maximum bytes of a row: several times those of a record with the longest reply. */
const LONGEST = 256 * 1024 * 1024

/** The part of a connection that is used here. Users without the package cannot resolve its own type. */
interface Session {
  readonly query: (
    sql: string,
    params: ReadonlyArray<unknown>,
    prepare?: boolean
  ) => Effect.Effect<{ readonly rows: ReadonlyArray<object>; readonly command: string }, SqlError>
  readonly queryValues: (
    sql: string,
    params: ReadonlyArray<unknown>,
    prepare?: boolean
  ) => Effect.Effect<ReadonlyArray<ReadonlyArray<unknown>>, SqlError>
  readonly stream: (sql: string, params: ReadonlyArray<unknown>) => Stream.Stream<object, SqlError>
}

type Soon = <A>(asked: Effect.Effect<A, SqlError>) => Effect.Effect<A, SqlError>

/** Limits the wait for every response, because a transaction begins and ends uninterruptibly. */
const within =
  (limit: number, leave: Effect.Effect<void>): Soon =>
  (asked) =>
    Effect.uninterruptibleMask((restore) =>
      forkNow(asked, (fiber) => {
        // The connection stays reserved until it is closed or returned.
        const stop = Fiber.interrupt(fiber)
        const late = Effect.suspend(() => failed(StatementTimeoutError, `it took longer than ${limit} ms`, "execute"))
        const timed = Effect.timeoutOrElse(Fiber.join(fiber), {
          duration: limit,
          orElse: () => Effect.andThen(Effect.andThen(stop, leave), late)
        })
        return Effect.onInterrupt(restore(timed), () => stop)
      })
    )

const connectionOf = (session: Session, soon: Soon): Connection => {
  const rows = (sql: string, params: ReadonlyArray<unknown>, prepare: boolean) =>
    Effect.map(soon(session.query(sql, params, prepare)), (result) => result.rows)
  const execute =
    (prepare: boolean): Connection["execute"] =>
    (sql, params, transform) =>
      transform === undefined ? rows(sql, params, prepare) : Effect.map(rows(sql, params, prepare), transform)
  return {
    execute: execute(true),
    executeUnprepared: execute(false),
    executeRaw: (sql, params) => soon(session.query(sql, params)),
    executeValues: (sql, params) => soon(session.queryValues(sql, params)),
    executeValuesUnprepared: (sql, params) => soon(session.queryValues(sql, params, false)),
    // Results are not transformed here.
    executeStream: (sql, params) => session.stream(sql, params)
  }
}

/** Commits a transaction. PostgreSQL responds with `ROLLBACK` if one of its statements failed. */
const commit = (connection: Connection): Effect.Effect<void, SqlError> =>
  Effect.flatMap(connection.executeRaw("COMMIT", []), (result) =>
    typeof result === "object" && result !== null && "command" in result && result.command === "ROLLBACK"
      ? failed(UnknownError, "the transaction was rolled back", "commit")
      : Effect.void
  )

const failed = (
  Reason: typeof StatementTimeoutError | typeof UnknownError,
  message: string,
  operation: string
): Effect.Effect<never, SqlError> =>
  Effect.fail(new SqlError({ reason: new Reason({ cause: new Error(message), message, operation }) }))
