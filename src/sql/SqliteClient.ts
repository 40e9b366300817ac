/**
 * SQLite for effect/sql, on the database that comes with Node.
 *
 * One connection in WAL mode serves the whole client: statements queue for it. A transaction takes the write lock when
 * it begins (`BEGIN IMMEDIATE`) and nests by savepoints. Waiting for another connection's lock does not block the event
 * loop, so two clients of one process may share a file. Statements run synchronously: keep them short, and page through
 * large results.
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
import { accessSync, closeSync, constants, existsSync, openSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync, type DatabaseSyncOptions, type SQLInputValue } from "node:sqlite"
import { pathToFileURL } from "node:url"
import { watch } from "./internal/sameFiles.ts"
import { isInTransaction, toInput, toSqlError } from "./internal/sqlite.ts"
import { type Read, raw, rows, Statements, values } from "./internal/statements.ts"
import { attempting } from "./internal/unqueued.ts"

/**
 * Options of a database.
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
   * How long to wait for a lock of another connection. Default: 5 seconds. The start of a transaction waits
   * uninterruptibly.
   */
  readonly busyTimeout?: Duration.Input | undefined
  /** Paths of extensions to load, such as that of `sqlite-vec`. SQL cannot load others. Default: none. */
  readonly extensions?: ReadonlyArray<string> | undefined
}

/**
 * A client that can also run a statement without waiting.
 *
 * @category models
 * @since 0.1.0
 */
export interface SqliteClient extends Client.SqlClient {
  /**
   * Runs a statement at once, without a fiber, a span or a queue, and returns whether it changed anything. Values are
   * bound without conversion: a number in a text column is stored as a float. Returns undefined, and does nothing, if a
   * transaction is open, another connection holds a lock, or the statement fails. Run it the usual way to wait, or to
   * get the reason.
   */
  readonly attempt: (sql: string, params: ReadonlyArray<SQLInputValue>) => boolean | undefined
}

/**
 * Opens a database for the lifetime of a scope. Only the owner can read and write a file that is created.
 *
 * Values: `undefined` is NULL, a boolean 1 or 0, a Date its ISO text, a whole number an INTEGER; NaN, lists and objects
 * are refused. An INTEGER beyond 2^53 is an error unless `SqlClient.SafeIntegers` is on. Text keeps U+0000, although
 * SQL's `length` stops there, as do readers under Node 22 and early 24. These versions do not support numbered
 * parameters (`?1`): write `?`. A lone surrogate becomes U+FFFD, as in PostgreSQL, so encode text from outside before
 * using it as a key. A file that this process may not write, on a read-only mount for instance, can be read; without its
 * log if that cannot be read there. `raw` of a statement without rows returns `{ changes, lastInsertRowid }`. `stream` reads all rows
 * at once, so its consumer may run queries.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<SqliteClient, SqlError, Scope.Scope | Reactivity.Reactivity> {
  const { busyTimeout = "5 seconds", extensions = [], filename, synchronous = "full" } = options
  const unopened = toSqlError(`open ${filename}`, `${filename}: `)
  const canWrite = isWritable(filename)
  const db = yield* Effect.acquireRelease(
    Effect.try({
      try: () => extended(extensions, (options) => (canWrite ? opened : readable)(filename, options)),
      catch: unopened
    }),
    (db) => Effect.sync(() => db.isOpen && db.close())
  )
  const patiently = waiting(db, busyTimeout)
  if (canWrite) yield* patiently(Effect.try({ try: () => db.exec(pragmas(synchronous)), catch: unopened }))
  const statements = new Statements(db)
  const missing = watch(filename)
  const connection = connect(db, statements, missing, patiently)
  const acquirers = Client.makeSqliteAcquirers({
    connection: Effect.succeed(connection),
    semaphore: Semaphore.makeUnsafe(1),
    isTransaction: () => isInTransaction(db)
  })
  // A stream releases the connection before its first row: a consumer that runs queries would otherwise wait for
  // itself.
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

/** Opens a database with extensions. */
const extended = (
  extensions: ReadonlyArray<string>,
  open: (options: DatabaseSyncOptions) => DatabaseSync
): DatabaseSync => {
  if (extensions.length === 0) return open({})
  const db = open({ allowExtension: true })
  try {
    for (const path of extensions) db.loadExtension(path)
    db.enableLoadExtension(false)
    return db
  } catch (cause) {
    db.close()
    throw cause
  }
}

const opened = (filename: string, options: DatabaseSyncOptions): DatabaseSync => {
  makePrivate(filename)
  return new DatabaseSync(filename, options)
}

/** Returns whether a database can be written: its file, and the folder for its log. A missing file can be created. */
const isWritable = (filename: string): boolean => {
  if (isUnnamed(filename) || !existsSync(filename)) return true
  try {
    accessSync(filename, constants.W_OK)
    accessSync(dirname(filename), constants.W_OK)
    return true
  } catch {
    return false
  }
}

/** Opens a database to read it: with its log if that is possible, and otherwise as a file that does not change. */
const readable = (filename: string, options: DatabaseSyncOptions): DatabaseSync => {
  try {
    return readOnly(filename, options)
  } catch {
    return readOnly(new URL(`${pathToFileURL(filename).href}?immutable=1`), options)
  }
}

const readOnly = (location: string | URL, options: DatabaseSyncOptions): DatabaseSync => {
  const db = new DatabaseSync(location, { ...options, readOnly: true })
  try {
    // Reading the tables opens the log.
    db.exec("SELECT 1 FROM sqlite_schema")
    return db
  } catch (cause) {
    db.close()
    throw cause
  }
}

const isUnnamed = (filename: string): boolean =>
  filename === "" || filename === ":memory:" || filename.startsWith("file:")

/** Creates the file of a database, readable by its owner only. SQLite gives its other files the same permissions. */
const makePrivate = (filename: string): void => {
  if (isUnnamed(filename)) return
  try {
    closeSync(openSync(filename, "ax", 0o600))
  } catch {
    // If it exists already or cannot be created, opening it shows that.
  }
}

const pragmas = (synchronous: "full" | "normal"): string => {
  // Overwriting a log needs no new disk blocks. If each commit waits for the disk, a short log is faster.
  const checkpoint = synchronous === "full" ? 200 : 1_000
  // Reading `user_version` opens the log.
  return `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; PRAGMA wal_autocheckpoint = ${checkpoint}; PRAGMA user_version`
}

type Patiently = <A>(attempt: Effect.Effect<A, SqlError>) => Effect.Effect<A, SqlError>

/** Retries while another connection holds the lock. */
const waiting = (db: DatabaseSync, busyTimeout: Duration.Input): Patiently => {
  const schedule = Schedule.min([Schedule.exponential("1 millis"), Schedule.spaced("25 millis")]).pipe(
    Schedule.upTo({ duration: busyTimeout })
  )
  // Only outside a transaction, a rejected statement has certainly had no effect.
  const isLocked = (error: SqlError) => error.reason._tag === "LockTimeoutError" && !isInTransaction(db)
  // Other processes do not follow the virtual time of a test, so this waits by the real clock.
  const realClock = Clock.Clock.defaultValue()
  return (attempt) =>
    Effect.catchIf(attempt, isLocked, () =>
      Effect.provideService(Effect.retry(attempt, { while: isLocked, schedule }), Clock.Clock, realClock)
    )
}

/** A connection that waits `patiently` for locks, and refuses statements once the file is `missing`. */
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
          // An open transaction may end: rejecting its end would leave it open.
          const gone = isInTransaction(db) ? undefined : missing()
          if (gone !== undefined) throw new Error(`${gone} is no longer the file that was opened`)
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
