import { assert, describe, it } from "@effect/vitest"
import { Cause, Deferred, Effect, Fiber, Layer, Logger, Option, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Hooks, KernelError, Kernel, Policy, RunStore, RunWorker } from "kernai"
import { Scenario } from "kernai/testing"
import { agent } from "../support/clerk.ts"
import { agent as planner } from "../support/workflow.ts"
import { crowded, foreign, minutes, opsOf, process, statusOf } from "../support/worker.ts"

describe("a worker", () => {
  it.effect("skips a run for a while when `resume` fails, unless the run has advanced", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const asked: Array<number> = []
      const resume = ({ revision, runId }: RunStore.RunHead) =>
        Effect.suspend(() => {
          asked.push(revision)
          return Effect.fail(new KernelError.ToolNotFound({ name: runId }))
        })
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent], resume }), layer))
      yield* TestClock.adjust("29 seconds")
      assert.deepStrictEqual(asked, [1])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(asked, [1, 1])
      const gate = Hooks.layer({ onTurnPrepared: () => Effect.succeed(Hooks.pause("not yet")) })
      yield* Effect.flip(Effect.provide(Kernel.resume(agent, "r"), [layer, gate]))
      yield* Effect.provide(Kernel.answer("r", []), layer)
      const { revision } = Option.getOrThrow(yield* store.head("r"))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(asked, [1, 1, revision])
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("asks `resume` again two seconds after the store did not respond to it", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const away = new RunStore.StoreError({ operation: "read", reason: "unavailable", detail: "restarting" })
      let asked = 0
      const resume = () => Effect.suspend(() => (asked++ === 0 ? Effect.fail(away) : Effect.succeed({})))
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent], resume }), layer))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(asked, 1)
      yield* TestClock.adjust("4 seconds")
      assert.deepStrictEqual([asked, yield* statusOf(store, "r")], [2, "completed"])
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("skips runs it cannot run, runs with a lease, and runs in progress without one", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const layer = process(store)
      yield* Effect.provide(Kernel.submit(foreign, "hi", { runId: "foreign" }), layer)
      yield* Effect.provide(Kernel.submit(agent, "hi", { runId: "held" }), layer)
      yield* store.acquire("held", { workerId: "else", lease: "1 minute" })
      const stuck = process(store, Effect.never)
      const live = yield* Effect.forkChild(Effect.provide(Kernel.run(agent, "hi", { runId: "live" }), stuck), {
        startImmediately: true
      })
      const work = RunWorker.runOnce({ agents: [agent], concurrency: 9 })
      assert.strictEqual(yield* Effect.provide(work, layer), 0)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Effect.provide(work, layer), 1)
      assert.strictEqual(yield* statusOf(store, "held"), "completed")
      yield* Fiber.interrupt(live)
    })
  )

  it.live("in runOnce claims a run only once if it cannot be read or `resume` fails", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      yield* submit(agent, "s")
      const gone = new RunStore.StoreError({ operation: "load", reason: "invalid", detail: "no run" })
      const odd: RunStore.RunStoreShape = { ...store, load: (id) => (id === "r" ? Effect.fail(gone) : store.load(id)) }
      const resume = ({ runId }: RunStore.RunHead) => (runId === "r" ? Effect.fail(gone) : Effect.succeed({}))
      const counts = [
        yield* Effect.provide(RunWorker.runOnce({ agents: [agent], resume }), layer),
        yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(odd))
      ]
      assert.deepStrictEqual(counts, [2, 1])
      assert.deepStrictEqual([yield* statusOf(store, "r"), yield* statusOf(store, "s")], ["queued", "completed"])
    })
  )

  it.effect("does nothing with a run that another worker has claimed meanwhile, or when listing fails", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      const late: RunStore.RunStoreShape = {
        ...store,
        acquire: (runId, claim) =>
          Effect.andThen(
            Effect.ignore(store.acquire(runId, { workerId: "else", lease: "1 minute" })),
            store.acquire(runId, claim)
          )
      }
      const away = new RunStore.StoreError({ operation: "list", reason: "unavailable", detail: "away" })
      for (const weak of [late, { ...store, list: () => Effect.fail(away) }]) {
        assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(weak)), 0)
      }
      assert.deepStrictEqual(yield* opsOf(store, "r"), ["phase"])
    })
  )

  it.effect("logs why it could not claim a run, and nothing when another worker was first", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ cause, message }) => void lines.push(`${message} ${Cause.pretty(cause)}`))
    return Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      const busy = new RunStore.RunBusy({ runId: "r", workerId: "else", expiresAt: 60_000 })
      const locked = new RunStore.StoreError({
        operation: "acquire",
        reason: "unavailable",
        detail: "read-only, for Bearer SECRET-0123"
      })
      const claims = [Effect.fail(busy), Effect.fail(locked)]
      for (const claim of claims) {
        const weak = process({ ...store, acquire: () => claim })
        assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), weak), 0)
      }
      assert.lengthOf(lines, 1)
      assert.match(lines[0] ?? "", /could not claim run r.*read-only, for <redacted>/)
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("does not claim a run that another worker finished since it was listed (R-5)", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const listed = yield* store.list()
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), layer), 1)
      const ended: Array<string> = []
      const stale = process({
        ...store,
        list: () => Effect.succeed(listed),
        read: (id) => Stream.take(store.read(id), 1)
      })
      const work = RunWorker.runOnce({
        agents: [agent],
        onRun: ({ runId }) => Effect.sync(() => void ended.push(runId))
      })
      assert.strictEqual(yield* Effect.provide(work, stale), 0)
      assert.deepStrictEqual(ended, [])
    })
  )

  it.effect("skips a run it paused and that is resumed elsewhere without a lease", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      const work = RunWorker.runOnce({ agents: [agent] })
      yield* Effect.provide(work, process(store).pipe(Layer.provide(asks)))
      const approvals = [{ callId: "call-a", approved: true }]
      const stuck = process(store, Effect.never).pipe(Layer.provide(asks))
      const live = yield* Effect.forkChild(Effect.provide(Kernel.resume(agent, "r", { answers: approvals }), stuck), {
        startImmediately: true
      })
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* statusOf(store, "r"), "running")
      assert.strictEqual(yield* Effect.provide(work, process(store)), 0)
      yield* Fiber.interrupt(live)
    })
  )

  it.effect("skips a submitted or answered run that is resumed elsewhere without a lease (R-5)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      const layer = process(store)
      const work = RunWorker.runOnce({ agents: [agent] })
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "answered" }), layer)
      yield* Effect.provide(work, layer.pipe(Layer.provide(asks)))
      const answers = [{ callId: "call-a", approved: true }]
      yield* Effect.provide(Kernel.answer("answered", answers), layer)
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "submitted" }), layer)
      const live = yield* Effect.forEach(["answered", "submitted"], (runId) =>
        Effect.forkChild(Effect.provide(Kernel.resume(agent, runId), process(store, Effect.never)))
      )
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Effect.provide(work, layer), 0)
      yield* Fiber.interruptAll(live)
      // Nothing happens to them any more: after a while they are anybody's.
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(yield* Effect.provide(work, layer), 2)
    })
  )

  it.effect("skips a run that was resumed elsewhere while it looked at others", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const go = yield* Deferred.make<void>()
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      const resuming = Effect.provide(Kernel.resume(agent, "r"), process(store, Effect.never))
      const live = yield* Effect.forkChild(Effect.andThen(Deferred.await(go), resuming))
      const goesOn = Effect.andThen(Deferred.succeed(go, undefined), Stream.runHead(store.tail("r", 2)))
      const slow: RunStore.RunStoreShape = { ...store, list: (filter) => Effect.tap(store.list(filter), () => goesOn) }
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(slow)), 0)
      yield* Fiber.interrupt(live)
    })
  )

  it.effect("skips a workflow that runs without a lease as long as one of its tasks makes progress", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const provider = Scenario.scripted(minutes(15))
      const live = yield* Effect.forkChild(
        Effect.provide(Kernel.run(planner({ maxSteps: 20 }), "go", { runId: "r", provider }), process(store))
      )
      const work = RunWorker.run({ agents: [planner({ maxSteps: 20 })], resume: () => ({ provider }) })
      const worker = yield* Effect.forkChild(Effect.provide(work, process(store)))
      yield* TestClock.adjust("30 minutes")
      assert.strictEqual((yield* Fiber.join(live)).text, "done")
      assert.isFalse((yield* opsOf(store, "r")).includes("resume"))
      yield* Fiber.interrupt(worker)
    })
  )
})
