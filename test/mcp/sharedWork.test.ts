import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { Shared } from "../../src/mcp/internal/sharedWork.ts"

/** Work that is done as often as it is asked for, each time until it is told what comes of it. */
const work = () => {
  const shared = new Shared<string, string>()
  const done: Array<Deferred.Deferred<string, string>> = []
  const effect = Effect.suspend(() => {
    const outcome = Deferred.makeUnsafe<string, string>()
    done.push(outcome)
    return Deferred.await(outcome)
  })
  return { done, ask: Effect.forkChild(shared.get(effect), { startImmediately: true }) }
}

describe("Shared", () => {
  it.effect("is done once for all who ask meanwhile, and again for who asks later", () =>
    Effect.gen(function* () {
      const { ask, done } = work()
      const asking = yield* Effect.replicateEffect(ask, 1_000)
      assert.lengthOf(done, 1)
      yield* Deferred.succeed(done[0]!, "one")
      assert.deepStrictEqual(new Set(yield* Fiber.joinAll(asking)), new Set(["one"]))
      const later = yield* ask
      yield* Deferred.succeed(done[1]!, "two")
      assert.strictEqual(yield* Fiber.join(later), "two")
    })
  )

  it.effect("is done by another when the one who does it is given up", () =>
    Effect.gen(function* () {
      const { ask, done } = work()
      const [first, second, third] = [yield* ask, yield* ask, yield* ask]
      yield* Fiber.interrupt(second)
      yield* Fiber.interrupt(first)
      assert.lengthOf(done, 2)
      yield* Deferred.succeed(done[1]!, "two")
      assert.strictEqual(yield* Fiber.join(third), "two")
    })
  )

  it.effect("fails all who wait when it fails, and no other", () =>
    Effect.gen(function* () {
      const { ask, done } = work()
      const asking = yield* Effect.replicateEffect(ask, 3)
      yield* Deferred.fail(done[0]!, "no")
      for (const fiber of asking) assert.strictEqual(yield* Effect.flip(Fiber.join(fiber)), "no")
      const later = yield* ask
      yield* Deferred.succeed(done[1]!, "yes")
      assert.strictEqual(yield* Fiber.join(later), "yes")
    })
  )
})
