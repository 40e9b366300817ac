import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, RunStore, RunWorker } from "kernai"
import { MockProvider } from "kernai/testing"
import { agent } from "../support/clerk.ts"
import { crowded, opsOf, process, statusOf } from "../support/worker.ts"

describe("a worker", () => {
  it.effect.each([
    ["works on", RunWorker.run],
    ["ends with its work", RunWorker.runOnce]
  ] as const)("that %s starts nothing new when stopped, completes its step and releases its lease (R-17)", ([, work]) =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const slow = process(store, Effect.as(Effect.sleep("2 seconds"), "ok"), "write")
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), slow)
      yield* Effect.provide(Kernel.submit(agent, "pay ida", { runId: "s" }), slow)
      const worker = yield* Effect.forkChild(Effect.provide(work({ agents: [agent] }), slow))
      yield* TestClock.adjust("1 second")
      const stopping = yield* Effect.forkChild(Fiber.interrupt(worker), { startImmediately: true })
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(stopping)
      const state = Option.getOrThrow(yield* store.load("r"))
      // The call that was under way has its result; nothing was started after it.
      assert.deepStrictEqual(state.status, { type: "running", phase: "tool_call_completed" })
      assert.deepStrictEqual(yield* opsOf(store, "s"), ["phase"])
      const free = yield* store.list({ status: ["queued"], unleased: true })
      assert.deepStrictEqual(free.map((head) => head.runId).sort(), ["r", "s"])
      const taken = yield* Effect.provide(RunWorker.runOnce({ agents: [agent], concurrency: 2 }), process(store))
      assert.strictEqual(taken, 2)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("when stopped while the model gives its last answer, completes the run with the answer (R-17)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const model = MockProvider.layerOf(MockProvider.make("paid").withDelay({ first: "2 seconds" }))
      const slow = process(store, undefined, undefined, model)
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), slow)
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), slow))
      yield* TestClock.adjust("1 second")
      const stopping = yield* Effect.forkChild(Fiber.interrupt(worker), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(stopping)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("when stopped during a step that takes too long, interrupts the step in time (R-17)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const endless = process(store, Effect.never, "write")
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), endless)
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), endless))
      yield* TestClock.adjust("1 second")
      const stopping = yield* Effect.forkChild(Fiber.interrupt(worker), { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      assert.isDefined(stopping.pollUnsafe())
      const state = Option.getOrThrow(yield* store.load("r"))
      assert.deepStrictEqual(
        state.currentTurn?.inFlight.map((call) => call.callId),
        ["call-a"]
      )
    })
  )

  it.effect("when stopped, waits neither for a store that hangs nor for an `onRun` that never returns (R-17)", () =>
    Effect.gen(function* () {
      const stops = Effect.fnUntraced(function* (store: RunStore.RunStoreShape, onRun: RunWorker.Options["onRun"]) {
        const worker = RunWorker.run({ agents: [agent], ...(onRun === undefined ? {} : { onRun }) })
        const working = yield* Effect.forkChild(Effect.provide(worker, process(store)))
        yield* TestClock.adjust("1 second")
        const stopping = yield* Effect.forkChild(Fiber.interrupt(working), { startImmediately: true })
        yield* TestClock.adjust("10 seconds")
        assert.isDefined(stopping.pollUnsafe())
      })
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      let asked = 0
      const hanging = Effect.uninterruptible(
        Effect.andThen(
          Effect.sync(() => asked++),
          Effect.never
        )
      )
      yield* stops({ ...store, acquire: () => hanging }, undefined)
      assert.isAbove(asked, 0)
      yield* stops({ ...store, release: () => hanging }, undefined)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      yield* Effect.provide(Kernel.submit(agent, "pay ida", { runId: "s" }), layer)
      yield* stops(store, () => hanging)
      assert.strictEqual(yield* statusOf(store, "s"), "completed")
      assert.isAbove(asked, 2)
    })
  )
})
