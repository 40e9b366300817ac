import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Layer, Option, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  Kernel,
  MediaStore,
  Middleware,
  Protocol,
  ProtocolRegistry,
  RunStore,
  RunWorker,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider, Scenario } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { plan, agent as planner } from "../support/workflow.ts"

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all", protocols: ["bank"] })

/** A process that notes which `write` calls it enters. Before it enters its first call, `before` happens. */
const processOn = (
  store: RunStore.RunStoreShape,
  name: string,
  entered: Array<string>,
  before: Effect.Effect<unknown, unknown> = Effect.void
) => {
  let isFirst = true
  const enter = (what: string) => Effect.sync(() => void entered.push(`${name} ${what}`))
  const pay = Skill.dynamic("pay", {
    description: "pays",
    inputSchema: { type: "object" },
    execute: ({ to }) => Effect.as(enter(`pays ${JSON.stringify(to)}`), "paid")
  })
  const bank = Protocol.make("bank", {
    handle: () => Effect.as(enter("asks the bank"), "done")
  })
  const paused = Middleware.layer({
    callTool: (run, next) => {
      const first = isFirst
      isFirst = false
      return first ? Effect.andThen(Effect.orDie(before), next(run)) : next(run)
    }
  })
  return Layer.fresh(Kernel.layerNoProvider).pipe(
    Layer.provide([SkillRegistry.layer(pay), ProtocolRegistry.layer(bank), MediaStore.layerMemory, paused]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )
}

/** Whoever resumes says that every call in flight may be made again. */
const retried = (runId: string) =>
  Effect.map(RunStore.inFlight(runId), (calls) => ({
    recover: Object.fromEntries(calls.map(({ callId }) => [callId, "retry" as const]))
  }))

const statusOf = (store: RunStore.RunStoreShape) =>
  Effect.map(store.head("run"), (head) => Option.getOrThrow(head).status.type)

const bankBlock = `<block type="bank">pay</block>`

describe("a process that lost its run between launching a write call and entering it (R-2, R-5)", () => {
  for (const { agent: of = agent, name, script, writes } of [
    { name: "a skill", writes: 1, script: { root: [command("pay", { to: "eva" }), final("ok")] } },
    { name: "a protocol", writes: 1, script: { root: [bankBlock, final("ok")] } },
    {
      name: "one of several calls at once",
      writes: 2,
      agent: { ...agent, concurrency: 2 },
      script: { root: [command("pay", { to: 1 }) + command("pay", { to: 2 }), final("ok")] }
    },
    {
      name: "a call of a task",
      writes: 1,
      agent: planner(),
      script: { root: [plan(["a"]), final("ok")], tasks: { a: [command("pay"), final("A")] } }
    }
  ]) {
    it.effect(`does not enter ${name} that another process executed meanwhile, and stores nothing more`, () =>
      Effect.gen(function* () {
        const store = yield* RunStore.makeMemory
        const entered: Array<string> = []
        const provider = () => ({ provider: Scenario.scripted(script) })
        const takeOver = Effect.flatMap(retried("run"), (how) =>
          Kernel.resume(of, "run", { ...how, ...provider(), workerId: "second" })
        ).pipe(Effect.provide(processOn(store, "second", entered)))
        const first = Kernel.run(of, "go", { runId: "run", ...provider(), workerId: "first" })
        const error = yield* Effect.flip(Effect.provide(first, processOn(store, "first", entered, takeOver)))
        assert.strictEqual(error._tag, "AgentCrashError")
        assert.lengthOf(entered, writes)
        assert.isTrue(
          entered.every((line) => line.startsWith("second ")),
          entered.join()
        )
        assert.strictEqual(yield* statusOf(store), "completed")
        const records = yield* Stream.runCollect(store.read("run"))
        const taken = records.findIndex(({ op }) => op === "resume")
        assert.isTrue(records.slice(taken).every(({ workerId }) => workerId.startsWith("second#")))
      })
    )
  }

  it.effect("does not enter a call when another worker has only claimed its run", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const entered: Array<string> = []
      const claim = store.acquire("run", { workerId: "second", lease: "1 minute" })
      const provider = Scenario.scripted({ root: [command("pay"), final("ok")] })
      const error = yield* Effect.flip(
        Kernel.run(agent, "go", { runId: "run", provider, workerId: "first" }).pipe(
          Effect.provide(processOn(store, "first", entered, claim))
        )
      )
      assert.strictEqual(error._tag, "AgentCrashError")
      assert.deepStrictEqual(entered, [])
    })
  )

  it.effect("does not enter a call once its own lease has expired, though no other worker took the run", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const entered: Array<string> = []
      const ends: Array<string> = []
      const provider = Scenario.scripted({ root: [command("pay"), final("ok")] })
      const clock = yield* Clock.clockWith(Effect.succeed)
      let frozen = 0n
      // Nothing in the process runs while it is stopped: its monotonic clock is what it finds changed.
      const stopped: Clock.Clock = Object.assign(Object.create(clock), {
        monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe() + frozen
      })
      const freeze = Effect.sync(() => (frozen = 31_000_000_000n))
      yield* Kernel.submit(agent, "go", { runId: "run", provider }).pipe(
        Effect.provide(processOn(store, "desk", entered))
      )
      const work = RunWorker.runOnce({
        agents: [agent],
        resume: () => ({ provider }),
        onRun: (_, exit) => Effect.sync(() => void ends.push(String(exit)))
      })
      yield* work.pipe(
        Effect.provide(processOn(store, "first", entered, freeze)),
        Effect.provideService(Clock.Clock, stopped)
      )
      assert.include(ends[0], "AgentCrashError")
      assert.deepStrictEqual(entered, [])
    })
  )

  it.effect("enters the call when no other process took the run although the store's clock was set forward", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const entered: Array<string> = []
      const provider = Scenario.scripted({ root: [command("pay"), final("ok")] })
      yield* Kernel.submit(agent, "go", { runId: "run", provider }).pipe(
        Effect.provide(processOn(store, "desk", entered))
      )
      // To end the lease in the store is what its clock does when it is set forward by an hour.
      const expire = store.acquire("run", { workerId: "first", lease: 0 })
      const work = RunWorker.runOnce({ agents: [agent], workerId: "first", resume: () => ({ provider }) })
      yield* Effect.provide(work, processOn(store, "first", entered, expire))
      assert.deepStrictEqual(entered, [`first pays undefined`])
      assert.strictEqual(yield* statusOf(store), "completed")
    })
  )

  for (const { awayFor, name, text } of [
    { name: "enters the call once a store that was away for seconds confirms the lease", awayFor: 5_000, text: "paid" },
    { name: "tells the model that a call was not started when the store cannot confirm the lease", text: "sorry" }
  ]) {
    it.effect(name, () =>
      Effect.gen(function* () {
        const store = yield* RunStore.makeMemory
        const entered: Array<string> = []
        let isAway = false
        const away = new RunStore.StoreError({ operation: "read", reason: "unavailable", detail: "away" })
        const weak = { ...store, head: (id: string) => (isAway ? Effect.fail(away) : store.head(id)) }
        const provider = MockProvider.make({ calls: [{ id: "a", name: "pay", input: {} }] }, text)
        const tools = { ...agent, dialect: "tools" as const }
        const leave = Effect.sync(() => (isAway = true))
        const running = yield* Effect.forkChild(
          Kernel.run(tools, "go", { runId: "run", provider }).pipe(
            Effect.provide(processOn(weak, "first", entered, leave))
          )
        )
        if (awayFor !== undefined) {
          yield* TestClock.adjust(awayFor)
          isAway = false
        }
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* Fiber.join(running)).text, text)
        assert.lengthOf(entered, awayFor === undefined ? 0 : 1)
        const state = Option.getOrThrow(yield* store.load("run"))
        const error = state.turns[0]?.completed[0]?.error?.message
        if (awayFor === undefined) assert.include(error, "The call was not started")
        else assert.isUndefined(error)
      })
    )
  }
})
