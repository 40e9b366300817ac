/** What pages receive about the runs that wait for a person. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { RunStore } from "kernai"
import * as WaitingFeed from "../../src/studio/internal/waitingFeed.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { put } from "../support/runStore.ts"

const paused = { type: "paused", reason: "asked", metadata: null } as const

/** A store in memory that counts its lists, and what pages received that were opened on it. */
const opened = Effect.gen(function* () {
  const store = yield* RunStore.makeMemory
  let lists = 0
  const list: RunStore.RunStoreShape["list"] = (filter) => Effect.suspend(() => (lists++, store.list(filter)))
  const changes = yield* WaitingFeed.changes({ ...store, list })
  const page = Effect.gen(function* () {
    const received: Array<WaitingFeed.WaitingChange> = []
    const following = Stream.runForEach(changes, (change) => Effect.sync(() => received.push(change)))
    const fiber = yield* Effect.forkScoped(following, { startImmediately: true })
    yield* TestClock.adjust("1 second")
    return { received, close: Fiber.interrupt(fiber) }
  })
  const ask = Effect.fnUntraced(function* (runId: string) {
    const run = Journal.begin(runId)
    yield* put(store, [run.last(), run.commit("pause", [paused])])
    return run
  })
  return { ask, lists: () => lists, page, store }
})

describe("WaitingFeed", () => {
  it.effect("sends all runs that wait at first, then those that begin or end to wait", () =>
    Effect.gen(function* () {
      const { ask, page, store } = yield* opened
      const first = yield* ask("first")
      const { received } = yield* page
      assert.deepStrictEqual(received, [{ count: 1, asked: [["first", 2]] }])
      yield* ask("second")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(received.at(-1), { count: 2, asked: [["second", 2]], gone: [] })
      yield* put(store, [first.commit("resume", [], { resumed: true })])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(received.at(-1), { count: 1, asked: [], gone: ["first"] })
      yield* put(store, [first.commit("pause", [paused])])
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(received.at(-1), { count: 2, asked: [["first", 4]], gone: [] })
    })
  )

  it.effect("reads nothing while nothing happens, and once for all pages and a crowd of changes", () =>
    Effect.gen(function* () {
      const { ask, lists, page } = yield* opened
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(lists(), 0)
      const [one, other] = [yield* page, yield* page]
      assert.strictEqual(lists(), 1)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(lists(), 1)
      for (let index = 0; index < 100; index++) yield* ask(`run${index}`)
      yield* TestClock.adjust("2 seconds")
      assert.isAtMost(lists(), 3)
      for (const { received } of [one, other]) assert.strictEqual(received.at(-1)?.count, 100)
      yield* one.close
      yield* other.close
      const before = lists()
      yield* ask("last")
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(lists(), before)
    })
  )
})
