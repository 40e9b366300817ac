/** The messages of shards that a runner takes while the database is away. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { ClusterError, MessageStorage, ShardId } from "effect/cluster"
import { TestClock } from "effect/testing"
import * as TakenMessages from "../../src/cluster/internal/takenMessages.ts"

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
})
