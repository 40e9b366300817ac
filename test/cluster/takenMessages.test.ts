/** The messages of shards that a runner takes while the database is away. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Latch, Option } from "effect"
import { ClusterError, EntityId, MessageStorage, ShardId, Sharding } from "effect/cluster"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Kernel, RunStore } from "kernai"
import * as TakenMessages from "../../src/cluster/internal/takenMessages.ts"
import * as Postgres from "../support/postgres.ts"
import { clusterOn, until } from "./sockets.ts"
import { clerk, pay } from "./support.ts"

const shards = [ShardId.make("default", 1), ShardId.make("default", 2)]

/** A storage whose database answers each reset in turn. */
const storage = (...answers: ReadonlyArray<Effect.Effect<void, ClusterError.PersistenceError>>) =>
  Effect.gen(function* () {
    const reset: Array<ReadonlyArray<ShardId.ShardId>> = []
    let asked = 0
    const messages = yield* TakenMessages.make(
      MessageStorage.MessageStorage.of({
        ...MessageStorage.noop,
        resetShards: (given) =>
          Effect.andThen(
            Effect.suspend(() => answers[asked++] ?? Effect.void),
            Effect.sync(() => void reset.push([...given]))
          )
      })
    )
    return { messages, reset }
  })

const failed = Effect.fail(new ClusterError.PersistenceError({ cause: "the database is away" }))

describe("messages of taken shards", () => {
  it.effect("are read again after the database failed", () =>
    Effect.gen(function* () {
      const { messages, reset } = yield* storage(failed, failed)
      const asked = yield* Effect.forkChild(messages.resetShards(shards), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(reset, [shards])
      assert.isDefined(asked.pollUnsafe())
    })
  )

  it.effect("are read again although the runner no longer waits for a slow database", () =>
    Effect.gen(function* () {
      const { messages, reset } = yield* storage(Effect.delay(failed, "5 seconds"))
      const waiting = Effect.timeoutOption(Effect.ignore(messages.resetShards(shards)), "900 millis")
      const asked = yield* Effect.forkChild(waiting, { startImmediately: true })
      yield* TestClock.adjust("900 millis")
      assert.deepStrictEqual(asked.pollUnsafe()?._tag, "Success")
      assert.deepStrictEqual(reset, [])
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(reset, [shards])
    })
  )

  it.live.skipIf(!Postgres.available)("are not driven twice when they are read again after their shard has moved", () =>
    Effect.gen(function* () {
      const database = yield* Postgres.database
      const { client, runner } = clusterOn(database)
      const paid = Latch.makeUnsafe()
      let payments = 0
      const execute = Effect.andThen(
        Effect.sync(() => payments++),
        Effect.as(paid.await, "ok")
      )
      yield* runner({ skills: [pay(execute)] })
      const formerOwner = yield* client
      yield* Effect.gen(function* () {
        yield* Kernel.submit(clerk, "go", { runId: "r" })
        yield* until(Effect.sync(() => payments === 1))
        const shard = (yield* Sharding.Sharding).getShardId(EntityId.make("r"), "default")
        yield* (yield* MessageStorage.MessageStorage).resetShards([shard])
        const sql = yield* SqlClient.SqlClient
        const unread = sql`SELECT id FROM cluster_messages WHERE last_read IS NULL`
        yield* until(Effect.map(unread, (messages) => messages.length === 0))
        yield* paid.open
        const ended = Effect.map(
          RunStore.RunStore.use((store) => store.head("r")),
          (head) => Option.getOrThrow(head).status.type === "completed"
        )
        yield* until(ended)
      }).pipe(Effect.provideContext(formerOwner), Effect.provide(Postgres.client(database)))
      assert.strictEqual(payments, 1)
    }).pipe(Effect.scoped)
  )
})
