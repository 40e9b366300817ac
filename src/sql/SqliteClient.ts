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
import { statSync } from "node:fs"
import { resolve } from "node:path"
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite"
import { severalStatements, toInput, toSqlError } from "./internal/sqlite.ts"

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
   * Runs one statement at once, for each list of parameters, in one transaction, without a fiber, a span or a queue.
   * Values are bound as they are: a number in a column of text is no whole number any more. Each time it must change
   * something: else, nothing has happened and this is false. Undefined when it cannot be done like that, because a
   * transaction is open, a lock is held elsewhere, or it fails. Then nothing has happened either, and the statement run
   * as usual waits, or tells what is wrong.
   */
  readonly attempt: (sql: string, lists: ReadonlyArray<ReadonlyArray<SQLInputValue>>) => boolean | undefined
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
export const make = /*#__PURE__*/ Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<SqliteClient, SqlError, Scope.Scope | Reactivity.Reactivity> {
  const { filename } = options
  const unopened = toSqlError(`open ${filename}`, `${filename}: `)
  const db = yield* Effect.acquireRelease(
    Effect.try({ try: () => new DatabaseSync(filename), catch: unopened }),
    (db) => Effect.sync(() => db.isOpen && db.close())
  )
  const isTransaction = () => db.isOpen && db.isTransaction

  const schedule = Schedule.min([Schedule.exponential("1 millis"), Schedule.spaced("25 millis")]).pipe(
    Schedule.upTo({ duration: options.busyTimeout ?? "5 seconds" })
  )
  // Only outside a transaction is a refused statement sure to have done nothing. Other processes do not
  // live in a test's virtual time, so this waits by the real clock.
  const realClock = Clock.Clock.defaultValue()
  const waitable = (error: SqlError) => error.reason._tag === "LockTimeoutError" && !isTransaction()
  const patiently = <A>(attempt: Effect.Effect<A, SqlError>) =>
    Effect.catchIf(attempt, waitable, () =>
      Effect.provideService(Effect.retry(attempt, { while: waitable, schedule }), Clock.Clock, realClock)
    )

  const { synchronous = "full" } = options
  // A log that is written over takes no new blocks of the disk: where each commit waits for it, a short log is faster.
  const checkpoint = synchronous === "full" ? 200 : 1_000
  // Who reads something opens the log.
  const pragmas = `PRAGMA journal_mode = WAL; PRAGMA synchronous = ${synchronous}; PRAGMA wal_autocheckpoint = ${checkpoint}; PRAGMA user_version`
  yield* patiently(Effect.try({ try: () => db.exec(pragmas), catch: unopened }))

  const missing = watch(filename)

  const prepare = (sql: string) => {
    const statement = db.prepare(sql)
    // SQLite would run the first statement and drop the rest without a word.
    if (sql.length > statement.sourceSQL.length && sql.slice(statement.sourceSQL.length).trim() !== "") {
      throw severalStatements()
    }
    return statement
  }
  const cache = new Map<string, StatementSync>()
  let last: { readonly sql: string; readonly statement: StatementSync } | undefined
  const prepared = (sql: string) => {
    if (last?.sql === sql) return last.statement
    const statement = cache.get(sql) ?? prepare(sql)
    cache.delete(sql)
    cache.set(sql, statement)
    const oldest = cache.keys().next()
    if (cache.size > PREPARED_STATEMENTS && !oldest.done) cache.delete(oldest.value)
    last = { sql, statement }
    return statement
  }

  const query = <A>(sql: string, params: ReadonlyArray<unknown>, read: Read<A>, prepare = prepared) =>
    patiently(
      Effect.withFiber<A, SqlError>((fiber) => {
        let operation = "prepare"
        try {
          // What was begun there ends there: refused, its end would leave it open.
          const gone = isTransaction() ? undefined : missing()
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

  const connection: Connection = {
    execute: (sql, params, transform) => Effect.map(query(sql, params, rows), transform ?? identity),
    executeRaw: (sql, params) => query(sql, params, raw),
    executeValues: (sql, params) => query(sql, params, values),
    executeValuesUnprepared: (sql, params) => query(sql, params, values, prepare),
    executeUnprepared: (sql, params, transform) => Effect.map(query(sql, params, rows, prepare), transform ?? identity),
    executeStream: (sql, params, transform) => Stream.fromArrayEffect(connection.execute(sql, params, transform))
  }
  const acquirers = Client.makeSqliteAcquirers({
    connection: Effect.succeed(connection),
    semaphore: Semaphore.makeUnsafe(1),
    isTransaction
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
  const begin = db.prepare("BEGIN IMMEDIATE")
  const commit = db.prepare("COMMIT")
  const isChange = (statement: StatementSync, params: ReadonlyArray<SQLInputValue>) =>
    Number(statement.run(...params).changes) > 0
  /** Ends a transaction that is to change nothing, unless SQLite did so by itself. */
  const undo = () => {
    try {
      if (isTransaction()) db.exec("ROLLBACK")
    } catch {
      // What comes next must not become part of it: a database that is closed keeps nothing of it, and says what is wrong.
      if (isTransaction()) db.close()
    }
  }
  const attempt: SqliteClient["attempt"] = (sql, lists) => {
    // In a transaction, a statement may be that of another fiber.
    if (!db.isOpen || db.isTransaction || missing() !== undefined) return undefined
    const [first] = lists
    try {
      const statement = prepared(sql)
      if (lists.length === 1 && first !== undefined) return isChange(statement, first)
      begin.run()
      const isDone = lists.every((params) => isChange(statement, params))
      if (isDone) commit.run()
      else undo()
      return isDone
    } catch {
      undo()
      return undefined
    }
  }
  return Object.assign(client, { attempt })
})

/**
 * Provides `SqlClient` on one database file, released with the layer.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<Client.SqlClient, SqlError> =>
  Layer.effect(Client.SqlClient, make(options)).pipe(Layer.provide(Reactivity.layer))

type Read<A> = (statement: StatementSync, params: ReadonlyArray<SQLInputValue>) => A

const rows: Read<ReadonlyArray<object>> = (statement, params) => {
  statement.setReturnArrays(false)
  const rows = statement.all(...params)
  for (const row of rows) Object.setPrototypeOf(row, Object.prototype)
  return rows
}

const values: Read<ReadonlyArray<ReadonlyArray<unknown>>> = (statement, params) => {
  statement.setReturnArrays(true)
  return statement.all(...params).map((row) => (Array.isArray(row) ? row : Object.values(row)))
}

const raw: Read<unknown> = (statement, params) =>
  statement.columns().length === 0 ? statement.run(...params) : rows(statement, params)

/** Which file a path leads to, as far as can be told. */
const identityOf = (path: string): string | undefined => {
  try {
    const { dev, ino } = statSync(path)
    return `${dev}/${ino}`
  } catch {
    return undefined
  }
}

/**
 * Tells which file of a database is not the one it was, if any: one that was removed or replaced takes all that is
 * written to it, and nobody ever finds it again.
 */
const watch = (filename: string): (() => string | undefined) => {
  // SQLite goes on with the files, wherever this process goes.
  const path = resolve(filename)
  // What is committed is in the second until it is copied, and who else writes is found by the third.
  const opened = [path, `${path}-wal`, `${path}-shm`].flatMap((file) => {
    const identity = identityOf(file)
    return identity === undefined ? [] : [{ file, identity }]
  })
  let gone: string | undefined
  let looked = performance.now()
  return () => {
    const now = performance.now()
    // It costs as much as a statement that changes a row.
    if (now - looked > LOOK_EVERY) {
      looked = now
      gone = opened.find(({ file, identity }) => identityOf(file) !== identity)?.file
    }
    return gone
  }
}

/** Milliseconds between two looks at which files they are. */
const LOOK_EVERY = 100

/** How many statements stay prepared; the least recently used goes first. */
const PREPARED_STATEMENTS = 256
