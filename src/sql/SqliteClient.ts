/**
 * SQLite for effect/sql, on the database that comes with Node.
 *
 * One connection in WAL mode serves the whole client: statements queue for it,
 * a transaction takes the write lock when it begins (`BEGIN IMMEDIATE`) and
 * nests by savepoints. A lock held elsewhere is waited for without stopping the
 * event loop, so two clients of one process may share a file. Statements run
 * synchronously: keep them short and page through what is long.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Client from "effect/sql/SqlClient"
import type { Connection } from "effect/sql/SqlConnection"
import type { SqlError } from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import * as Stream from "effect/Stream"
import { DatabaseSync, type SQLInputValue } from "node:sqlite"
import { watch } from "./internal/sameFiles.ts"
import { isInTransaction, toInput, toSqlError } from "./internal/sqlite.ts"
import { type Read, raw, rows, Statements, values } from "./internal/statements.ts"
import { attempting } from "./internal/unqueued.ts"

/**
 * How a database is opened.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** A path, or `:memory:`. The folder must exist. */
  readonly filename: string
  /** `full` (the default) survives a power cut; `normal` may lose the last commits then, never the file. */
  readonly synchronous?: "full" | "normal" | undefined
  /**
   * How long to wait for a lock held by another connection. Default: 5 seconds. A transaction that begins waits
   * uninterrupted.
   */
  readonly busyTimeout?: Duration.Input | undefined
}

/**
 * A client that can also do without waiting.
 *
 * @category models
 * @since 0.1.0
 */
export interface SqliteClient extends Client.SqlClient {
  /**
   * Runs a statement at once, without a fiber, a span or a queue, and tells whether it changed anything. Values are bound
   * as they are: a number in a column of text is no whole number any more. Returns undefined, and has done nothing, where
   * a transaction is open, another connection holds a lock, or the statement fails. Run as usual it waits, or fails with
   * the reason.
   */
  readonly attempt: (sql: string, params: ReadonlyArray<SQLInputValue>) => boolean | undefined
}

/**
 * Opens a database for the time of a scope.
 *
 * Values: `undefined` is NULL, a boolean 1 or 0, a Date its ISO text, a whole
 * number an INTEGER; NaN, lists and objects are refused. An INTEGER beyond 2^53
 * is an error unless `SqlClient.SafeIntegers` is on. Text keeps U+0000, though
 * SQL's `length` stops there, and so does who reads it under Node 22 or an early
 * 24. Neither knows the place of a numbered parameter (`?1`): write `?`. A lone
 * surrogate becomes U+FFFD, as in PostgreSQL, so encode text from outside before
 * it is a key. `raw` of a statement without rows gives `{ changes,
 * lastInsertRowid }`, and `stream` reads its rows at once, so its consumer may
 * query.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<SqliteClient, SqlError, Scope.Scope | Reactivity.Reactivity> {
  const { busyTimeout = "5 seconds", filename, synchronous = "full" } = options
  const unopened = toSqlError(`open ${filename}`, `${filename}: `)
  const db = yield* Effect.acquireRelease(
    Effect.try({ try: () => new DatabaseSync(filename), catch: unopened }),
    (db) => Effect.sync(() => db.isOpen && db.close())
  )
  const patiently = waiting(db, busyTimeout)
  yield* patiently(Effect.try({ try: () => db.exec(pragmas(synchronous)), catch: unopened }))
  const statements = new Statements(db)
  const missing = watch(filename)
  const connection = connect(db, statements, missing, patiently)
  const acquirers = Client.makeSqliteAcquirers({
    connection: Effect.succeed(connection),
    semaphore: Semaphore.makeUnsafe(1),
    isTransaction: () => isInTransaction(db)
  })
  // A stream gives the connection back before its first row: a consumer that queries cannot wait for itself.
  const streaming: Connection = {
    ...connection,
    executeStream: (sql, params, transform) =>
      Stream.fromArrayEffect(acquirers.borrower((connection) => connection.execute(sql, params, transform)))
  }
  const client = yield* Client.make({
    ...acquirers,
    acquirer: Effect.succeed(streaming),
    compiler: Statement.makeCompilerSqlite(),
    driver: "sqlite-node",
    spanAttributes: [["db.system.name", "sqlite"]],
    prepareTransactionControls: true,
    beginTransaction: "BEGIN IMMEDIATE",
    releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`
  })
  return Object.assign(client, { attempt: attempting(db, statements, missing) })
})

/**
 * Provides `SqlClient` on one database file, released with the layer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<Client.SqlClient, SqlError> =>
  Layer.effect(Client.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))

const pragmas = (synchronous: "full" | "normal"): string => {
  // A log that is written over takes no new blocks of the disk: where each commit waits for it, a short log is faster.
  const checkpoint = synchronous === "full" ? 200 : 1_000
  // Who reads something opens the log.
  return `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; PRAGMA wal_autocheckpoint = ${checkpoint}; PRAGMA user_version`
}

type Patiently = <A>(attempt: Effect.Effect<A, SqlError>) => Effect.Effect<A, SqlError>

/** Tries again for as long as another connection holds the lock. */
const waiting = (db: DatabaseSync, busyTimeout: Duration.Input): Patiently => {
  const schedule = Schedule.min([Schedule.exponential("1 millis"), Schedule.spaced("25 millis")]).pipe(
    Schedule.upTo({ duration: busyTimeout })
  )
  // Only outside a transaction is a refused statement sure to have done nothing.
  const isLocked = (error: SqlError) => error.reason._tag === "LockTimeoutError" && !isInTransaction(db)
  // Other processes do not live in a test's virtual time, so this waits by the real clock.
  const realClock = Clock.Clock.defaultValue()
  return (attempt) =>
    Effect.catchIf(attempt, isLocked, () =>
      Effect.provideService(Effect.retry(attempt, { while: isLocked, schedule }), Clock.Clock, realClock)
    )
}

/** A connection whose statements wait `patiently`, and are refused once a file is `missing`. */
const connect = (
  db: DatabaseSync,
  statements: Statements,
  missing: () => string | undefined,
  patiently: Patiently
): Connection => {
  const prepared = (sql: string) => statements.prepared(sql)
  const query = <A>(sql: string, params: ReadonlyArray<unknown>, read: Read<A>, prepare = prepared) =>
    patiently(
      Effect.withFiber<A, SqlError>((fiber) => {
        let operation = "prepare"
        try {
          // What was begun there ends there: refused, its end would leave it open.
          const gone = isInTransaction(db) ? undefined : missing()
          if (gone !== undefined) throw new Error(`${gone} is not the file that was opened any more`)
          const statement = prepare(sql)
          operation = "execute"
          statement.setReadBigInts(fiber.getRef(Client.SafeIntegers))
          return Effect.succeed(read(statement, params.map(toInput)))
        } catch (cause) {
          return Effect.fail(toSqlError(operation)(cause))
        }
      })
    )
  const unprepared = (sql: string) => statements.prepare(sql)
  const connection: Connection = {
    execute: (sql, params, transform) => Effect.map(query(sql, params, rows), transform ?? identity),
    executeRaw: (sql, params) => query(sql, params, raw),
    executeValues: (sql, params) => query(sql, params, values),
    executeValuesUnprepared: (sql, params) => query(sql, params, values, unprepared),
    executeUnprepared: (sql, params, transform) =>
      Effect.map(query(sql, params, rows, unprepared), transform ?? identity),
    executeStream: (sql, params, transform) => Stream.fromArrayEffect(connection.execute(sql, params, transform))
  }
  return connection
}
