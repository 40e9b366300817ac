/**
 * What kernai expects of a `SqlClient`, whatever the database.
 */
import { assert, layer as withLayer } from "@effect/vitest"
import { Array as Arr, Cause, Deferred, Effect, Exit, Fiber, type Layer, Option, Stream } from "effect"
import { Migrator, SqlClient, type SqlError } from "effect/sql"

const reason = <A, R>(effect: Effect.Effect<A, SqlError.SqlError, R>) =>
  Effect.map(Effect.flip(effect), (error) => error.reason._tag)

/** Runs the suite on one client with an empty database. */
export const sqlSuite = <E>(name: string, layer: Layer.Layer<SqlClient.SqlClient, E>): void => {
  withLayer(layer, { timeout: "30 seconds" })(name, (it) => {
    it.effect("gives rows back as plain objects", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE plain (id TEXT PRIMARY KEY, seq INTEGER NOT NULL)`
        const inserted = yield* sql`INSERT INTO plain ${sql.insert([
          { id: "a", seq: 1 },
          { id: "b", seq: 2 }
        ])} RETURNING id, seq`
        assert.deepStrictEqual(inserted, [
          { id: "a", seq: 1 },
          { id: "b", seq: 2 }
        ])
        assert.strictEqual(Object.getPrototypeOf(inserted[0]), Object.prototype)
        assert.deepStrictEqual(yield* sql`SELECT id FROM plain WHERE seq > ${1}`, [{ id: "b" }])
        assert.deepStrictEqual(yield* sql`SELECT id FROM plain WHERE ${sql.in("id", ["a", "z"])}`, [{ id: "a" }])
        assert.deepStrictEqual(yield* sql`UPDATE plain SET seq = 9 WHERE id = ${"none"}`, [])
      })
    )

    it.effect("gives rows as values in column order, also when two columns share a name", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const query = sql`SELECT 'b' AS name, 'a' AS name UNION ALL SELECT 'd', 'c' ORDER BY 1`
        assert.deepStrictEqual(yield* query.values, [
          ["b", "a"],
          ["d", "c"]
        ])
        assert.deepStrictEqual(yield* query.valuesUnprepared, yield* query.values)
        assert.deepStrictEqual(yield* sql`SELECT 'x' AS one`.unprepared, [{ one: "x" }])
      })
    )

    it.effect("streams rows, and the consumer may query the same client", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE streamed (n INTEGER PRIMARY KEY, seen INTEGER)`
        yield* sql`INSERT INTO streamed ${sql.insert(Arr.makeBy(300, (n) => ({ n, seen: 0 })))}`
        const read = sql<{ n: number }>`SELECT n FROM streamed ORDER BY n`.stream.pipe(
          Stream.mapEffect(({ n }) => Effect.as(sql`UPDATE streamed SET seen = 1 WHERE n = ${n}`, n)),
          Stream.runCollect
        )
        assert.deepStrictEqual(
          yield* read,
          Arr.makeBy(300, (n) => n)
        )
        assert.deepStrictEqual(yield* sql`SELECT n FROM streamed WHERE seen = 0`, [])
        assert.deepStrictEqual(yield* sql`SELECT n FROM streamed WHERE n < 0`.stream.pipe(Stream.runCollect), [])
        assert.strictEqual(yield* reason(Stream.runCollect(sql`SELECT * FROM nowhere`.stream)), "SqlSyntaxError")
      })
    )

    it.effect("keeps every text and binary it accepts (R-8)", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE texts (body TEXT)`
        const keeps = Effect.fnUntraced(function* (text: string) {
          yield* sql`DELETE FROM texts`
          yield* sql`INSERT INTO texts ${sql.insert({ body: text })}`
          assert.deepStrictEqual(yield* sql`SELECT body FROM texts`, [{ body: text }])
          assert.deepStrictEqual(yield* sql`SELECT body FROM texts WHERE body = ${text}`, [{ body: text }])
        })
        yield* Effect.forEach(
          [
            "",
            "__proto__",
            "'; DROP TABLE texts; --",
            "null",
            "1e400",
            "-0",
            "5",
            "\u0001\r\n\t\\u0000",
            "\u{1F600}é\uFFFF"
          ],
          keeps
        )
        yield* keeps("\u{1F600}".repeat(50_000))
        yield* sql`CREATE TABLE binaries (n INTEGER PRIMARY KEY, body ${sql.literal(binary(sql))} NOT NULL)`
        const bytes = Uint8Array.from({ length: 256 }, (_, n) => n)
        const parts = Arr.make(bytes, new Uint8Array(), bytes.subarray(10, 20))
        yield* sql`INSERT INTO binaries ${sql.insert(Arr.map(parts, (body, n) => ({ n, body })))}`
        const rows = yield* sql<{ body: Uint8Array }>`SELECT body FROM binaries ORDER BY n`
        assert.deepStrictEqual(
          rows.map(({ body }) => Array.from(body)),
          parts.map((part) => Array.from(part))
        )
      })
    )

    it.effect("makes U+FFFD of a lone surrogate, in silence", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE surrogates (body TEXT)`
        yield* sql`INSERT INTO surrogates ${sql.insert({ body: "a\uD800b" })}`
        assert.deepStrictEqual(yield* sql`SELECT body FROM surrogates`, [{ body: "a\uFFFDb" }])
      })
    )

    it.effect("stores undefined as NULL, and booleans and dates so that they can be asked for", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        const moment = sql.onDialectOrElse({ pg: () => "TIMESTAMPTZ", orElse: () => "TEXT" })
        yield* sql`CREATE TABLE converted (id TEXT, gone TEXT, flag BOOLEAN, at ${sql.literal(moment)}, real DOUBLE PRECISION)`
        const at = new Date(1_700_000_000_123)
        yield* sql`INSERT INTO converted ${sql.insert({ id: "a", gone: undefined, flag: true, at, real: -1.5e-9 })}`
        yield* sql`INSERT INTO converted ${sql.insert({ id: "b", gone: null, flag: false, at: new Date(0), real: 1e300 })}`
        assert.deepStrictEqual(
          yield* sql`SELECT id, gone, real FROM converted WHERE flag AND at = ${at} AND gone IS NULL`,
          [{ id: "a", gone: null, real: -1.5e-9 }]
        )
        assert.deepStrictEqual(yield* sql`SELECT id FROM converted WHERE flag = ${false} AND at < ${at}`, [{ id: "b" }])
      })
    )

    it.effect("keeps whole numbers whole, and never rounds one that a number cannot hold", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE numbers (id TEXT PRIMARY KEY, n BIGINT)`
        const big = 2n ** 63n - 1n
        yield* sql`INSERT INTO numbers ${sql.insert({ id: "small", n: 7 })}`
        yield* sql`INSERT INTO numbers ${sql.insert({ id: "safe", n: Number.MAX_SAFE_INTEGER })}`
        yield* sql`INSERT INTO numbers ${sql.insert({ id: "big", n: big })}`
        const read = (id: string) =>
          sql<{ n: unknown }>`SELECT n FROM numbers WHERE id = ${id}`.pipe(
            Effect.provideService(SqlClient.SafeIntegers, true),
            Effect.map((rows) => String(rows[0]?.n))
          )
        assert.strictEqual(yield* read("small"), "7")
        assert.strictEqual(yield* read("safe"), "9007199254740991")
        assert.strictEqual(yield* read("big"), String(big))
        const unsafe = yield* Effect.exit(sql<{ n: unknown }>`SELECT n FROM numbers WHERE id = 'big'`)
        if (Exit.isSuccess(unsafe)) assert.strictEqual(String(unsafe.value[0]?.n), String(big))
        else assert.isTrue(Option.isSome(Cause.findErrorOption(unsafe.cause)))
        assert.deepStrictEqual(yield* sql`SELECT ${"n="} || CAST(${5} AS INTEGER) AS text`, [{ text: "n=5" }])
      })
    )

    it.effect("tells what went wrong by the reason of the error", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE parents (id TEXT PRIMARY KEY, seq INTEGER UNIQUE)`
        yield* sql`CREATE TABLE children (run TEXT, seq INTEGER NOT NULL CHECK (seq >= 0), parent TEXT REFERENCES parents (id), PRIMARY KEY (run, seq))`
        const parent = (id: string, seq: number) => sql`INSERT INTO parents ${sql.insert({ id, seq })}`
        const child = (run: string, seq: unknown, parent: string) =>
          sql`INSERT INTO children ${sql.insert({ run, seq, parent })}`
        yield* parent("a", 1)
        yield* child("r", 0, "a")
        assert.strictEqual(yield* reason(parent("a", 2)), "UniqueViolation")
        assert.strictEqual(yield* reason(parent("b", 1)), "UniqueViolation")
        assert.strictEqual(yield* reason(child("r", 0, "a")), "UniqueViolation")
        assert.strictEqual(yield* reason(child("r", null, "a")), "ConstraintError")
        assert.strictEqual(yield* reason(child("r", -1, "a")), "ConstraintError")
        assert.strictEqual(yield* reason(child("r", 1, "nobody")), "ConstraintError")
        assert.strictEqual(yield* reason(sql`SELEC 1`), "SqlSyntaxError")
        assert.strictEqual(yield* reason(sql`SELECT * FROM nowhere`), "SqlSyntaxError")
        assert.strictEqual(yield* reason(sql`SELECT nothing FROM parents`), "SqlSyntaxError")
        const clash = yield* Effect.flip(parent("a", 3))
        assert.isFalse(clash.isRetryable)
        assert.isAbove(clash.message.length, 0)
        const rescued = parent("a", 4).pipe(
          Effect.as("new"),
          Effect.catchReason("SqlError", "UniqueViolation", () => Effect.succeed("taken"))
        )
        assert.strictEqual(yield* rescued, "taken")
      })
    )

    it.effect("refuses a text of several statements whole", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE several (n INTEGER)`
        assert.strictEqual(
          yield* reason(sql`INSERT INTO several VALUES (1); INSERT INTO several VALUES (2)`),
          "SqlSyntaxError"
        )
        assert.deepStrictEqual(yield* sql`SELECT n FROM several;  `, [])
      })
    )

    it.effect("refuses values no database has", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE refused (n INTEGER, at TEXT)`
        const insert = (n: unknown) => Effect.exit(sql`INSERT INTO refused (n) VALUES (${n})`)
        for (const value of [{ a: 1 }, Symbol("s"), () => 1, Number.NaN, new Date(Number.NaN), 2n ** 64n]) {
          assert.isTrue(Exit.isFailure(yield* insert(value)), typeof value)
        }
        assert.deepStrictEqual(yield* sql`SELECT n FROM refused`, [])
      })
    )

    it.effect("goes on after ALTER TABLE with statements prepared before", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE altered (a INTEGER)`
        yield* sql`INSERT INTO altered ${sql.insert({ a: 1 })}`
        const all = sql`SELECT * FROM altered`
        assert.deepStrictEqual(yield* all, [{ a: 1 }])
        yield* sql`ALTER TABLE altered ADD COLUMN b INTEGER`
        assert.deepStrictEqual(yield* sql`SELECT * FROM altered WHERE a = ${1}`, [{ a: 1, b: null }])
      })
    )

    const ids = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      const rows = yield* sql<{ id: string }>`SELECT id FROM tx ORDER BY id`
      return rows.map((row) => row.id)
    })
    const insert = Effect.fnUntraced(function* (id: string) {
      const sql = yield* SqlClient.SqlClient
      return yield* sql`INSERT INTO tx ${sql.insert({ id })}`
    })
    const empty = Effect.gen(function* () {
      const sql = yield* SqlClient.SqlClient
      yield* sql`CREATE TABLE IF NOT EXISTS tx (id TEXT PRIMARY KEY)`
      yield* sql`DELETE FROM tx`
      return sql
    })

    it.effect("transactions keep nothing of what failed, died or was interrupted", () =>
      Effect.gen(function* () {
        const sql = yield* empty
        yield* sql.withTransaction(insert("kept"))
        const failed = yield* Effect.exit(sql.withTransaction(Effect.andThen(insert("failed"), Effect.fail("no"))))
        assert.deepStrictEqual(failed, Exit.fail("no"))
        yield* Effect.exit(sql.withTransaction(Effect.andThen(insert("died"), Effect.die("bug"))))
        const inside = yield* Deferred.make<void>()
        const fiber = yield* Effect.forkChild(
          sql.withTransaction(
            insert("interrupted").pipe(
              Effect.andThen(Deferred.succeed(inside, undefined)),
              Effect.andThen(Effect.never)
            )
          )
        )
        yield* Deferred.await(inside)
        yield* Fiber.interrupt(fiber)
        assert.deepStrictEqual(yield* ids, ["kept"])
      })
    )

    it.effect("transactions nest: an inner one that fails takes only its own work along", () =>
      Effect.gen(function* () {
        const sql = yield* empty
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* insert("outer")
            yield* Effect.exit(sql.withTransaction(Effect.andThen(insert("inner"), Effect.fail("no"))))
            yield* sql.withTransaction(insert("second"))
            // A statement that fails inside a savepoint leaves the transaction usable.
            assert.strictEqual(yield* reason(sql.withTransaction(insert("outer"))), "UniqueViolation")
            yield* insert("last")
          })
        )
        assert.deepStrictEqual(yield* ids, ["last", "outer", "second"])
      })
    )

    it.effect("transactions run what waits for the commit after it, and never after a rollback", () =>
      Effect.gen(function* () {
        const sql = yield* empty
        const heard: Array<string> = []
        const note = (word: string) => sql.afterCommit(Effect.sync(() => void heard.push(word)))
        yield* sql.withTransaction(
          Effect.gen(function* () {
            yield* insert("a")
            yield* note("committed")
            heard.push("inside")
          })
        )
        yield* Effect.exit(sql.withTransaction(Effect.andThen(note("rolled back"), Effect.fail("no"))))
        assert.deepStrictEqual(heard, ["inside", "committed"])
      })
    )

    it.effect("transactions lose no update when 50 read and then write at once", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE counter (n INTEGER NOT NULL)`
        yield* sql`INSERT INTO counter VALUES (0)`
        const lock = sql.onDialectOrElse({ pg: () => "FOR UPDATE", orElse: () => "" })
        const increment = Effect.gen(function* () {
          const [row] = yield* sql<{ n: number }>`SELECT n FROM counter ${sql.literal(lock)}`
          yield* Effect.yieldNow
          yield* sql`UPDATE counter SET n = ${(row?.n ?? 0) + 1}`
        })
        yield* Effect.all(
          Array.from({ length: 50 }, () => sql.withTransaction(increment)),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(yield* sql`SELECT n FROM counter`, [{ n: 50 }])
      })
    )

    it.effect("transactions let exactly one of many take the next revision (DR-6)", () =>
      Effect.gen(function* () {
        const sql = yield* SqlClient.SqlClient
        yield* sql`CREATE TABLE revisions (run TEXT, revision INTEGER, worker INTEGER, PRIMARY KEY (run, revision))`
        const attempts = yield* Effect.all(
          Array.from({ length: 20 }, (_, worker) =>
            sql.withTransaction(sql`INSERT INTO revisions ${sql.insert({ run: "r", revision: 1, worker })}`).pipe(
              Effect.as("won"),
              Effect.catchReason("SqlError", "UniqueViolation", () => Effect.succeed("lost"))
            )
          ),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(attempts.toSorted(), [...Array(19).fill("lost"), "won"])
      })
    )

    it.effect("carries migrations, which run once", () =>
      Effect.gen(function* () {
        const migrate = Migrator.make({})({
          table: "test_migrations",
          loader: Migrator.fromRecord({
            "0001_things": SqlClient.SqlClient.use((sql) => sql`CREATE TABLE things (id TEXT PRIMARY KEY)`),
            "0002_filled": SqlClient.SqlClient.use((sql) => sql`INSERT INTO things VALUES ('first')`)
          })
        })
        assert.deepStrictEqual(yield* migrate, [
          [1, "things"],
          [2, "filled"]
        ])
        assert.deepStrictEqual(yield* migrate, [])
        const sql = yield* SqlClient.SqlClient
        assert.deepStrictEqual(yield* sql`SELECT id FROM things`, [{ id: "first" }])
      })
    )
  })
}

const binary = (sql: SqlClient.SqlClient): string => sql.onDialectOrElse({ pg: () => "BYTEA", orElse: () => "BLOB" })
