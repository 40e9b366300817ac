import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import * as Polling from "../../src/store-kit/Polling.ts"

describe("followers of a journal", () => {
  it.effect("poll once when they are woken, else after the interval, and are removed when they leave", () =>
    Effect.gen(function* () {
      const followers = Polling.followers()
      let looks = 0
      const page = () => Effect.sync(() => (looks++, []))
      const follow = followers.follow({ runId: "r", from: 0, page, interval: "1 minute" })
      const fibers = yield* Effect.forEach([1, 2], () =>
        Effect.forkChild(Stream.runDrain(follow), { startImmediately: true })
      )
      const looksAfter = (then: Effect.Effect<void>) =>
        Effect.map(Effect.andThen(then, TestClock.adjust(0)), () => looks)
      assert.strictEqual(yield* looksAfter(Effect.void), 2)
      assert.strictEqual(yield* looksAfter(Effect.sync(() => followers.wake("r"))), 4)
      assert.strictEqual(yield* looksAfter(Effect.sync(() => followers.wake("other"))), 4)
      assert.strictEqual(yield* looksAfter(TestClock.adjust("1 minute")), 6)
      assert.strictEqual(yield* looksAfter(Effect.sync(() => followers.wake())), 8)
      for (const [fiber, isLeft] of [
        [fibers[0], true],
        [fibers[1], false]
      ] as const) {
        if (fiber !== undefined) yield* Fiber.interrupt(fiber)
        assert.strictEqual(followers.has("r"), isLeft)
      }
    })
  )
})
