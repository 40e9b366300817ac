import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Exit, Fiber, Layer, Schedule, Scope, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import { execFile } from "node:child_process"
import * as fs from "node:fs"
import * as path from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { SqliteClient } from "../../src/sql/index.ts"
import { folder } from "../support/folder.ts"
import { isLong } from "../support/longRun.ts"
import { sqlSuite } from "../support/sqlSuite.ts"

const file = Effect.map(folder, (folder) => path.join(folder, "runs.db"))

const open = (options: SqliteClient.Options) =>
  Effect.map(Layer.build(SqliteClient.layer(options)), (context) => Context.get(context, SqlClient.SqlClient))

const inFile = Layer.unwrap(Effect.map(file, (filename) => SqliteClient.layer({ filename })))

/** Repeats a statement until it fails: a client looks at its file from time to time. */
const refusal = <A, E>(statement: Effect.Effect<A, E>) =>
  Effect.flip(Effect.repeat(statement, Schedule.spaced("5 millis")))

sqlSuite("SqliteClient in memory", SqliteClient.layer({ filename: ":memory:" }))
sqlSuite("SqliteClient in a file", inFile)

describe("SqliteClient", () => {
  it.effect("keeps committed rows for the next client, and leaves only the database file", () =>
    Effect.gen(function* () {
      const filename = yield* file
      yield* Effect.scoped(
        Effect.gen(function* () {
          const sql = yield* open({ filename })
          yield* sql`CREATE TABLE t (id TEXT)`
          yield* sql`INSERT INTO t VALUES ('a')`
          assert.include(fs.readdirSync(path.dirname(filename)), "runs.db-wal")
        })
      )
      assert.deepStrictEqual(fs.readdirSync(path.dirname(filename)), ["runs.db"])
      const sql = yield* open({ filename })
      assert.deepStrictEqual(yield* sql`SELECT id FROM t`, [{ id: "a" }])
    })
  )

  it.effect("uses a write-ahead log and full synchronization by default", () =>
    Effect.gen(function* () {
      const filename = yield* file
      const full = yield* open({ filename })
      assert.deepStrictEqual(yield* full`PRAGMA journal_mode`, [{ journal_mode: "wal" }])
      assert.deepStrictEqual(yield* full`PRAGMA synchronous`, [{ synchronous: 2 }])
      const normal = yield* open({ filename, synchronous: "normal" })
      assert.deepStrictEqual(yield* normal`PRAGMA synchronous`, [{ synchronous: 1 }])
    })
  )

  it.effect("fails with a typed error that names a file it cannot open", () =>
    Effect.gen(function* () {
      const home = yield* folder
      const missing = path.join(home, "missing", "runs.db")
      const unopened = yield* Effect.flip(Effect.scoped(open({ filename: missing })))
      assert.strictEqual(unopened.reason._tag, "ConnectionError")
      assert.include(unopened.reason.operation, missing)
      assert.include(unopened.message, missing)
      const text = path.join(home, "notes.txt")
      fs.writeFileSync(text, "no database. ".repeat(100))
      const foreign = yield* Effect.flip(Effect.scoped(open({ filename: text })))
      assert.include(foreign.message, `${text}: file is not a database`)
      assert.isFalse(foreign.isRetryable)
      assert.strictEqual(fs.readFileSync(text, "utf8"), "no database. ".repeat(100))
    })
  )

  it.effect("reports every duplicate key as a UniqueViolation, with its columns", () =>
    Effect.gen(function* () {
      const sql = yield* open({ filename: ":memory:" })
      yield* sql`CREATE TABLE pairs (run TEXT, seq INTEGER, PRIMARY KEY (run, seq))`
      yield* sql`CREATE TABLE numbered (id INTEGER PRIMARY KEY)`
      yield* sql`CREATE TABLE plain (a TEXT)`
      const clash = (statement: string) =>
        Effect.andThen(sql.unsafe(statement), Effect.flip(sql.unsafe(statement))).pipe(
          Effect.map(({ reason }) => (reason._tag === "UniqueViolation" ? reason.constraint : reason._tag))
        )
      assert.strictEqual(yield* clash("INSERT INTO pairs VALUES ('r', 1)"), "pairs.run, pairs.seq")
      assert.strictEqual(yield* clash("INSERT INTO numbered VALUES (1)"), "numbered.id")
      assert.strictEqual(yield* clash("INSERT INTO plain (rowid, a) VALUES (1, 'x')"), "plain.rowid")
    })
  )

  it.effect("keeps U+0000 in texts and keys, and integers in text columns (R-8)", () =>
    Effect.gen(function* () {
      const sql = yield* open({ filename: ":memory:" })
      yield* sql`CREATE TABLE t (id TEXT PRIMARY KEY, body)`
      yield* sql`INSERT INTO t ${sql.insert([
        { id: "a\u0000b", body: "\u0000" },
        { id: "a\u0000c", body: -0 }
      ])}`
      assert.deepStrictEqual(yield* sql`SELECT id, body FROM t WHERE id = ${"a\u0000b"}`, [
        { id: "a\u0000b", body: "\u0000" }
      ])
      const [row] = yield* sql<{ body: number }>`SELECT body FROM t WHERE id = ${"a\u0000c"}`
      assert.isTrue(Object.is(row?.body, -0))
      yield* sql`INSERT INTO t ${sql.insert({ id: 5, body: true })}`
      assert.deepStrictEqual(yield* sql`SELECT id, body FROM t WHERE id = ${"5"}`, [{ id: "5", body: 1 }])
    })
  )

  it.effect("returns the number of changed rows with raw", () =>
    Effect.gen(function* () {
      const sql = yield* open({ filename: ":memory:" })
      yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY)`
      const changed = yield* sql`INSERT INTO t VALUES (1), (2)`.raw
      assert.deepStrictEqual({ ...Object(changed) }, { changes: 2, lastInsertRowid: 2 })
      assert.deepStrictEqual(yield* sql`SELECT id FROM t`.raw, [{ id: 1 }, { id: 2 }])
    })
  )

  it.effect("runs more distinct statements than it caches", () =>
    Effect.gen(function* () {
      const sql = yield* open({ filename: ":memory:" })
      for (let round = 0; round < 2; round++) {
        for (let n = 0; n < 600; n++) {
          assert.deepStrictEqual(yield* sql.unsafe(`SELECT ${n} AS n`), [{ n }])
        }
      }
    })
  )

  it.effect("waits for another client of the same process without blocking it, even under a test clock", () =>
    Effect.gen(function* () {
      const filename = yield* file
      const one = yield* open({ filename })
      const two = yield* open({ filename })
      yield* one`CREATE TABLE t (id TEXT)`
      const writing = yield* Deferred.make<void>()
      const goOn = yield* Deferred.make<void>()
      const first = yield* Effect.forkChild(
        one.withTransaction(
          one`INSERT INTO t VALUES ('one')`.pipe(
            Effect.andThen(Deferred.succeed(writing, undefined)),
            Effect.andThen(Deferred.await(goOn))
          )
        )
      )
      yield* Deferred.await(writing)
      assert.deepStrictEqual(yield* two`SELECT id FROM t`, [])
      const second = yield* Effect.forkChild(two.withTransaction(two`INSERT INTO t SELECT count(*) FROM t`), {
        startImmediately: true
      })
      const third = yield* Effect.forkChild(one`INSERT INTO t VALUES ('late')`, { startImmediately: true })
      yield* Deferred.succeed(goOn, undefined)
      yield* Effect.all([Fiber.join(first), Fiber.join(second), Fiber.join(third)])
      const rows = yield* two<{ id: string }>`SELECT id FROM t`
      assert.sameMembers(
        rows.map((row) => row.id).filter((id) => id.length > 1),
        ["one", "late"]
      )
      assert.lengthOf(rows, 3)
    })
  )

  it.effect("gives up on a lock with a retryable error, and can be interrupted while it waits", () =>
    Effect.gen(function* () {
      const filename = yield* file
      const holder = yield* open({ filename })
      const hasty = yield* open({ filename, busyTimeout: 0 })
      const patient = yield* open({ filename, busyTimeout: "1 hour" })
      yield* holder`CREATE TABLE t (id TEXT)`
      yield* holder.withTransaction(
        Effect.gen(function* () {
          for (const attempt of [hasty`INSERT INTO t VALUES ('x')`, hasty.withTransaction(Effect.void)]) {
            const error = yield* Effect.flip(attempt)
            assert.strictEqual(error._tag === "SqlError" && error.reason._tag, "LockTimeoutError")
            assert.isTrue(error.isRetryable)
          }
          const waiting = yield* Effect.forkChild(patient`INSERT INTO t VALUES ('y')`, { startImmediately: true })
          yield* Fiber.interrupt(waiting)
        })
      )
      yield* hasty`INSERT INTO t VALUES ('z')`
      assert.deepStrictEqual(yield* patient`SELECT id FROM t`, [{ id: "z" }])
    })
  )

  it.effect("does not wait when a reader upgrades to a writer after another write", () =>
    Effect.gen(function* () {
      const filename = yield* file
      const one = yield* open({ filename, busyTimeout: "1 hour" })
      const two = yield* open({ filename })
      yield* one`CREATE TABLE t (id TEXT)`
      const stale = one.withTransaction(
        Effect.all([one`SELECT id FROM t`, two`INSERT INTO t VALUES ('two')`, one`INSERT INTO t VALUES ('one')`])
      )
      const error = yield* Effect.flip(Effect.provideService(stale, SqlClient.BeginTransaction, "BEGIN"))
      assert.strictEqual(error.reason._tag, "LockTimeoutError")
      assert.deepStrictEqual(yield* one`SELECT id FROM t`, [{ id: "two" }])
    })
  )

  it.effect("runs a statement at once only where it is part of nothing else (R-5)", () =>
    Effect.gen(function* () {
      const filename = yield* file
      const client = yield* Effect.provide(SqliteClient.make({ filename }), Reactivity.layer)
      yield* client`CREATE TABLE t (id TEXT PRIMARY KEY)`
      const insert = "INSERT INTO t VALUES (?) ON CONFLICT DO NOTHING"
      assert.isTrue(client.attempt(insert, ["a"]))
      assert.isFalse(client.attempt(insert, ["a"]))
      assert.isUndefined(client.attempt("INSERT INTO t VALUES (?)", ["a"]))
      yield* client.withTransaction(
        Effect.gen(function* () {
          yield* client`DELETE FROM t`
          assert.isUndefined(client.attempt(insert, ["b"]))
        })
      )
      assert.deepStrictEqual(yield* client`SELECT id FROM t`, [])
      const other = yield* open({ filename })
      yield* other.withTransaction(
        Effect.gen(function* () {
          yield* other`INSERT INTO t VALUES ('c')`
          assert.isUndefined(client.attempt(insert, ["b"]))
        })
      )
      assert.deepStrictEqual(yield* client`SELECT id FROM t`, [{ id: "c" }])
    })
  )

  it.effect("streams inside a transaction, and the consumer may run queries", () =>
    Effect.gen(function* () {
      const sql = yield* open({ filename: ":memory:" })
      yield* sql`CREATE TABLE t (n INTEGER)`
      yield* sql`INSERT INTO t VALUES (1), (2)`
      yield* sql.withTransaction(
        sql<{ n: number }>`SELECT n FROM t`.stream.pipe(
          Stream.runForEach(({ n }) => sql`INSERT INTO t ${sql.insert({ n: n * 10 })}`)
        )
      )
      assert.deepStrictEqual(yield* sql`SELECT n FROM t ORDER BY n`.values, [[1], [2], [10], [20]])
    })
  )

  it.effect("discards an open transaction when it closes, and later statements fail with a typed error", () =>
    Effect.gen(function* () {
      const filename = yield* file
      const scope = yield* Scope.make()
      const sql = yield* Scope.provide(open({ filename }), scope)
      yield* sql`CREATE TABLE t (id TEXT)`
      const inside = yield* Deferred.make<void>()
      const closed = yield* Deferred.make<void>()
      const fiber = yield* Effect.forkChild(
        sql.withTransaction(
          sql`INSERT INTO t VALUES ('lost')`.pipe(
            Effect.andThen(Deferred.succeed(inside, undefined)),
            Effect.andThen(Deferred.await(closed)),
            Effect.andThen(sql`INSERT INTO t VALUES ('late')`)
          )
        )
      )
      yield* Deferred.await(inside)
      yield* Scope.close(scope, Exit.void)
      yield* Deferred.succeed(closed, undefined)
      assert.strictEqual((yield* Effect.flip(Fiber.join(fiber)))._tag, "SqlError")
      assert.deepStrictEqual(fs.readdirSync(path.dirname(filename)), ["runs.db"])
      const again = yield* open({ filename })
      assert.deepStrictEqual(yield* again`SELECT id FROM t`, [])
    })
  )

  it.live("writes nothing into a file that was removed or replaced (R-1)", () =>
    Effect.gen(function* () {
      for (const replaced of [false, true]) {
        const filename = yield* file
        const sql = yield* open({ filename })
        yield* sql`CREATE TABLE t (id TEXT)`
        yield* sql`INSERT INTO t VALUES ('a')`
        for (const end of ["", "-wal", "-shm"]) fs.rmSync(filename + end, { force: true })
        if (replaced)
          yield* Effect.scoped(Effect.flatMap(open({ filename }), (other) => other`CREATE TABLE t (id TEXT)`))
        for (const asked of [sql`INSERT INTO t VALUES ('b')`, sql.withTransaction(sql`SELECT id FROM t`)]) {
          const error = yield* refusal(asked)
          assert.include(error.message, "runs.db is no longer the file that was opened")
        }
      }
    })
  )

  it.live("writes nothing after its log or shared memory file was removed (R-1)", () =>
    Effect.gen(function* () {
      for (const end of ["-wal", "-shm"]) {
        const filename = yield* file
        const sql = yield* open({ filename })
        yield* sql`CREATE TABLE t (id TEXT)`
        fs.rmSync(filename + end)
        const error = yield* refusal(sql`INSERT INTO t VALUES ('a')`)
        assert.include(error.message, `runs.db${end} is no longer the file that was opened`)
      }
    })
  )

  it.live("ends a transaction when the file was moved away, and continues when it is back", () =>
    Effect.gen(function* () {
      const filename = yield* file
      const sql = yield* open({ filename })
      yield* sql`CREATE TABLE t (id TEXT)`
      const move = (from: string, to: string) =>
        Effect.delay(
          Effect.sync(() => fs.renameSync(from, to)),
          150
        )
      const failed = sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`INSERT INTO t VALUES ('a')`
          yield* move(filename, `${filename}.away`)
          yield* Effect.sleep(150)
          return yield* Effect.fail("no")
        })
      )
      assert.strictEqual(yield* Effect.flip(failed), "no")
      assert.include(
        (yield* Effect.flip(Effect.asVoid(sql`SELECT id FROM t`))).message,
        "no longer the file that was opened"
      )
      yield* move(`${filename}.away`, filename)
      yield* Effect.retry(sql.withTransaction(sql`INSERT INTO t VALUES ('b')`), Schedule.spaced("5 millis"))
      assert.deepStrictEqual(yield* sql`SELECT id FROM t`, [{ id: "b" }])
    })
  )

  it.effect("keeps using a file with a relative name after its process changed directory", () =>
    Effect.gen(function* () {
      const filename = yield* file
      const script = fileURLToPath(new URL("../support/sqliteElsewhere.ts", import.meta.url))
      const cwd = path.dirname(filename)
      yield* Effect.tryPromise((signal) =>
        promisify(execFile)(process.execPath, [script, path.basename(filename)], { cwd, signal })
      )
      const sql = yield* open({ filename })
      assert.deepStrictEqual(yield* sql`SELECT id FROM t`, [{ id: "a" }])
    })
  )

  // `npm test` has two processes append to one run: SqlRunStore.test.ts.
  if (isLong) {
    it.effect(
      "loses no updates between processes",
      () =>
        Effect.gen(function* () {
          const filename = yield* file
          const sql = yield* open({ filename, busyTimeout: "1 minute" })
          yield* sql`CREATE TABLE counter (n INTEGER)`
          yield* sql`INSERT INTO counter VALUES (0)`
          const script = fileURLToPath(new URL("../support/sqliteIncrement.ts", import.meta.url))
          const worker = Effect.tryPromise((signal) =>
            promisify(execFile)(process.execPath, [script, filename, "100"], { signal })
          )
          yield* Effect.all([worker, worker], { concurrency: "unbounded" })
          assert.deepStrictEqual(yield* sql`SELECT n FROM counter`, [{ n: 200 }])
        }),
      30_000
    )
  }
})
