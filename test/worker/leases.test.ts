import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Exit, Fiber, Layer, Ref, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, Policy, RunStore, RunWorker } from "kernai"
import { Scenario } from "kernai/testing"
import { agent } from "../support/clerk.ts"
import { command, final } from "../support/blocks.ts"
import { slow, agent as planner } from "../support/workflow.ts"
import { crowded, opsOf, process, statusOf, unavailable } from "../support/worker.ts"

describe("a worker", () => {
  it.effect.each([
    { what: "an hour ahead", jump: 3_600_000 },
    { what: "a day behind", jump: -86_400_000 }
  ])(
    "keeps its run when its clock jumps $what, and a worker with such a clock does not take it (R-5, F7)",
    ({ jump }) =>
      Effect.gen(function* () {
        const { store, submit } = yield* crowded
        yield* submit(agent, "r")
        const clock = yield* Clock.clockWith(Effect.succeed)
        let skew = 0
        const millis = () => clock.currentTimeMillisUnsafe() + skew
        const jumping = { ...clock, currentTimeMillisUnsafe: millis, currentTimeMillis: Effect.sync(millis) }
        const ends: Array<string> = []
        const onRun = (_: RunStore.RunHead, exit: Exit.Exit<unknown, unknown>) =>
          Effect.sync(() => void ends.push(exit._tag))
        const layer = process(store, Effect.as(Effect.sleep("2 minutes"), "ok"))
        const work = (workerId: string) =>
          RunWorker.run({ agents: [agent], workerId, onRun }).pipe(
            Effect.provide(layer),
            Effect.provideService(Clock.Clock, jumping),
            Effect.forkChild
          )
        const first = yield* work("first")
        yield* TestClock.adjust("25 seconds")
        skew = jump
        const second = yield* work("second")
        yield* TestClock.adjust("3 minutes")
        assert.deepStrictEqual(ends, ["Success"])
        const records = yield* Stream.runCollect(store.read("r", 1))
        assert.isTrue(records.every(({ workerId }) => workerId.startsWith("first#")))
        yield* Fiber.interruptAll([first, second])
      })
  )

  it.effect.each([
    { what: "ended", given: false },
    { what: "ended, and another had given it back", given: true }
  ])("releases a run whose lease had $what by the time it was claimed (R-5)", ({ given }) =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const another = { workerId: "another", lease: 0 }
      const slow: RunStore.RunStoreShape = {
        ...store,
        acquire: Effect.fnUntraced(function* (runId, claim) {
          yield* store.acquire(runId, claim)
          if (claim.lease === 0) return
          yield* Effect.sleep("2 seconds")
          if (given) yield* store.acquire(runId, another)
        })
      }
      const late = yield* Effect.forkChild(
        Effect.provide(RunWorker.run({ agents: [agent], lease: "1 second" }), process(slow))
      )
      yield* TestClock.adjust("5 seconds")
      const stopped = yield* Effect.forkChild(Fiber.interrupt(late))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(stopped)
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), layer), 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("claims the run of a dead worker once its lease has expired, not before", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      // The first worker claims the run and then disappears.
      yield* store.acquire("r", { workerId: "dead", lease: "30 seconds" })
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), process(store)))
      yield* TestClock.adjust("29 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "running")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("renews its lease while a run lasts, despite failures of the store in between", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let renewals = 0
      const flaky: RunStore.RunStoreShape = {
        ...store,
        acquire: (...claim) => (++renewals % 4 === 0 ? Effect.fail(unavailable) : store.acquire(...claim))
      }
      const slow = process(flaky, Effect.as(Effect.sleep("4 minutes"), "ok"))
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), slow)
      const one = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), slow))
      const two = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), process(store)))
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.strictEqual((yield* opsOf(store, "r")).filter((op) => op === "resume").length, 1)
      yield* Fiber.interruptAll([one, two])
    })
  )

  it.effect("stops with AgentCrashError when another worker has its run, and does nothing more (R-5, CP-16)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const entered = yield* Ref.make(0)
      const go = yield* Deferred.make<void>()
      const pay = Effect.andThen(
        Ref.update(entered, (count) => count + 1),
        Effect.as(Deferred.await(go), "ok")
      )
      // The store is cut off from this worker: it can neither renew nor commit.
      let cut = false
      const cutOff: RunStore.RunStoreShape = {
        ...store,
        acquire: (runId, claim) => (cut ? Effect.fail(unavailable) : store.acquire(runId, claim))
      }
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      const ends: Array<string> = []
      const onRun: RunWorker.Options["onRun"] = (_, exit) =>
        Effect.sync(() => void ends.push(Exit.isFailure(exit) ? String(exit.cause.reasons[0]) : "done"))
      const first = yield* Effect.forkChild(
        Effect.provide(
          RunWorker.runOnce({ agents: [agent], onRun: onRun ?? (() => Effect.void) }),
          process(cutOff, pay)
        )
      )
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Ref.get(entered), 1)
      cut = true
      yield* TestClock.adjust("31 seconds")
      yield* Fiber.join(first)
      assert.isTrue(ends[0]?.includes("AgentCrashError"), ends[0])
      const done = yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store))
      assert.strictEqual(done, 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  for (const [how, renewal] of [
    ["never said whether it is renewed", Effect.never],
    ["took its time to fail each time", Effect.delay(Effect.fail(unavailable), "3 seconds")]
  ] as const) {
    it.effect(`stops when its lease has expired and the store ${how} (R-5, CP-16)`, () =>
      Effect.gen(function* () {
        const { store, submit } = yield* crowded
        yield* submit(agent, "r")
        let isFirst = true
        const silent: RunStore.RunStoreShape = {
          ...store,
          acquire: (runId, claim) => {
            if (!isFirst) return renewal
            isFirst = false
            return store.acquire(runId, claim)
          }
        }
        const ends: Array<string> = []
        const worker = RunWorker.run({
          agents: [agent],
          onRun: (_, exit) => Effect.sync(() => void ends.push(String(exit)))
        })
        yield* Effect.forkDetach(Effect.provide(worker, process(silent, Effect.never)))
        yield* TestClock.adjust("29 seconds")
        assert.deepStrictEqual(ends, [])
        yield* TestClock.adjust("2 seconds")
        assert.include(ends[0] ?? "", "AgentCrashError")
      })
    )
  }

  it.effect("stops as soon as the store reports that another worker has its run (R-5, CP-16)", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      let isTaken = false
      const taken: RunStore.RunStoreShape = {
        ...store,
        acquire: (runId, claim) =>
          isTaken
            ? Effect.fail(new RunStore.RunBusy({ runId, workerId: "other", expiresAt: 60_000 }))
            : store.acquire(runId, claim)
      }
      let isAtWork = true
      const pay = Effect.onInterrupt(Effect.never, () => Effect.sync(() => (isAtWork = false)))
      yield* Effect.forkDetach(Effect.provide(RunWorker.run({ agents: [agent] }), process(taken, pay)))
      yield* TestClock.adjust("9 seconds")
      isTaken = true
      assert.isTrue(isAtWork)
      yield* TestClock.adjust("2 seconds")
      assert.isFalse(isAtWork)
    })
  )

  it.effect("claims a run again after its own lease expired only when it has stopped running it (R-5)", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      const away: RunStore.RunStoreShape = {
        ...store,
        acquire: (runId, claim) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            now > 0 && now <= 30_000 ? Effect.fail(unavailable) : store.acquire(runId, claim)
          )
      }
      const seen: Array<string> = []
      const pay = Effect.suspend(() => {
        seen.push("pays")
        return Effect.uninterruptible(Effect.as(Effect.sleep("1 minute"), "ok"))
      })
      const onRun = () => Effect.sync(() => void seen.push("stopped"))
      const worker = RunWorker.run({ agents: [agent], concurrency: 2, onRun })
      yield* Effect.forkDetach(Effect.provide(worker, process(away, pay)))
      yield* TestClock.adjust("33 seconds")
      assert.deepStrictEqual(seen, ["pays"])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(seen, ["pays", "stopped", "pays"])
    })
  )

  it.effect("releases a run it claimed although the store never confirmed the claim (R-6)", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      const lost = new RunStore.StoreError({ operation: "acquire", reason: "unavailable", detail: "no answer" })
      let asked = 0
      const flaky: RunStore.RunStoreShape = {
        ...store,
        acquire: (...lease) => Effect.andThen(store.acquire(...lease), asked++ === 0 ? Effect.fail(lost) : Effect.void)
      }
      const work = Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(flaky))
      assert.deepStrictEqual([yield* work, yield* work], [0, 1])
    })
  )

  it.effect("stops when its lease has expired, also when the store was slow to renew it (R-5, CP-16)", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      let asked = 0
      const slower: RunStore.RunStoreShape = {
        ...store,
        acquire: (...lease) => {
          asked++
          if (asked > 2) return Effect.never
          return Effect.delay(store.acquire(...lease), asked === 2 ? "19 seconds" : 0)
        }
      }
      let isAtWork = true
      const pay = Effect.onInterrupt(Effect.never, () => Effect.sync(() => (isAtWork = false)))
      yield* Effect.forkDetach(Effect.provide(RunWorker.run({ agents: [agent] }), process(slower, pay)))
      // Renewed at 10 seconds, confirmed at 29: the lease expires at 40.
      yield* TestClock.adjust("39 seconds")
      assert.deepStrictEqual([asked, isAtWork], [3, true])
      yield* TestClock.adjust("1 second")
      assert.isFalse(isAtWork)
    })
  )

  it.effect("continues its run when a later renewal succeeds, and otherwise until its lease expires", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      const away = new RunStore.StoreError({ operation: "acquire", reason: "unavailable", detail: "away" })
      let asked = 0
      const flaky: RunStore.RunStoreShape = {
        ...store,
        acquire: (...lease) => {
          asked++
          if (asked === 2) return Effect.fail(away)
          return asked < 4 ? store.acquire(...lease) : Effect.delay(Effect.fail(away), "15 seconds")
        }
      }
      let isAtWork = true
      const pay = Effect.onInterrupt(Effect.never, () => Effect.sync(() => (isAtWork = false)))
      yield* Effect.forkDetach(Effect.provide(RunWorker.run({ agents: [agent] }), process(flaky, pay)))
      // Not renewed at 10 seconds, but at 20: the lease ends at 50. What it asks at 30 fails at 45.
      yield* TestClock.adjust("49 seconds")
      assert.deepStrictEqual([asked, isAtWork], [4, true])
      yield* TestClock.adjust("1 second")
      assert.isFalse(isAtWork)
    })
  )

  it.effect("keeps a run stored when the host's `resume` fails (R-1)", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const resume = () => RunStore.inFlight("another").pipe(Effect.as({}))
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent], resume }), layer), 1)
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), layer), 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("waits for an uninterruptible renewal until its lease expires, and no longer (R-17)", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      let asked = 0
      const stuck: RunStore.RunStoreShape = {
        ...store,
        acquire: (...lease) => (asked++ === 1 ? Effect.uninterruptible(Effect.never) : store.acquire(...lease))
      }
      const pay = Effect.as(Effect.sleep("15 seconds"), "ok")
      const work = Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(stuck, pay))
      const worker = yield* Effect.forkChild(work)
      yield* TestClock.adjust("29 seconds")
      assert.isUndefined(worker.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.isDefined(worker.pollUnsafe())
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("releases its lease after the last renewal, which is uninterruptible (R-5, DR-22)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let asked = 0
      const slower: RunStore.RunStoreShape = {
        ...store,
        acquire: (...lease) =>
          Effect.uninterruptible(Effect.delay(store.acquire(...lease), asked++ === 1 ? "400 millis" : 0))
      }
      const provider = Scenario.scripted({ root: [slow(500, command("pay")), final("done")], tasks: {} })
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      yield* Effect.provide(Kernel.submit(planner(), "go", { runId: "r", provider }), process(store))
      const work = RunWorker.runOnce({ agents: [planner()], lease: "1200 millis", resume: () => ({ provider }) })
      const worker = yield* Effect.forkChild(Effect.provide(work, process(slower).pipe(Layer.provide(asks))))
      yield* TestClock.adjust("1 second")
      assert.isDefined(worker.pollUnsafe())
      assert.deepStrictEqual([asked, yield* statusOf(store, "r")], [2, "waiting"])
      const open = yield* Kernel.questions("r").pipe(Effect.provideService(RunStore.RunStore, store))
      const answers = open.map(({ callId }) => ({ callId, approved: true }))
      yield* Kernel.answer("r", answers).pipe(Effect.provideService(RunStore.RunStore, store))
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
    })
  )
})
