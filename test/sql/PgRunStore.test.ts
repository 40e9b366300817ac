import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Redacted, Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { PgRunStore, SqlRunStore } from "../../src/sql/index.ts"
import * as Journal from "../../src/testing/internal/journal.ts"
import * as Postgres from "../support/postgres.ts"
import { loads, open, put, suite } from "../support/runStore.ts"

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const at = (url: string, pollInterval: PgRunStore.Options["pollInterval"] = "1 hour") =>
  open(PgRunStore.layer({ url: Redacted.make(url), maxConnections: 4, pollInterval }))

describe.skipIf(!Postgres.available)("PgRunStore", () => {
  const database = Effect.runSync(Effect.cached(Scope.provide(Postgres.database, scope)))
  suite(Effect.flatMap(database, ({ url }) => at(url)))

  it.live(
    "hears again of others' commits after it lost the connection that listens",
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

  it.effect("keeps the password of a server it cannot reach to itself (S-7)", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(at("postgres://user:sk-SECRET@127.0.0.1:1/none"))
      assert.deepStrictEqual([error._tag, error.reason], ["StoreError", "unavailable"])
      assert.notInclude(JSON.stringify(error) + error.message, "sk-SECRET")
    })
  )

  it.effect(
    "works on a client of the host's as well",
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
