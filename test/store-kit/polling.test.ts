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

describe("cancellations of other processes", () => {
  it.effect("are found at once when they are announced after a while, and at most every 20 milliseconds", () =>
    Effect.gen(function* () {
      let queries = 0
      const found: Array<string> = []
      const cancellations = Polling.cancellations({
        findCancelled: () => Effect.sync(() => (queries++, found)),
        interval: "5 seconds"
      })
      const waiting = yield* Effect.forkChild(cancellations.of("r"), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.strictEqual(queries, 1)
      const announced = Effect.sync(() => cancellations.announce("r"))
      yield* Effect.andThen(announced, TestClock.adjust(0))
      assert.strictEqual(queries, 2)
      yield* Effect.andThen(announced, TestClock.adjust("19 millis"))
      assert.strictEqual(queries, 2)
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(queries, 3)
      found.push("r")
      yield* TestClock.adjust("1 second")
      yield* Effect.andThen(announced, TestClock.adjust(0))
      assert.isDefined(waiting.pollUnsafe())
    })
  )
})
