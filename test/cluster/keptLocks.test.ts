/** The shards of a runner whose renewals of their locks are late. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { ClusterError, RunnerAddress, RunnerStorage, ShardId } from "effect/cluster"
import { TestClock } from "effect/testing"
import * as KeptLocks from "../../src/cluster/internal/keptLocks.ts"

const address = RunnerAddress.make("10.0.0.5", 34431)
const shards = [ShardId.make("default", 1), ShardId.make("default", 2)]

type Answer = Effect.Effect<Array<ShardId.ShardId>, ClusterError.PersistenceError>

/** Locks of ten seconds, acquired three seconds ago. The renewals of the database are answered in turn. */
const acquired = (...answers: ReadonlyArray<Answer>) =>
  Effect.gen(function* () {
    const memory = yield* RunnerStorage.RunnerStorage
    let asked = 0
    const slow = RunnerStorage.RunnerStorage.of({
      ...memory,
      refresh: () => Effect.suspend(() => answers[asked++] ?? Effect.succeed(shards))
    })
    const locks = yield* KeptLocks.make(slow, { expiration: 10_000, interval: 3_000 })
    assert.deepStrictEqual(yield* locks.acquire(address, shards), shards)
    yield* TestClock.adjust("3 seconds")
    const renew = Effect.forkChild(locks.refresh(address, shards), { startImmediately: true })
    return { renew, asked: () => asked }
  }).pipe(Effect.provide(Layer.fresh(RunnerStorage.layerMemory)))

const failed: Answer = Effect.fail(new ClusterError.PersistenceError({ cause: "the database is away" }))

describe("a runner whose renewal of its locks", () => {
  it.effect("takes longer than the interval keeps its shards, and loses them with the next one", () =>
    Effect.gen(function* () {
      const { renew } = yield* acquired(Effect.never, Effect.never)
      const first = yield* renew
      yield* TestClock.adjust("2900 millis")
      assert.deepStrictEqual(yield* Fiber.join(first), shards)
      yield* TestClock.adjust("100 millis")
      const second = yield* renew
      yield* TestClock.adjust("1 hour")
      assert.isUndefined(second.pollUnsafe())
      yield* Fiber.interrupt(second)
    })
  )

  it.effect("fails tries again, and keeps its shards for one interval", () =>
    Effect.gen(function* () {
      const { asked, renew } = yield* acquired(...Array.from({ length: 1_000 }, () => failed))
      const first = yield* renew
      yield* TestClock.adjust("2900 millis")
      assert.deepStrictEqual(yield* Fiber.join(first), shards)
      assert.isAtLeast(asked(), 10)
      yield* TestClock.adjust("100 millis")
      // It does not ask again once it has answered.
      assert.isAtMost(asked(), 26)
      const second = yield* Effect.exit(Effect.flatMap(renew, Fiber.join))
      assert.strictEqual(second._tag, "Failure")
    })
  )

  it.effect("is late keeps its shards again once the late answer has come", () =>
    Effect.gen(function* () {
      const { renew } = yield* acquired(Effect.delay(Effect.succeed(shards), "2900 millis"), Effect.never)
      const first = yield* renew
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(yield* Fiber.join(first), shards)
      const second = yield* renew
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(yield* Fiber.join(second), shards)
    })
  )

  it.effect("finds a lock of another runner gives this shard up", () =>
    Effect.gen(function* () {
      const { renew } = yield* acquired(Effect.succeed(shards.slice(1)))
      assert.deepStrictEqual(yield* Effect.flatMap(renew, Fiber.join), shards.slice(1))
    })
  )
})
