import { afterAll, assert, describe, it } from "@effect/vitest"
import { Cause, ConfigProvider, Context, Effect, Exit, Fiber, Layer, Option, Redacted, Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import * as PgClient from "@effect/sql-pg/PgClient"
import { ChatHistory, type KernelError, Limits, MediaStore, Memory, RunStore } from "kernai"
import { PgRunStore, SqlChatHistory, SqlMediaStore, SqlMemory, SqlRunStore } from "../../src/sql/index.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import * as Postgres from "../support/postgres.ts"
import { awaiting, loads, open, put, suite } from "../support/runStore.ts"
import { wayTo } from "../support/silence.ts"

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const at = (url: string, pollInterval: PgRunStore.Options["pollInterval"] = "1 hour") =>
  open(PgRunStore.layer({ url: Redacted.make(url), maxConnections: 4, pollInterval }))

/** Two clients beside a store: within a transaction, one is told of all activity as it was at its first question. */
const besides = (to: Parameters<typeof Postgres.client>[0]) => {
  const client = Effect.map(Layer.build(Postgres.client(to)), (context) => Context.get(context, SqlClient.SqlClient))
  return Effect.all([client, client])
}

describe.skipIf(!Postgres.available)("PgRunStore", () => {
  const database = Effect.runSync(Effect.cached(Scope.provide(Postgres.database, scope)))
  suite(Effect.flatMap(database, ({ url }) => at(url)))

  it.live(
    "rejects a run of a newer format, and says what to do (R-9)",
    () =>
      Effect.gen(function* () {
        const { database: name, url, ...server } = yield* Postgres.database
        const run = Journal.begin("run")
        yield* put(yield* at(url), [run.last()])
        const [client] = yield* besides({ ...server, database: name })
        yield* client`UPDATE kernai_runs SET format = 4`
        const refusal = yield* Effect.flip((yield* at(url)).load("run"))
        assert.strictEqual(refusal.reason, "format")
        assert.match(refusal.message, /format 4 is newer than 3, .*; update kernai/)
      }),
    30_000
  )

  it.live(
    "finds the deadlines of runs that waited before their tables had them",
    () =>
      Effect.gen(function* () {
        const { database: name, url, ...server } = yield* Postgres.database
        const store = yield* at(url)
        for (const metadata of awaiting) {
          const run = Journal.begin(`run${awaiting.indexOf(metadata)}`)
          yield* put(store, [run.last(), run.commit("pause", [{ type: "paused", reason: "asked", metadata }])])
        }
        const [client] = yield* besides({ ...server, database: name })
        yield* client`DROP TRIGGER kernai_runs_due ON kernai_runs`
        yield* client`DROP TRIGGER kernai_words_changed ON kernai_words`
        yield* client`DROP TABLE kernai_unindexed, kernai_search_blocks, kernai_search_slices`
        for (const column of ["due_at", "model", "pace", "tokens", "cost"]) {
          yield* client`ALTER TABLE kernai_runs DROP COLUMN ${client(column)}`
        }
        yield* client`DELETE FROM kernai_migrations WHERE migration_id >= 7`
        const due = yield* Effect.flatMap(at(url), (store) => store.list({ order: "due" }))
        assert.deepStrictEqual(
          due.map(({ runId }) => runId),
          ["run1", "run0"]
        )
      }),
    30_000
  )

  it.live(
    "claims a run for exactly the length of the lease, however slowly the statement runs",
    () =>
      Effect.gen(function* () {
        const { database: name, url, ...server } = yield* Postgres.database
        const store = yield* at(url)
        yield* put(store, [Journal.begin("run").last()])
        const [client] = yield* besides({ ...server, database: name })
        for (let claim = 0; claim < 50; claim++) {
          yield* store.acquire("run", { workerId: `worker ${claim}`, lease: "1 minute" })
          assert.deepStrictEqual(yield* client`SELECT expires_at - since AS length FROM kernai_runs`, [
            { length: 60_000 }
          ])
          yield* store.release("run", `worker ${claim}`)
        }
      }),
    30_000
  )

  it.live(
    "receives notifications again after it lost its listening connection",
    () =>
      Effect.gen(function* () {
        const { database: name, url, ...server } = yield* Postgres.database
        const [one, two] = [yield* at(url, "20 millis"), yield* at(url)]
        const run = Journal.begin("run")
        yield* put(one, [run.last()])
        const seen: Array<number> = []
        const follower = yield* Effect.forkChild(
          Stream.runForEach(Stream.take(one.tail("run"), 11), ({ revision }) => Effect.sync(() => seen.push(revision))),
          { startImmediately: true }
        )
        yield* Effect.provide(
          SqlClient.SqlClient.use(
            (sql) =>
              sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name} AND query LIKE 'LISTEN%'`
          ),
          Postgres.client({ ...server, database: "postgres" })
        )
        yield* put(two, Journal.turn(run))
        yield* Fiber.join(follower)
        assert.deepStrictEqual(
          seen,
          Array.from({ length: 11 }, (_, index) => index + 1)
        )
        yield* loads(one, run.last())
      }),
    30_000
  )

  it.live(
    "listens again after it lost its listening connection, without polling",
    () =>
      Effect.gen(function* () {
        const { database: name, url, ...server } = yield* Postgres.database
        const [one, two] = [yield* at(url), yield* at(url)]
        const run = Journal.begin("run")
        yield* put(one, [run.last()])
        const follower = yield* Effect.forkChild(Stream.runDrain(Stream.take(one.tail("run"), 11)), {
          startImmediately: true
        })
        yield* Effect.gen(function* () {
          const sql = yield* SqlClient.SqlClient
          const listening = sql`SELECT pid FROM pg_stat_activity WHERE datname = ${name} AND query LIKE 'LISTEN%'`
          yield* Effect.forEach(yield* listening, ({ pid }) => sql`SELECT pg_terminate_backend(${pid}, 1000)`)
          yield* Effect.repeat(listening, { until: (found) => found.length === 2 })
        }).pipe(Effect.provide(Postgres.client({ ...server, database: "postgres" })))
        yield* put(two, Journal.turn(run))
        yield* Fiber.join(follower)
      }),
    30_000
  )

  it.live(
    "lets resting workers look once it listens again, as announcements may be lost",
    () =>
      Effect.gen(function* () {
        const { database: name, url, ...server } = yield* Postgres.database
        const { changes } = yield* at(url)
        const changed = yield* Effect.forkChild(changes?.next ?? Effect.never, { startImmediately: true })
        const [admin] = yield* besides({ ...server, database: "postgres" })
        yield* admin`
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name} AND query LIKE 'LISTEN%'`
        yield* Fiber.join(changed)
      }),
    30_000
  )

  it.live(
    "connects with the password in PGPASSWORD where its URL has none",
    () =>
      Effect.gen(function* () {
        const { database: name, host, password, port, username } = yield* Postgres.database
        const bare = `postgres://${username}@${host}:${port}/${name}`
        const given = (value: string) => ConfigProvider.layer(ConfigProvider.fromUnknown({ PGPASSWORD: value }))
        const store = yield* Effect.provide(at(bare), given(password))
        yield* put(store, [Journal.begin("run").last()])
        assert.lengthOf(yield* store.list(), 1)
        const refused = yield* Effect.flip(Effect.provide(at(bare), given("wrong/%")))
        assert.strictEqual(refused._tag, "StoreError")
        assert.notInclude(refused.message, "wrong")
      }),
    30_000
  )

  it.live(
    "announces every run with new records once they are committed, also those of its last moment",
    () =>
      Effect.gen(function* () {
        const database = yield* Postgres.database
        const client = Context.get(yield* Layer.build(Postgres.client(database)), PgClient.PgClient)
        const announced: Array<string> = []
        yield* Effect.forkScoped(
          Stream.runForEach(Stream.fromQueue(yield* client.listen("kernai_runs")), ({ payload }) =>
            Effect.sync(() => announced.push(payload))
          )
        )
        const ids = Array.from({ length: 40 }, (_, index) => `run/${index}`)
        const its = yield* Scope.make()
        const layer = Layer.provide(SqlRunStore.layer(), Layer.succeed(SqlClient.SqlClient, client))
        const store = Context.get(yield* Layer.buildWithScope(layer, its), RunStore.RunStore)
        const undone = client.withTransaction(
          Effect.andThen(put(store, [Journal.begin("undone").last()]), Effect.fail("no"))
        )
        assert.strictEqual(yield* Effect.flip(undone), "no")
        yield* Effect.forEach(ids, (id) => put(store, [Journal.begin(id).last()]), { concurrency: 8 })
        yield* Scope.close(its, Exit.void)
        yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => new Set(announced).size === ids.length })
        assert.sameMembers([...new Set(announced)], ids)
      }),
    30_000
  )

  it.live(
    "reports a connection lost in a transaction as a transient failure, and continues (R-6)",
    () =>
      Effect.gen(function* () {
        const { database: name, url, ...server } = yield* Postgres.database
        const store = yield* at(url)
        const [admin, watcher] = yield* besides({ ...server, database: name })
        const killWhoWaits = Effect.repeat(
          watcher`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name} AND wait_event_type = 'Lock'`,
          { until: (killed) => killed.length > 0 }
        )
        /** The connection is lost when the transaction has done a part of its work. */
        const lost = Effect.fnUntraced(function* <A, E>(operation: Effect.Effect<A, E>, table = "kernai_words") {
          const exit = yield* admin.withTransaction(
            Effect.gen(function* () {
              yield* admin`LOCK TABLE ${admin(table)} IN ACCESS EXCLUSIVE MODE`
              const fiber = yield* Effect.forkChild(Effect.exit(operation), { startImmediately: true })
              yield* killWhoWaits
              return yield* Fiber.join(fiber)
            })
          )
          const error = Exit.isFailure(exit) ? Option.getOrUndefined(Cause.findErrorOption(exit.cause)) : undefined
          assert.include(String(JSON.stringify(error)), '"reason":"unavailable"')
          return yield* operation
        })
        const run = Journal.begin("run")
        yield* lost(put(store, [run.last()]))
        yield* put(store, Journal.turn(run))
        const [last, ...others] = Journal.finish(run).toReversed()
        yield* put(store, others.toReversed())
        yield* lost(put(store, last === undefined ? [] : [last]))
        yield* loads(store, run.last())
        yield* lost(store.remove(["run"]))
        assert.deepStrictEqual(yield* store.list(), [])
        yield* lost(Effect.scoped(at(url)), "kernai_migrations")
      }),
    30_000
  )

  it.live(
    "returns its connection and releases its locks when it is interrupted in a transaction (R-17)",
    () =>
      Effect.gen(function* () {
        const { database: name, url, ...server } = yield* Postgres.database
        const store = yield* at(url)
        const [admin, watcher] = yield* besides({ ...server, database: name })
        const others = watcher<{ state: string; wait: string | null }>`
          SELECT state, wait_event_type AS wait FROM pg_stat_activity
          WHERE datname = ${name} AND pid <> pg_backend_pid() AND query NOT LIKE '%LOCK TABLE kernai_words%'`
        const { record, state } = Journal.begin("run").last()
        yield* admin.withTransaction(
          Effect.gen(function* () {
            yield* admin`LOCK TABLE kernai_words IN ACCESS EXCLUSIVE MODE`
            const fiber = yield* Effect.forkChild(store.append([record], state), { startImmediately: true })
            yield* Effect.repeat(others, { until: (found) => found.some(({ wait }) => wait === "Lock") })
            yield* Fiber.interrupt(fiber)
            assert.deepStrictEqual(
              (yield* others).filter(({ state }) => state !== "idle"),
              []
            )
          })
        )
        yield* put(store, [{ record, state }])
      }),
    30_000
  )

  it.live(
    "does not hang on a connection that silently stopped, nor block other stores or its own close (F2, R-17)",
    () =>
      Effect.gen(function* () {
        const { port, url: direct } = yield* Postgres.database
        const way = yield* wayTo(port)
        const url = Redacted.make(direct.replace(`:${port}/`, `:${way.port}/`))
        const all = yield* Layer.build(
          Layer.mergeAll(
            PgRunStore.layer({ url, maxConnections: 2 }),
            SqlChatHistory.layerPg("c", { url, maxConnections: 1 }),
            SqlMemory.layerPg({ url, maxConnections: 1 }),
            SqlMediaStore.layerPg({ url, maxConnections: 1 })
          )
        )
        const run = Journal.begin("run")
        yield* put(Context.get(all, RunStore.RunStore), [run.last()])
        // Three that read, and one that begins a transaction.
        const ask = (
          name: string
        ): ReadonlyArray<Effect.Effect<unknown, RunStore.StoreError | KernelError.LimitExceeded>> => [
          Context.get(all, RunStore.RunStore).load("run"),
          Context.get(all, ChatHistory.ChatHistory).toArray,
          Context.get(all, Memory.Memory).store({ content: name }),
          Context.get(all, MediaStore.MediaStore).size
        ]
        yield* Effect.all(ask("before"), { concurrency: "unbounded" })
        way.silence()
        const refused = yield* Effect.all(
          ask("meanwhile").map((asked) => Effect.flip(Effect.timeout(asked, "20 seconds"))),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(
          refused.map((error) => error._tag === "StoreError" && error.reason),
          ["timeout", "timeout", "timeout", "timeout"]
        )
        yield* Effect.all(ask("after"), { concurrency: "unbounded" })
      }).pipe(Effect.scoped, Effect.provideService(Limits.Limits, Limits.make({ appendTimeout: 100 }))),
    60_000
  )

  it.live(
    "abandons a transaction whose BEGIN came too late, and changes nothing in it (R-6)",
    () =>
      Effect.gen(function* () {
        const { port, url } = yield* Postgres.database
        const way = yield* wayTo(port)
        const [appendTimeout, waited] = [200, 1200]
        const limits = Limits.make({ appendTimeout })
        // It creates the tables, which takes longer than the limit of the other store allows on a busy machine.
        const elsewhere = yield* at(url)
        const store = yield* Effect.provideService(at(url.replace(`:${port}/`, `:${way.port}/`)), Limits.Limits, limits)
        const run = Journal.begin("run")
        yield* put(store, [run.last()])
        for (const other of ["a", "b", "c"]) {
          const kept = Journal.begin(other).last()
          yield* put(elsewhere, [kept])
          // It comes just after nobody waits for it any more.
          way.delay("BEGIN\0", waited + 1)
          const refused = yield* Effect.flip(store.remove([other]))
          assert.strictEqual(refused.reason, "timeout")
          yield* loads(elsewhere, kept)
          yield* put(store, Journal.turn(run))
          yield* loads(elsewhere, run.last())
        }
      }),
    30_000
  )

  it.effect("does not reveal the password of a server it cannot reach (S-7)", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(at("postgres://user:sk-SECRET@127.0.0.1:1/none"))
      assert.deepStrictEqual([error._tag, error.reason], ["StoreError", "unavailable"])
      assert.notInclude(JSON.stringify(error) + error.message, "sk-SECRET")
    })
  )

  it.live(
    "reports why a server rejects a connection or a statement",
    () =>
      Effect.gen(function* () {
        const { database: name, password, url, ...server } = yield* Postgres.database
        const refusalOf = (asked: Effect.Effect<unknown, Effect.Error<ReturnType<RunStore.RunStoreShape["append"]>>>) =>
          Effect.map(Effect.flip(asked), ({ message }) => message)
        const store = yield* at(url)
        assert.include(yield* refusalOf(Effect.scoped(at(url.replace(password, "wrong")))), "authentication failed")
        assert.include(yield* refusalOf(Effect.scoped(at(`${url}_none`))), `"${name}_none" does not exist`)
        assert.include(yield* refusalOf(Effect.scoped(at("postgres://user@127.0.0.1:1/none"))), "ECONNREFUSED")
        yield* Effect.provide(
          SqlClient.SqlClient.use((sql) =>
            Effect.andThen(
              sql.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = on`),
              sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name}`
            )
          ),
          Postgres.client({ ...server, password, database: "postgres" })
        )
        const { record, state } = Journal.begin("run").last()
        // The connections are noticed to be gone one by one.
        const refused = Effect.repeat(refusalOf(store.append([record], state)), {
          until: (message) => message.includes("read-only"),
          times: 50
        })
        assert.include(yield* refused, "read-only transaction")
      }),
    30_000
  )

  it.effect(
    "works on a client of the host",
    () =>
      Effect.gen(function* () {
        const client = Postgres.client(yield* Postgres.database)
        const store = yield* open(Layer.provide(SqlRunStore.layer(), client))
        const run = Journal.begin("run")
        yield* put(store, [run.last(), ...Journal.turn(run), ...Journal.finish(run)])
        yield* loads(store, run.last())
      }),
    30_000
  )
})
