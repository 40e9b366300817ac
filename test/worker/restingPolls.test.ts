import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { repeat } from "../../src/internal/worker/restingPolls.ts"
import * as Polling from "../../src/store-kit/Polling.ts"

/** Polls whose passes have two pages, with what the test decides about them. */
const polling = Effect.gen(function* () {
  const store = { polls: 0, page: 0, isBusy: false, fails: false }
  const changes = Polling.followers()
  const poll = Effect.sync(() => {
    store.polls++
    store.page = 1 - store.page
    return store.page === 0 && !store.fails
  })
  const restart = () => void (store.page = 0)
  const polls = { poll, restart, isBusy: Effect.sync(() => store.isBusy), often: "5 seconds" } as const
  yield* Effect.forkScoped(repeat(polls, { next: changes.next, recheck: "1 minute" }), { startImmediately: true })
  /** Returns the number of polls in a time. */
  const within = (time: "5 seconds" | "55 seconds" | "1 minute") =>
    Effect.gen(function* () {
      const before = store.polls
      yield* TestClock.adjust(time)
      return store.polls - before
    })
  return { store, within, change: () => changes.wake("r") }
})

describe("polls of a store that announces changes", () => {
  it.effect("rest after a whole pass, but for one poll each minute, and begin again at a change", () =>
    Effect.gen(function* () {
      const { change, store, within } = yield* polling
      assert.strictEqual(store.polls, 1)
      assert.strictEqual(yield* within("5 seconds"), 1)
      assert.strictEqual(yield* within("5 seconds"), 0)
      assert.strictEqual(yield* within("55 seconds"), 0)
      assert.strictEqual(yield* within("5 seconds"), 1)
      // Its pass begins with the first page, although the last poll ended with it.
      const { polls } = store
      change()
      yield* within("55 seconds")
      assert.strictEqual(store.polls - polls, 2)
    })
  )

  it.effect("make another pass after a change during a pass", () =>
    Effect.gen(function* () {
      const { change, within } = yield* polling
      change()
      assert.strictEqual(yield* within("1 minute"), 3)
    })
  )

  it.effect("go on while a pass fails, and while something is under way", () =>
    Effect.gen(function* () {
      const { store, within } = yield* polling
      store.fails = true
      assert.strictEqual(yield* within("1 minute"), 12)
      store.fails = false
      store.isBusy = true
      assert.strictEqual(yield* within("1 minute"), 12)
      store.isBusy = false
      assert.isAtMost(yield* within("55 seconds"), 2)
      store.isBusy = true
      assert.isAtLeast(yield* within("1 minute"), 10)
    })
  )
})
