/** The locks of shards in PostgreSQL: kept when connections are lost, and given back at once. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { ShardId, Sharding } from "effect/cluster"
import { SqlClient, Statement } from "effect/sql"
import { ClusterNode } from "kernai/cluster"
import * as Postgres from "../support/postgres.ts"
import { freePort, until } from "./sockets.ts"

const shards = Array.from({ length: 300 }, (_, number) => ShardId.make("default", number + 1))

/** Starts a node without runs. */
const node = Effect.fnUntraced(function* (database: Postgres.Database) {
  const options = { host: "127.0.0.1", port: yield* freePort, joinDelay: 0, lockExpiration: "15 seconds" } as const
  const services = yield* Layer.build(
    Layer.fresh(ClusterNode.layer(options)).pipe(Layer.provide(Layer.fresh(Postgres.client(database))))
  )
  const { hasShardId } = Context.get(services, Sharding.Sharding)
  return { owned: Effect.sync(() => shards.filter(hasShardId).length) }
})

describe.skipIf(!Postgres.available)("the locks of shards", () => {
  it.live("are kept by a runner whose connections to the database are cut", () =>
    Effect.gen(function* () {
      const database = yield* Postgres.database
      const { owned } = yield* node(database)
      yield* until(Effect.map(owned, (count) => count === 300))
      yield* SqlClient.SqlClient.use(
        (sql) => sql`
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE pid <> pg_backend_pid() AND datname = current_database()`
      ).pipe(Effect.provide(Postgres.client(database)))
      // Longer than two renewals.
      for (let passed = 0; passed < 100; passed++) {
        yield* Effect.sleep("100 millis")
        assert.strictEqual(yield* owned, 300)
      }
    }).pipe(Effect.scoped)
  )

  it.live("are kept by a runner whose database takes longer for a renewal than from one to the next", () =>
    Effect.gen(function* () {
      const database = yield* Postgres.database
      const { owned } = yield* node(database)
      yield* until(Effect.map(owned, (count) => count === 300))
      const sql = Context.get(yield* Layer.build(Layer.fresh(Postgres.client(database))), SqlClient.SqlClient)
      const renewedAt = Effect.map(
        sql<{ at: string }>`SELECT max(acquired_at)::text AS at FROM cluster_locks`,
        (rows) => rows[0]?.at
      )
      const before = yield* renewedAt
      yield* until(Effect.map(renewedAt, (at) => at !== before))
      // They are renewed every 4.5 seconds: the next renewal waits for 5.5.
      yield* Effect.sleep("3 seconds")
      const busy = yield* sql`LOCK TABLE cluster_locks IN EXCLUSIVE MODE`.pipe(
        Effect.andThen(Effect.sleep("7 seconds")),
        sql.withTransaction,
        Effect.forkChild
      )
      while (busy.pollUnsafe() === undefined) {
        yield* Effect.sleep("100 millis")
        assert.strictEqual(yield* owned, 300)
      }
    }).pipe(Effect.scoped)
  )

  it.live("are given back by one statement when another runner joins", () =>
    Effect.gen(function* () {
      const database = yield* Postgres.database
      const given: Array<string> = []
      const first = yield* node(database).pipe(
        Effect.provideService(Statement.CurrentTransformer, (statement) =>
          Effect.sync(() => {
            const [text] = statement.compile()
            if (/^\s*DELETE FROM "?cluster_locks|pg_advisory_unlock\(/.test(text)) given.push(text)
            return statement
          })
        )
      )
      yield* until(Effect.map(first.owned, (count) => count === 300))
      const second = yield* node(database)
      yield* until(Effect.map(Effect.all([first.owned, second.owned]), ([a, b]) => a + b === 300 && b > 0))
      assert.isAtLeast(given.length, 1)
      assert.isAtMost(given.length, 10)
    }).pipe(Effect.scoped)
  )
})
