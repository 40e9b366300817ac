/** Workers that an operator drains. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, Processes, RunStore, RunWorker } from "kernai"
import { setEntry } from "../../src/internal/kernel/storedProcesses.ts"
import { agent } from "../support/clerk.ts"
import { foreign, opsOf, process, statusOf } from "../support/worker.ts"

/** A store in memory, and workers of it whose payments take three seconds. */
const setting = Effect.map(RunStore.makeMemory, (store) => {
  const slow = process(store, Effect.as(Effect.sleep("3 seconds"), "ok"), "write")
  return {
    store,
    submit: (runId: string) => Effect.provide(Kernel.submit(agent, "pay eva", { runId }), slow),
    worker: (workerId: string, agents: ReadonlyArray<typeof agent> = [agent]) =>
      Effect.tap(Effect.forkChild(Effect.provide(RunWorker.run({ agents, workerId, concurrency: 2 }), slow)), () =>
        TestClock.adjust("2 seconds")
      ),
    drain: (target: Processes.Target) =>
      Effect.provideService(Processes.drain(target, { by: "ada", reason: "rollout" }), RunStore.RunStore, store),
    undrain: (target: Processes.Target) => Effect.provideService(Processes.undrain(target), RunStore.RunStore, store),
    list: listOf(store),
    states: Effect.map(listOf(store), (all) => all.map(({ agents, name, state }) => [name, state, agents[0]?.runs]))
  }
})

/** Lists the processes, as time passes until they have answered or are late. */
const listOf = (store: RunStore.RunStoreShape) =>
  Effect.gen(function* () {
    const listing = yield* Effect.forkChild(Effect.provideService(Processes.list(), RunStore.RunStore, store))
    while (listing.pollUnsafe() === undefined) yield* TestClock.adjust("100 millis")
    return yield* Fiber.join(listing)
  })

describe("a drained worker", () => {
  it.effect("starts no run, completes the step of the run that it has, and hands it to another worker", () =>
    Effect.gen(function* () {
      const { drain, states, store, submit, worker } = yield* setting
      yield* worker("a")
      yield* submit("r")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* statusOf(store, "r"), "running")
      yield* drain({ process: "a" })
      yield* submit("s")
      yield* TestClock.adjust("1 minute")
      const state = Option.getOrThrow(yield* store.load("r"))
      assert.deepStrictEqual(state.status, { type: "running", phase: "tool_call_completed" })
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
      assert.deepStrictEqual(yield* opsOf(store, "s"), ["phase"])
      assert.deepStrictEqual(yield* states, [["a", "drained", 0]])
      yield* worker("b")
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual([yield* statusOf(store, "r"), yield* statusOf(store, "s")], ["completed", "completed"])
      assert.deepStrictEqual(yield* states, [
        ["a", "drained", 0],
        ["b", "running", 0]
      ])
    })
  )

  it.effect("is draining until its step is completed, and takes runs again once it is undrained", () =>
    Effect.gen(function* () {
      const { drain, list, states, store, submit, undrain, worker } = yield* setting
      yield* worker("a")
      yield* submit("r")
      yield* TestClock.adjust("1 second")
      yield* drain({ process: "a" })
      assert.deepStrictEqual(
        (yield* list).map(({ holds, state }) => [state, holds.map(({ runId }) => runId)]),
        [["draining", ["r"]]]
      )
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(yield* states, [["a", "drained", 0]])
      yield* undrain({ process: "a" })
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.deepStrictEqual(yield* states, [["a", "running", 0]])
    })
  )

  it.effect("is drained of one agent or version, also when it starts later, and works on for the others", () =>
    Effect.gen(function* () {
      const { drain, states, store, submit, worker } = yield* setting
      yield* drain({ agent: "clerk", version: "7" })
      yield* worker("a", [{ ...agent, version: "7" }, foreign])
      yield* worker("b", [{ ...agent, version: "7" }])
      yield* submit("r")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
      assert.deepStrictEqual(yield* states, [
        ["a", "running", 0],
        ["b", "drained", 0]
      ])
      yield* worker("c", [{ ...agent, version: "8" }])
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("is told within seconds through a store that announces no notes", () =>
    Effect.gen(function* () {
      const { drain, store, submit } = yield* setting
      const notes = store.notes && { list: store.notes.list, set: store.notes.set }
      const silent = process({ ...store, notes }, Effect.as(Effect.sleep("1 hour"), "ok"), "write")
      const worker = RunWorker.run({ agents: [agent], workerId: "a" })
      yield* Effect.forkChild(Effect.provide(worker, silent), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* drain({})
      yield* TestClock.adjust("5 seconds")
      yield* submit("r")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
    })
  )

  it.effect("ends its drain when it ends, and is silent when it died", () =>
    Effect.gen(function* () {
      const { drain, states, store, worker } = yield* setting
      const drains = Effect.provideService(Processes.drains, RunStore.RunStore, store)
      const ending = yield* worker("a")
      yield* drain({ process: "a" })
      assert.deepStrictEqual(yield* drains, [{ process: "a", at: 2_000, by: "ada", reason: "rollout" }])
      yield* drain({ process: "a", agent: "clerk" })
      yield* Fiber.interrupt(ending)
      assert.deepStrictEqual(yield* drains, [])
      assert.deepStrictEqual(yield* states, [])
      // A store of its own on the same runs, which loses what the process writes when it ends.
      let isDead = false
      const { notes } = store
      const mortal = notes && {
        ...notes,
        set: (key: string, text: string | undefined) =>
          Effect.suspend(() => (isDead ? Effect.void : notes.set(key, text)))
      }
      const dying = RunWorker.run({ agents: [agent], workerId: "b" })
      const died = yield* Effect.forkChild(Effect.provide(dying, process({ ...store, notes: mortal })))
      yield* TestClock.adjust("20 seconds")
      isDead = true
      yield* Fiber.interrupt(died)
      assert.deepStrictEqual(yield* states, [["b", "silent", 0]])
      yield* drain({ process: "b" })
      yield* TestClock.adjust("2 hours")
      assert.deepStrictEqual(yield* states, [])
      assert.deepStrictEqual(yield* drains, [])
    })
  )

  it.effect("takes runs when it starts again under the name of one that died while it was drained", () =>
    Effect.gen(function* () {
      const { drain, states, store, worker } = yield* setting
      const { notes } = store
      const died = yield* worker("a")
      yield* drain({ process: "a" })
      yield* drain({ agent: "writer" })
      const left = (yield* notes?.list("") ?? Effect.succeed([])).filter(({ key }) => !key.includes("call"))
      yield* Fiber.interrupt(died)
      for (const { key, text } of left) yield* notes?.set(key, text) ?? Effect.void
      yield* worker("a")
      assert.deepStrictEqual(yield* states, [["a", "running", 0]])
      const drains = yield* Effect.provideService(Processes.drains, RunStore.RunStore, store)
      assert.deepStrictEqual(
        drains.map(({ agent }) => agent),
        ["writer"]
      )
    })
  )

  it.effect("stays drained when it does not answer once after it was idle for hours", () =>
    Effect.gen(function* () {
      const { drain, states, store } = yield* setting
      const { notes } = store
      let isBusy = false
      const slow = notes && {
        ...notes,
        set: (key: string, text: string | undefined) =>
          Effect.suspend(() => (isBusy ? Effect.void : notes.set(key, text)))
      }
      const worker = RunWorker.run({ agents: [agent], workerId: "a" })
      yield* Effect.forkChild(Effect.provide(worker, process({ ...store, notes: slow })))
      yield* TestClock.adjust("1 second")
      yield* drain({ process: "a" })
      yield* TestClock.adjust("2 hours")
      isBusy = true
      assert.deepStrictEqual(yield* states, [["a", "silent", 0]])
      isBusy = false
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(yield* states, [["a", "drained", 0]])
    })
  )

  it.effect("is listed while another operator asks for the processes, too", () =>
    Effect.gen(function* () {
      const { drain, list, store, worker } = yield* setting
      yield* worker("a")
      const dead = { name: "b", since: 0, agents: [{ name: "clerk", runs: 0 }], holds: [] }
      if (store.notes !== undefined) yield* setEntry(store.notes, dead)
      yield* TestClock.adjust("20 seconds")
      const listing = yield* Effect.forkChild(list)
      yield* Effect.yieldNow
      yield* TestClock.adjust("1 second")
      yield* drain({ agent: "writer" })
      const states = (yield* Fiber.join(listing)).map(({ name, state }) => [name, state])
      assert.deepStrictEqual(states, [
        ["a", "running"],
        ["b", "silent"]
      ])
    })
  )

  it.effect("reads and writes nothing while nobody asks", () =>
    Effect.gen(function* () {
      const { states, store } = yield* setting
      const { notes } = store
      let uses = 0
      const counted = notes && {
        ...notes,
        list: (prefix: string) => Effect.tap(notes.list(prefix), () => Effect.sync(() => uses++)),
        set: (key: string, text: string | undefined) =>
          Effect.tap(notes.set(key, text), () => Effect.sync(() => uses++))
      }
      const worker = RunWorker.run({ agents: [agent], workerId: "a" })
      yield* Effect.forkChild(Effect.provide(worker, process({ ...store, notes: counted })), { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      const before = uses
      yield* TestClock.adjust("1 day")
      assert.strictEqual(uses, before)
      yield* states
      assert.isAbove(uses, before)
    })
  )

  it.effect("fails for a process that is not listed", () =>
    Effect.gen(function* () {
      const { drain } = yield* setting
      const error = yield* Effect.flip(drain({ process: "nobody" }))
      assert.strictEqual(error.message, "no process 'nobody' runs the runs of this store")
    })
  )
})
