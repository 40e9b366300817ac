import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Latch, Layer, Option, Redacted, Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { RunStore } from "kernai"
import { PgRunStore, SqlRunStore } from "../../src/sql/index.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import * as Postgres from "../support/postgres.ts"
import { loads, open, put, putAll, tagOf } from "../support/runStore.ts"

/** New runs. */
const begun = (prefix: string, count: number) =>
  Array.from({ length: count }, (_, number) => Journal.begin(`${prefix}/${number}`))

const next = (run: Journal.Writer, workerId = "worker-1") => run.commit("resume", [], { resumed: true }, { workerId })

/** Begins all of them before the first ends. */
const atOnce = <A, E>(effects: ReadonlyArray<Effect.Effect<A, E>>) =>
  Effect.all(effects.map(Effect.exit), { concurrency: "unbounded" })

/** A store on a client of the host, and that client. */
const onHost = Effect.gen(function* () {
  const sql = Context.get(yield* Layer.build(Postgres.client(yield* Postgres.database)), SqlClient.SqlClient)
  const store = yield* open(Layer.provide(SqlRunStore.layer(), Layer.succeed(SqlClient.SqlClient, sql)))
  return {
    sql,
    store,
    transactions: Effect.map(sql`SELECT DISTINCT xmin::text FROM kernai_journal`, ({ length }) => length)
  }
})

/** The database refuses texts with this word. */
const refuse = (sql: SqlClient.SqlClient, table: string, word: string) =>
  Effect.andThen(
    sql.unsafe(`CREATE FUNCTION refuse_${word}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.body LIKE '%${word}%' THEN RAISE EXCEPTION 'no ${word}'; END IF; RETURN NEW; END $$`),
    sql.unsafe(`CREATE TRIGGER refuse BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION refuse_${word}()`)
  )

const revisionOf = (store: RunStore.RunStoreShape, runId: string) =>
  Effect.map(store.head(runId), (head) => Option.getOrUndefined(head)?.revision)

describe.skipIf(!Postgres.available)("appends to PostgreSQL", () => {
  it.effect(
    "of many runs at once are stored in one transaction: starts, turns and ends",
    () =>
      Effect.gen(function* () {
        const { store, transactions } = yield* onHost
        const [ending = Journal.begin(""), ...runs] = begun("run", 20)
        yield* atOnce([ending, ...runs].map((run) => put(store, [run.last()])))
        assert.strictEqual(yield* transactions, 1)
        const fresh = Journal.begin("fresh")
        const appended = [
          putAll(store, Journal.finish(ending)),
          put(store, [fresh.last()]),
          ...runs.map((run) => put(store, [next(run)]))
        ]
        assert.isTrue((yield* atOnce(appended)).every(Exit.isSuccess))
        assert.strictEqual(yield* transactions, 2)
        for (const run of [fresh, ending, ...runs]) yield* loads(store, run.last())
        assert.lengthOf(yield* store.list({ status: ["completed"], search: "light thread" }), 1)
      }),
    30_000
  )

  it.effect(
    "stores the other rows when the database refuses some, and nothing of the refused runs",
    () =>
      Effect.gen(function* () {
        const { sql, store } = yield* onHost
        yield* Effect.all([refuse(sql, "kernai_journal", "poison"), refuse(sql, "kernai_words", "venom")])
        const runs = begun("run", 9)
        yield* atOnce(runs.map((run) => put(store, [run.last()])))
        const exits = yield* atOnce([
          put(store, [Journal.begin("bad/1", { input: "poison" }).last()]),
          put(store, [Journal.begin("bad/2", { input: "venom" }).last()]),
          ...runs.map((run) => put(store, [next(run)])),
          ...begun("new", 3).map((run) => put(store, [run.last()]))
        ])
        assert.deepStrictEqual(exits.map(Exit.isSuccess), [false, false, ...Array.from({ length: 12 }, () => true)])
        assert.lengthOf(yield* store.list(), 12)
        assert.lengthOf(yield* sql`SELECT 1 FROM kernai_journal`, 21)
      }),
    30_000
  )

  it.effect(
    "stores no run whose first record is refused",
    () =>
      Effect.gen(function* () {
        const { sql, store } = yield* onHost
        const [first = Journal.begin(""), second = Journal.begin("")] = begun("run", 2)
        yield* put(store, [first.last()])
        yield* sql`UPDATE kernai_journal SET entry = entry + (CAST(1 AS BIGINT) << 32)`
        assert.strictEqual(yield* tagOf(put(store, [second.last()])), "StoreError")
        assert.lengthOf(yield* sql`SELECT 1 FROM kernai_runs`, 1)
      }),
    30_000
  )

  it.effect(
    "are part of a transaction of the host, which continues when an append in it fails",
    () =>
      Effect.gen(function* () {
        const { sql, store } = yield* onHost
        yield* refuse(sql, "kernai_journal", "poison")
        const [inside = Journal.begin(""), outside = Journal.begin("")] = begun("run", 2)
        yield* put(store, [inside.last()])
        const commit = next(inside)
        const undone = Effect.gen(function* () {
          yield* put(store, [commit, Journal.begin("new").last()])
          assert.strictEqual(yield* revisionOf(store, "run/0"), 2)
          return yield* Effect.fail("no")
        })
        const exits = yield* atOnce([sql.withTransaction(undone), put(store, [outside.last()])])
        assert.deepStrictEqual(exits.map(Exit.isSuccess), [false, true])
        assert.deepStrictEqual(yield* Effect.forEach(["run/0", "run/1", "new"], (runId) => revisionOf(store, runId)), [
          1,
          1,
          undefined
        ])
        const bad = Journal.begin("bad", { input: "poison" }).last()
        yield* sql.withTransaction(
          Effect.gen(function* () {
            assert.strictEqual(yield* tagOf(put(store, [bad])), "StoreError")
            yield* put(store, [commit])
          })
        )
        assert.strictEqual(yield* revisionOf(store, "run/0"), 2)
      }),
    30_000
  )

  it.live(
    "are not delayed by an append that waits for a transaction, nor by the interruption of its caller",
    () =>
      Effect.gen(function* () {
        const { sql, store } = yield* onHost
        const [held = Journal.begin(""), free = Journal.begin(""), gone = Journal.begin("")] = begun("run", 3)
        yield* put(store, [held.last(), free.last(), gone.last()])
        const commit = next(held)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const appended = yield* Latch.make()
            const inTransaction = yield* Effect.forkChild(
              sql.withTransaction(Effect.andThen(put(store, [commit]), Effect.andThen(appended.open, Effect.never)))
            )
            yield* appended.await
            const waiting = yield* Effect.forkChild(put(store, [commit]), { startImmediately: true })
            const left = yield* Effect.forkChild(put(store, [next(gone)]), { startImmediately: true })
            const neighbour = yield* Effect.forkChild(put(store, [next(free)]), { startImmediately: true })
            yield* Fiber.interrupt(left)
            yield* Fiber.join(neighbour)
            yield* put(store, [next(free)])
            yield* Fiber.interrupt(waiting)
            yield* Fiber.interrupt(inTransaction)
          })
        )
        assert.strictEqual(yield* revisionOf(store, "run/0"), 1)
        assert.strictEqual(yield* revisionOf(store, "run/1"), 3)
        yield* put(store, [commit])
      }),
    30_000
  )

  it.effect(
    "succeed for one of two stores at each revision, however they are grouped",
    () =>
      Effect.gen(function* () {
        const { url } = yield* Postgres.database
        const layer = PgRunStore.layer({ url: Redacted.make(url), maxConnections: 3 })
        const [one, two] = [yield* open(layer), yield* open(layer)]
        const runs = begun("run", 40)
        const won: Array<string> = []
        const push = (store: RunStore.RunStoreShape, workerId: string, some: ReadonlyArray<Journal.Writer>) =>
          some.map((run) => {
            const { runId } = run.last().state
            const mine = next(Journal.begin(runId), workerId)
            return Effect.map(put(store, [mine]), () => won.push(`${runId} ${workerId}`))
          })
        yield* atOnce(runs.map((run) => put(one, [run.last()])))
        const exits = yield* atOnce([...push(one, "a", runs), ...push(two, "b", runs.toReversed())])
        assert.lengthOf(exits.filter(Exit.isSuccess), runs.length)
        const stored = yield* Effect.forEach(runs, (run) => {
          const { runId } = run.last().state
          return Effect.map(Stream.runCollect(one.read(runId, 1)), (records) =>
            records.map(({ workerId }) => `${runId} ${workerId}`)
          )
        })
        assert.sameMembers(won, stored.flat())
      }),
    30_000
  )

  it.live(
    "are stored when the store closes, and nothing is left behind",
    () =>
      Effect.gen(function* () {
        const place = yield* Postgres.database
        const layer = PgRunStore.layer({ url: Redacted.make(place.url), maxConnections: 3 })
        const its = yield* Scope.make()
        const store = Context.get(yield* Layer.buildWithScope(layer, its), RunStore.RunStore)
        const runs = begun("run", 300)
        const offered = yield* Effect.forkChild(atOnce(runs.map((run) => put(store, [run.last()]))), {
          startImmediately: true
        })
        yield* Scope.close(its, Exit.void)
        const exits = yield* Fiber.join(offered)
        assert.strictEqual(yield* tagOf(put(store, [Journal.begin("late").last()])), "StoreError")
        const connected = SqlClient.SqlClient.use(
          (sql) => sql`SELECT 1 FROM pg_stat_activity WHERE application_name = 'kernai' AND datname = ${place.database}`
        )
        yield* Effect.provide(
          Effect.repeat(connected, { until: (found) => found.length === 0 }),
          Postgres.client(place)
        )
        const later = yield* open(layer)
        const stored = new Set((yield* later.list({ limit: 1_000 })).map(({ runId }) => runId))
        for (const [number, exit] of exits.entries())
          if (Exit.isSuccess(exit)) assert.isTrue(stored.has(`run/${number}`))
        assert.isFalse(stored.has("late"))
      }),
    30_000
  )

  it.effect(
    "do not mix the heads that are read at once, also inside a transaction",
    () =>
      Effect.gen(function* () {
        const { sql, store } = yield* onHost
        const runs = begun("run", 20)
        yield* atOnce(runs.map((run) => put(store, [run.last()])))
        yield* sql`UPDATE kernai_journal SET detail = '{' WHERE entry >> 32 = (SELECT run FROM kernai_runs WHERE id = 'run/7')`
        const asked = ["none", "run/7", "run/3", "run/3", ...runs.map((run) => run.last().state.runId)]
        const exits = yield* atOnce(asked.map((runId) => revisionOf(store, runId)))
        assert.deepStrictEqual(
          exits.map((exit, index) => [asked[index], Exit.isSuccess(exit) ? exit.value : "failed"]),
          asked.map((runId) => [runId, runId === "none" ? undefined : runId === "run/7" ? "failed" : 1])
        )
        const [first = Journal.begin("")] = runs
        const inside = sql.withTransaction(
          Effect.andThen(put(store, [next(first)]), Effect.flatMap(revisionOf(store, "run/0"), Effect.fail))
        )
        assert.strictEqual(yield* Effect.flip(inside), 2)
        assert.strictEqual(yield* revisionOf(store, "run/0"), 1)
      }),
    30_000
  )
})
