/** Blame for crashes: a worker dies of one run, with others beside it. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  Kernel,
  MediaStore,
  ProtocolRegistry,
  RunDriver,
  RunStore,
  RunWorker,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { statusOf } from "../support/worker.ts"

const agent = Agent.make({ name: "clerk", instructions: "", model: "m" })

const kernelOn = (store: RunStore.RunStoreShape) =>
  Kernel.layerNoProvider.pipe(
    Layer.provide([SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )

/** The store of a process, which reaches it no more once it is dead. */
const until = (isDead: () => boolean, store: RunStore.RunStoreShape): RunStore.RunStoreShape => {
  const alive = <A, E>(effect: Effect.Effect<A, E>) => Effect.suspend(() => (isDead() ? Effect.never : effect))
  return {
    ...store,
    append: (records, state) => alive(store.append(records, state)),
    acquire: (runId, claim) => alive(store.acquire(runId, claim)),
    release: (runId, workerId) => alive(store.release(runId, workerId)),
    head: (runId) => alive(store.head(runId)),
    load: (runId) => alive(store.load(runId)),
    list: (filter) => alive(store.list(filter)),
    offers: undefined
  }
}

/** A worker that dies when it runs `bad`. Every other run takes a step of 25 seconds. */
const life = Effect.fnUntraced(function* (store: RunStore.RunStoreShape) {
  const death = yield* Deferred.make<void>()
  let isDead = false
  const die = Effect.suspend(() => {
    isDead = true
    return Effect.andThen(Deferred.succeed(death, undefined), Effect.never)
  })
  const good = Effect.as(Effect.sleep("25 seconds"), final("fine"))
  const resume = ({ runId }: RunStore.RunHead) => ({
    provider: MockProvider.make().onCall(() => (runId.startsWith("bad") ? die : good))
  })
  const worker = RunWorker.run({ agents: [agent], concurrency: 20, lease: "3 seconds", resume })
  const fiber = yield* Effect.forkDetach(Effect.provide(worker, kernelOn(until(() => isDead, store))))
  yield* Effect.onInterrupt(Deferred.await(death), () => Fiber.interrupt(fiber))
  fiber.interruptUnsafe()
})

/** A model whose first reply takes a second, and whose second one takes an hour. */
const twoReplies = () => ({
  provider: MockProvider.make().onCall(({ messages }) =>
    messages.some(({ role }) => role === "assistant")
      ? Effect.as(Effect.sleep("1 hour"), final("fine"))
      : Effect.as(Effect.sleep("1 second"), command("unknown", {}))
  )
})

/** Attempts all runs in a process that lives. */
const worked = () => RunWorker.run({ agents: [agent], concurrency: 20, resume: twoReplies })
const driven = (runIds: ReadonlyArray<string>) =>
  Effect.flatMap(RunDriver.make({ agents: [agent], resume: twoReplies }), (driver) =>
    Effect.forEach(runIds, (runId) => driver.drive(runId, { isLost: () => false }), { concurrency: "unbounded" })
  )

const submit = (store: RunStore.RunStoreShape, runId: string) =>
  Effect.provide(Kernel.submit(agent, "go", { runId, provider: MockProvider.make(final("fine")) }), kernelOn(store))

describe("a worker that dies of a run", () => {
  it.effect("fails that run alone, and its neighbours complete", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const innocent = ["a", "b", "c", "d", "e"]
      for (const runId of [...innocent, "bad"]) yield* submit(store, runId)
      const supervisor = yield* Effect.forkChild(Effect.forever(life(store)))
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(yield* statusOf(store, "bad"), "failed")
      for (const runId of innocent) assert.strictEqual(yield* statusOf(store, runId), "completed", runId)
      const records = yield* Stream.runCollect(store.read("bad"))
      assert.deepStrictEqual(
        records.flatMap(({ delta, op }) => (op === "resume" ? [delta.alone === true] : [])),
        [false, true, true, true, true, true, true]
      )
      yield* Fiber.interrupt(supervisor)
    })
  )

  it.effect("says in its error what the run was doing, and attempts it again once a person says so", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const death = yield* Deferred.make<void>()
      let isSound = false
      const burn = Skill.make("burn", {
        description: "",
        input: Schema.Struct({}),
        effects: "idempotent",
        execute: () => Effect.suspend(() => (isSound ? Effect.succeed("ok") : Deferred.await(death)))
      })
      const burner = Agent.make({ name: "burner", instructions: "", model: "m", skills: [burn] })
      const provider = MockProvider.make().onCall((_, call) => (call === 0 ? command("burn", {}) : final("done")))
      yield* Effect.provide(Kernel.submit(burner, "go", { runId: "bad", provider }), kernelOn(store))
      const process = Effect.fnUntraced(function* () {
        let isDead = false
        const worker = RunWorker.run({ agents: [burner], lease: "3 seconds", resume: () => ({ provider }) })
        const fiber = yield* Effect.forkDetach(Effect.provide(worker, kernelOn(until(() => isDead, store))))
        const die = Effect.sync(() => {
          isDead = true
          fiber.interruptUnsafe()
        })
        yield* Effect.ensuring(Effect.sleep("20 seconds"), die)
      })
      const supervisor = yield* Effect.forkChild(Effect.forever(process()))
      yield* TestClock.adjust("30 minutes")
      yield* Fiber.interrupt(supervisor)
      const { status } = Option.getOrThrow(yield* store.head("bad"))
      assert.deepInclude(status, { type: "failed" })
      if (status.type !== "failed") return
      assert.deepInclude(status.error, { tag: "RunPoisoned" })
      assert.deepInclude(status.error.fields, {
        turn: 1,
        phase: "tool_call_started",
        calls: [{ runId: "bad", callId: "bad:t1.0", name: "burn" }]
      })
      assert.include(status.error.message, "in turn 1 after tool_call_started, during burn (bad:t1.0)")
      isSound = true
      const work = RunWorker.runOnce({ agents: [burner], resume: () => ({ provider }) })
      assert.strictEqual(yield* Effect.provide(work, kernelOn(store)), 0)
      yield* Effect.provideService(Kernel.answer("bad", []), RunStore.RunStore, store)
      assert.strictEqual(yield* Effect.provide(work, kernelOn(store)), 1)
      assert.strictEqual(yield* statusOf(store, "bad"), "completed")
    })
  )

  for (const [by, work] of Object.entries({ worker: worked, driver: driven })) {
    it.effect(`keeps no suspect waiting for another one that has made progress, by a ${by}`, () =>
      Effect.gen(function* () {
        const store = yield* RunStore.makeMemory
        const ids = ["a", "b", "c", "d", "bad"]
        for (const runId of ids) yield* submit(store, runId)
        const dying = yield* Effect.forkChild(life(store))
        yield* TestClock.adjust("1 minute")
        yield* Fiber.join(dying)
        const innocent = ids.filter((runId) => runId !== "bad")
        const working = yield* Effect.forkDetach(Effect.provide(work(innocent), kernelOn(store)))
        yield* TestClock.adjust("1 minute")
        for (const runId of innocent) {
          const events = (yield* Stream.runCollect(store.read(runId))).flatMap(({ events }) => events)
          assert.include(
            events.map(({ type }) => type),
            "model_completed",
            runId
          )
        }
        working.interruptUnsafe()
        yield* TestClock.adjust("1 minute")
      })
    )
  }

  it.effect("completes the neighbours of two such runs, too", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const innocent = ["a", "b", "c"]
      for (const runId of ["bad1", ...innocent, "bad2"]) yield* submit(store, runId)
      const supervisor = yield* Effect.forkChild(Effect.forever(life(store)))
      yield* TestClock.adjust("15 minutes")
      for (const runId of ["bad1", "bad2"]) assert.strictEqual(yield* statusOf(store, runId), "failed")
      for (const runId of innocent) assert.strictEqual(yield* statusOf(store, runId), "completed", runId)
      yield* Fiber.interrupt(supervisor)
    })
  )
})
