import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Exit, Fiber, Layer, Option, Queue, Schedule, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, Policy, RunStore, RunWorker } from "kernai"
import { MockProvider } from "kernai/testing"
import { agent } from "../support/clerk.ts"
import { crowded, foreign, process, statusOf } from "../support/worker.ts"

/** A store that notes how many runs each list had. Those of runs that wait for a person claim nothing. */
const noting = (store: RunStore.RunStoreShape, pages: Array<number>): RunStore.RunStoreShape => ({
  ...store,
  list: (filter) =>
    Effect.tap(store.list(filter), (heads) =>
      Effect.sync(() => (isOfWaiting(filter) ? undefined : pages.push(heads.length)))
    )
})

const isOfWaiting = (filter: RunStore.RunFilter | undefined) => filter?.status?.includes("waiting") === true

describe("a worker looks for runs and", () => {
  it.effect("starts the next run that waits as soon as a place is free, without waiting for its next look", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      const ids = Array.from({ length: 20 }, (_, number) => `r${number}`)
      yield* Effect.forEach(ids, (runId) => submit(agent, runId), { discard: true })
      const ended = yield* Queue.unbounded<string>()
      const worker = RunWorker.run({
        agents: [agent],
        concurrency: 3,
        pollInterval: "1 hour",
        onRun: ({ runId }) => Effect.asVoid(Queue.offer(ended, runId))
      })
      yield* Effect.forkChild(Effect.provide(worker, layer))
      const first = yield* Effect.forEach(ids, () => Queue.take(ended))
      assert.sameMembers(first, ids)
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
      assert.strictEqual((yield* store.list({ status: ["completed"] })).length, 20)
    })
  )

  it.effect("claims a run at once that its own process submits or answers, without waiting for its next look", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      const layer = Layer.provide(process(store), asks)
      const exits = yield* Queue.unbounded<boolean>()
      yield* Effect.gen(function* () {
        const worker = RunWorker.run({
          agents: [agent],
          pollInterval: "1 hour",
          onRun: (_, exit) => Effect.asVoid(Queue.offer(exits, Exit.isSuccess(exit)))
        })
        yield* Effect.forkChild(worker)
        yield* Effect.repeat(Effect.yieldNow, { times: 100 })
        yield* Kernel.submit(agent, "pay eva", { runId: "r" })
        assert.isFalse(yield* Queue.take(exits))
        assert.strictEqual(yield* statusOf(store, "r"), "waiting")
        yield* Kernel.answer("r", [{ callId: (yield* Kernel.questions("r"))[0]?.callId ?? "", approved: true }])
        assert.isTrue(yield* Queue.take(exits))
        assert.strictEqual(yield* Clock.currentTimeMillis, 0)
      }).pipe(Effect.provide(Layer.merge(layer, Layer.succeed(RunStore.RunStore, store))))
    })
  )

  it.effect("looks for no other run behind one that was offered, unless it passed one over", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const pages: Array<number> = []
      const ended = yield* Queue.unbounded<string>()
      const onRun = ({ runId }: RunStore.RunHead) => Effect.asVoid(Queue.offer(ended, runId))
      const worker = RunWorker.run({ agents: [agent], pollInterval: "1 hour", onRun })
      yield* Effect.forkChild(Effect.provide(worker, process(noting(store, pages))))
      yield* TestClock.adjust("1 second")
      const looks = pages.length
      for (const runId of ["a", "b", "c"]) {
        yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId }), process(store))
        assert.strictEqual(yield* Queue.take(ended), runId)
        yield* TestClock.adjust("1 second")
      }
      assert.lengthOf(pages, looks)
    })
  )

  it.effect("claims a run at once that another process offers, without waiting for its next look", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const offers = yield* Queue.unbounded<string>()
      const ended = yield* Queue.unbounded<string>()
      // A store of its own on the same runs, as another process has it.
      const theirs: RunStore.RunStoreShape = { ...store, offers: Stream.fromQueue(offers) }
      const worker = RunWorker.run({
        agents: [agent],
        concurrency: 3,
        pollInterval: "1 hour",
        onRun: ({ runId }) => Effect.asVoid(Queue.offer(ended, runId))
      })
      yield* Effect.forkChild(Effect.provide(worker, process(theirs)))
      yield* TestClock.adjust("1 second")
      const ids = Array.from({ length: 20 }, (_, number) => `r${number}`)
      yield* Effect.forEach(ids, (runId) => Effect.provide(Kernel.submit(agent, "pay eva", { runId }), process(store)))
      yield* Queue.offer(offers, "unknown")
      yield* Effect.forEach(ids, (runId) => Queue.offer(offers, runId))
      assert.sameMembers(yield* Effect.forEach(ids, () => Queue.take(ended)), ids)
      assert.strictEqual(yield* Clock.currentTimeMillis, 1_000)
    })
  )

  it.effect("looks every second for runs of other processes, and every five where the store emits their offers", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      for (const [offers, looks] of [
        [undefined, 20],
        [Stream.never, 4]
      ] as const) {
        const pages: Array<number> = []
        const quiet = noting({ ...store, offers, changes: undefined }, pages)
        const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), process(quiet)))
        yield* TestClock.adjust("19500 millis")
        // Runs under way, and runs that failed.
        assert.lengthOf(pages, 2 * looks)
        yield* Fiber.interrupt(worker)
      }
    })
  )

  it.effect("tries a failed run again when its time has come, not at the next look after it", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const provider = MockProvider.make("paid", "paid").failOnStep(0, "overloaded")
      const worker = RunWorker.run({
        agents: [agent],
        resume: () => ({ provider }),
        retry: Schedule.spaced("40 seconds"),
        pollInterval: "1 hour"
      })
      yield* Effect.forkChild(Effect.provide(worker, layer))
      yield* TestClock.adjust("39 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "failed")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("polls again after a store call that never returned: a list, a read or a claim (F2)", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "a")
      let lists = 0
      let reads = 0
      let claims = 0
      const mute: RunStore.RunStoreShape = {
        ...store,
        list: (filter) => (lists++ === 0 ? Effect.never : store.list(filter)),
        read: (...of) => (reads++ === 0 ? Stream.never : store.read(...of)),
        acquire: (...claim) => (claims++ === 0 ? Effect.never : store.acquire(...claim))
      }
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), process(mute)))
      yield* TestClock.adjust("4 minutes")
      yield* submit(agent, "b")
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([yield* statusOf(store, "a"), yield* statusOf(store, "b")], ["completed", "completed"])
      const stopped = yield* Effect.forkChild(Fiber.interrupt(worker))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(stopped)
    })
  )

  it.effect("claims other runs when the store never confirms a release or never returns a head (F2)", () =>
    Effect.gen(function* () {
      /** Does not answer the question of this number about a run that has ended. */
      const silentAt = (store: RunStore.RunStoreShape, number: number): RunStore.RunStoreShape => {
        let asked = 0
        return {
          ...store,
          head: (runId) =>
            Effect.flatMap(store.head(runId), (head) => {
              const isOver = Option.isSome(head) && head.value.status.type === "completed"
              return isOver && ++asked === number ? Effect.never : Effect.succeed(head)
            }),
          release: (...of) => (number === 0 && asked++ === 1 ? Effect.never : store.release(...of))
        }
      }
      for (const number of [0, 1, 2]) {
        const { store, submit } = yield* crowded
        const work = RunWorker.run({ agents: [agent], onRun: () => Effect.void })
        yield* submit(agent, "a")
        const worker = yield* Effect.forkChild(Effect.provide(work, process(silentAt(store, number))))
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(yield* statusOf(store, "a"), "completed")
        yield* submit(agent, "b")
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual(yield* statusOf(store, "b"), "completed", `${number}`)
        const stopped = yield* Effect.forkChild(Fiber.interrupt(worker))
        yield* TestClock.adjust("1 minute")
        yield* Fiber.join(stopped)
      }
    })
  )

  it.effect("claims a run at once that was submitted or answered by a machine whose clock is ahead", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* TestClock.setTime(3_600_000)
      yield* submit(agent, "r")
      yield* TestClock.setTime(0)
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), layer), 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("fills a place as soon as it is free, without waiting for its next look", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      for (const runId of ["a", "b", "c", "d"]) yield* submit(agent, runId)
      const work = RunWorker.run({ agents: [agent], concurrency: 1, pollInterval: "1 hour" })
      const worker = yield* Effect.forkChild(
        Effect.provide(work, process(store, Effect.as(Effect.sleep("10 millis"), "ok")))
      )
      for (let n = 0; n < 10; n++) yield* TestClock.adjust("10 millis")
      for (const runId of ["a", "b", "c", "d"]) assert.strictEqual(yield* statusOf(store, runId), "completed", runId)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("lists runs page by page, and finds a free one among hundreds it cannot claim", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      for (let n = 0; n < 250; n++) yield* submit(foreign, `foreign-${n}`)
      for (let n = 0; n < 250; n++) {
        yield* submit(agent, `held-${n}`)
        yield* store.acquire(`held-${n}`, { workerId: "else", lease: "1 hour" })
      }
      yield* TestClock.adjust("1 milli")
      yield* submit(agent, "free")
      const pages: Array<number> = []
      const counted = noting(store, pages)
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), process(counted)), {
        startImmediately: true
      })
      assert.isAtMost(pages.length, 2)
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(yield* statusOf(store, "free"), "completed")
      assert.isAtMost(Math.max(...pages), 100)
      // Two pages a poll, and two for the place that became free.
      assert.isAtMost(pages.length, 10)
      // The next poll starts over and finds runs that became free.
      yield* store.release("held-7", "else")
      yield* store.acquire("held-7", { workerId: "", lease: 0 })
      yield* TestClock.adjust("12 seconds")
      assert.strictEqual(yield* statusOf(store, "held-7"), "completed")
      yield* Fiber.interrupt(worker)
      // Whoever works until nothing is left looks at all of them.
      yield* submit(agent, "last")
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(counted)), 1)
      assert.isAtMost(Math.max(...pages), 100)
    })
  )

  it.effect("finds a run submitted behind hundreds of waiting ones by its second poll", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      for (let n = 0; n < 650; n++) yield* submit(foreign, `foreign-${n}`)
      yield* TestClock.adjust("1 milli")
      const pages: Array<number> = []
      const counted = noting(store, pages)
      const order: Array<string> = []
      const onRun = ({ runId }: RunStore.RunHead) => Effect.sync(() => order.push(runId))
      const worker = yield* Effect.forkChild(
        Effect.provide(RunWorker.run({ agents: [agent], onRun }), process(counted)),
        {
          startImmediately: true
        }
      )
      for (let n = 0; n < 20; n++) {
        const before = pages.length
        yield* submit(agent, `new-${n}`)
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(yield* statusOf(store, `new-${n}`), "completed", `${n}`)
        assert.isAtMost(pages.length - before, 6)
        if (n % 2 === 0) yield* TestClock.adjust("1 second")
      }
      assert.isAtMost(Math.max(...pages), 100)
      // Of several it takes the oldest.
      order.length = 0
      const pairs = ["a", "b", "c", "d"].map((pair) => [`${pair}-1`, `${pair}-2`])
      for (const pair of pairs) {
        for (const runId of pair) {
          yield* submit(agent, runId)
          yield* TestClock.adjust("1 milli")
        }
        yield* TestClock.adjust("3 seconds")
      }
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(order, pairs.flat())
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("finds an old run that becomes free among hundreds, however many new ones arrive", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      // Each at an instant of its own: five pages, the old run on the third.
      for (let n = 0; n < 500; n++) {
        yield* submit(n === 250 ? agent : foreign, n === 250 ? "old" : `foreign-${n}`)
        yield* TestClock.adjust("1 milli")
      }
      yield* store.acquire("old", { workerId: "else", lease: "5 seconds" })
      const order: Array<string> = []
      const onRun = ({ runId }: RunStore.RunHead) => Effect.sync(() => order.push(runId))
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent], onRun }), layer))
      for (let n = 0; n < 20; n++) {
        for (let m = 0; m < 10; m++) yield* submit(foreign, `foreign-${n}-${m}`)
        yield* submit(agent, `new-${n}`)
        yield* TestClock.adjust("1 second")
      }
      // It is free after the third page was read; six pages later it is the third page again.
      assert.strictEqual(yield* statusOf(store, "old"), "completed")
      assert.isAtLeast(order.length, 10)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("claims the oldest run first, and polls for no more while it is at full concurrency", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const order: Array<string> = []
      let lists = 0
      const counted: RunStore.RunStoreShape = {
        ...store,
        list: (filter) => Effect.suspend(() => (isOfWaiting(filter) || lists++, store.list(filter)))
      }
      for (const runId of ["c", "a", "b"]) {
        yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId }), process(store))
        yield* TestClock.adjust("1 second")
      }
      const slow = process(counted, Effect.as(Effect.sleep("1 minute"), "ok"))
      const onRun = ({ runId }: RunStore.RunHead) => Effect.sync(() => order.push(runId))
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent], onRun }), slow))
      yield* TestClock.adjust("50 seconds")
      assert.isAtMost(lists, 2)
      yield* TestClock.adjust("4 minutes")
      assert.deepStrictEqual(order, ["c", "a", "b"])
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("claims the runs behind one that cannot be read", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "broken")
      yield* TestClock.adjust("1 milli")
      yield* submit(agent, "whole")
      const corrupt = new RunStore.StoreError({ operation: "read", reason: "corrupt", detail: "no record" })
      // Its journal says how often it was attempted.
      const attempted = (head: RunStore.RunHead) => (head.runId === "broken" ? { ...head, revision: 2 } : head)
      const weak: RunStore.RunStoreShape = {
        ...store,
        list: (filter) => Effect.map(store.list(filter), (heads) => heads.map(attempted)),
        read: (runId, from) => (runId === "broken" ? Stream.fail(corrupt) : store.read(runId, from))
      }
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(weak)), 1)
      assert.strictEqual(yield* statusOf(store, "whole"), "completed")
    })
  )

  it.effect("claims a run at once when its host names it, and none after the worker has stopped", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const scope = yield* Scope.make()
      const work = Effect.gen(function* () {
        const { take } = yield* Scope.provide(RunWorker.start({ agents: [agent], pollInterval: "1 hour" }), scope)
        // The poll at the start finds nothing, and the next one is far.
        yield* Effect.yieldNow
        const submit = (runId: string) => Kernel.submit(agent, "pay eva", { runId })
        yield* Effect.flatMap(submit("r"), take)
        yield* Stream.runDrain(Kernel.follow("r"))
        assert.strictEqual(yield* statusOf(store, "r"), "completed")
        yield* take("none")
        yield* Scope.close(scope, Exit.void)
        yield* Effect.flatMap(submit("late"), take)
        assert.strictEqual(yield* statusOf(store, "late"), "queued")
      })
      yield* Effect.provide(work, process(store))
    })
  )
})
