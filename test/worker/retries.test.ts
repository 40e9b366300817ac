import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Logger, Option, Schedule, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, Policy, Provider, RunStore, RunWorker } from "kernai"
import { MockProvider, Scenario } from "kernai/testing"
import { agent } from "../support/clerk.ts"
import { command, final } from "../support/blocks.ts"
import { oneByOne } from "../support/oneByOne.ts"
import { plan, agent as planner } from "../support/workflow.ts"
import { crowded, minutes, opsOf, process, statusOf } from "../support/worker.ts"

describe("a worker", () => {
  it.effect("retries a failed run while others are submitted faster than they are executed", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      const order: Array<string> = []
      yield* submit(agent, "failed")
      const provider = MockProvider.make("paid", "paid").failOnStep(0, "overloaded")
      const first = RunWorker.runOnce({ agents: [agent], retries: () => false, resume: () => ({ provider }) })
      yield* Effect.provide(first, process(store))
      assert.strictEqual(yield* statusOf(store, "failed"), "failed")
      for (const runId of ["a", "b", "c", "d", "e", "f"]) yield* submit(agent, runId)
      const work = RunWorker.run({
        agents: [agent],
        onRun: ({ runId }) => Effect.sync(() => void order.push(runId))
      })
      const worker = yield* Effect.forkChild(
        Effect.provide(work, process(store, Effect.as(Effect.sleep("500 millis"), "ok")))
      )
      yield* TestClock.adjust("30 seconds")
      assert.lengthOf(order, 7)
      // It waits for a second, in which two others run to their end and a third begins.
      assert.isBelow(order.indexOf("failed"), 4)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("retries a failed run when its provider was unreachable, or when configured to (R-13)", () =>
    Effect.gen(function* () {
      for (const [reason, told, ends] of [
        ["overloaded", {}, "completed"],
        ["authentication", {}, "failed"],
        ["authentication", { retries: () => true }, "completed"],
        ["overloaded", { retries: () => false }, "failed"],
        ["overloaded", { retries: RunWorker.isPassing }, "completed"],
        ["authentication", { retries: RunWorker.isPassing }, "failed"]
      ] as const) {
        const { layer, store, submit } = yield* crowded
        yield* submit(agent, "r")
        const provider = MockProvider.make("paid", "paid").failOnStep(0, reason)
        const retry = Schedule.spaced("40 seconds")
        const work = RunWorker.run({ agents: [agent], resume: () => ({ provider }), retry, ...told })
        const worker = yield* Effect.forkChild(Effect.provide(work, layer))
        yield* TestClock.adjust("30 seconds")
        assert.strictEqual(yield* statusOf(store, "r"), "failed")
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* statusOf(store, "r"), ends)
        yield* Fiber.interrupt(worker)
      }
    })
  )

  it.effect("does not wait for a clock that was set back by an hour since the run failed", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* TestClock.setTime(7_200_000)
      yield* submit(agent, "r")
      const provider = MockProvider.make("paid").failOnStep(0, "overloaded")
      const options = { agents: [agent], resume: () => ({ provider }) }
      yield* Effect.provide(RunWorker.runOnce({ ...options, retries: () => false }), layer)
      assert.strictEqual(yield* statusOf(store, "r"), "failed")
      yield* TestClock.setTime(3_600_000)
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run(options), layer))
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("retries on time when its clock is set back by an hour while it waits", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const clock = yield* Clock.clockWith(Effect.succeed)
      let skew = 0
      const millis = () => clock.currentTimeMillisUnsafe() + skew
      const jumping = { ...clock, currentTimeMillisUnsafe: millis, currentTimeMillis: Effect.sync(millis) }
      const provider = MockProvider.make("paid").failOnStep(0, "overloaded")
      const retry = Schedule.spaced("40 seconds")
      const worker = yield* RunWorker.run({ agents: [agent], resume: () => ({ provider }), retry }).pipe(
        Effect.provide(layer),
        Effect.provideService(Clock.Clock, jumping),
        Effect.forkChild
      )
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "failed")
      skew = -3_600_000
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "failed")
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("does not retry a run that failed outside a worker, even with a transient error", () =>
    Effect.gen(function* () {
      const { layer, store } = yield* crowded
      const provider = MockProvider.make("paid").failOnStep(0, "overloaded")
      yield* Effect.flip(Effect.provide(Kernel.run(agent, "pay eva", { runId: "r", provider }), layer))
      const work = RunWorker.run({ agents: [agent], resume: () => ({ provider }) })
      const worker = yield* Effect.forkChild(Effect.provide(work, layer))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* statusOf(store, "r"), "failed")
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect.each([
    [7, 6, {}],
    [3, 2, { retry: Schedule.upTo(Schedule.spaced("1 minute"), { times: 1 }) }]
  ] as const)(
    "retries a run that crashes repeatedly by its schedule, and gives up at the schedule's end: %i",
    ([all, early, told]) =>
      Effect.gen(function* () {
        const store = yield* RunStore.makeMemory
        yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
        // The third commit of every life fails: the store is there, the run does not come on.
        let commits = 0
        const weak = oneByOne(store, (record, state) =>
          record.op === "resume"
            ? store.append([record], state)
            : Effect.fail(new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: `${commits++}` }))
        )
        const worker = yield* Effect.forkChild(
          Effect.provide(RunWorker.run({ agents: [agent], ...told }), process(weak))
        )
        const lives = Effect.map(opsOf(store, "r"), (ops) => ops.filter((op) => op === "resume").length)
        // At once after the first crash.
        yield* TestClock.adjust("500 millis")
        yield* TestClock.adjust("500 millis")
        assert.strictEqual(yield* lives, 2)
        yield* TestClock.adjust("30 seconds")
        assert.strictEqual(yield* lives, early)
        yield* TestClock.adjust("10 minutes")
        assert.strictEqual(yield* lives, all)
        yield* Fiber.interrupt(worker)
      })
  )

  it.effect("fails a run that ends its worker's process each time, and reads it no more", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push(String(message)))
    return Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const runId = "r\u001b[2K\nINFO all is well"
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId }), process(store))
      // Nothing that a process does after it took the run up comes to be stored: the run is what ends it.
      const asked: Array<string> = []
      const ask = <A>(what: string, effect: A) => (asked.push(what), effect)
      const deadly: RunStore.RunStoreShape = {
        ...store,
        load: (id) => ask("load", store.load(id)),
        head: (id) => ask("head", store.head(id)),
        read: (...of) => ask("read", store.read(...of)),
        acquire: (...of) => ask("acquire", store.acquire(...of)),
        append: (records, state) =>
          records.every(({ events, op }) => op === "resume" || events.some(({ type }) => type === "run_failed"))
            ? store.append(records, state)
            : Effect.fail(new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: "gone" }))
      }
      const told: Array<string> = []
      const onRun = ({ status }: RunStore.RunHead) => Effect.sync(() => void told.push(status.type))
      const follower = yield* Effect.forkChild(
        Stream.runCollect(Stream.takeUntil(store.tail(runId), ({ events }) => events[0]?.type === "run_failed"))
      )
      const first = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent], onRun }), process(deadly)))
      yield* TestClock.adjust("10 minutes")
      const { status } = Option.getOrThrow(yield* store.head(runId))
      assert.deepInclude(status, { type: "failed" })
      if (status.type !== "failed") return
      assert.strictEqual(status.error.tag, "RunPoisoned")
      assert.deepStrictEqual(status.error.fields, { runId, attempts: 7, turn: 0, phase: "run_started", calls: [] })
      assert.lengthOf(yield* Fiber.join(follower), 9)
      assert.deepStrictEqual(told.slice(-2), ["queued", "failed"])
      assert.deepStrictEqual(
        lines.filter((line) => line.includes("failed:")),
        [
          "run r\\u{1b}[2K INFO all is well failed: its worker crashed or lost it 7 times without progress, in turn 0 after run_started; no worker tries it again"
        ]
      )
      asked.length = 0
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(asked, [])
      yield* Fiber.interrupt(first)
      // Where every failed run is retried, it was tried often enough, until a person says otherwise.
      const stubborn = RunWorker.run({ agents: [agent], retries: () => true })
      const worker = yield* Effect.forkChild(Effect.provide(stubborn, process(deadly)))
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(asked, ["read"])
      yield* Fiber.interrupt(worker)
      yield* Effect.provideService(Kernel.answer(runId, []), RunStore.RunStore, store)
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store)), 1)
      assert.strictEqual(yield* statusOf(store, runId), "completed")
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect(
    "retries a workflow as long as one of its tasks makes progress, over any number of workers (R-1, R-17)",
    () =>
      Effect.gen(function* () {
        const store = yield* RunStore.makeMemory
        const layer = process(store)
        const provider = Scenario.scripted(minutes(12))
        yield* Effect.provide(Kernel.submit(planner({ maxSteps: 20 }), "go", { runId: "r", provider }), layer)
        // Each worker lives long enough for one turn of the task.
        for (let n = 0; n < 14; n++) {
          const work = RunWorker.run({ agents: [planner({ maxSteps: 20 })], resume: () => ({ provider }) })
          const worker = yield* Effect.forkChild(Effect.provide(work, layer))
          yield* TestClock.adjust("100 seconds")
          const stopping = yield* Effect.forkChild(Fiber.interrupt(worker))
          yield* TestClock.adjust("10 seconds")
          yield* Fiber.join(stopping)
        }
        assert.strictEqual(yield* statusOf(store, "r"), "completed")
      })
  )

  it.effect("retries a run as long as it makes progress, however often its provider is down in between (R-1)", () =>
    Effect.gen(function* () {
      const { layer, store } = yield* crowded
      const talker = Agent.make({ name: "talker", instructions: "", model: "scripted", skills: "all", maxSteps: 20 })
      const away = new Provider.ProviderError({ provider: "scripted", reason: "disconnected", detail: "away" })
      // Prose is corrected, so the run advances by one turn each time.
      const provider = MockProvider.make().onCall((_, call) =>
        call % 2 === 1 ? Effect.fail(away) : call < 20 ? "still thinking" : final("done")
      )
      yield* Effect.provide(Kernel.submit(talker, "go", { runId: "r" }), layer)
      const work = RunWorker.run({ agents: [talker], resume: () => ({ provider }) })
      const worker = yield* Effect.forkChild(Effect.provide(work, layer))
      for (let n = 0; n < 30; n++) yield* TestClock.adjust("10 seconds")
      yield* Fiber.interrupt(worker)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.strictEqual((yield* opsOf(store, "r")).filter((op) => op === "resume").length, 11)
    })
  )

  it.effect("gives up on a workflow whose task makes no progress, at the end of its schedule", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const provider = Scenario.scripted(minutes(3))
      yield* Effect.provide(Kernel.submit(planner(), "go", { runId: "r", provider }), process(store))
      // The store takes nothing of the second turn of the task.
      const weak = oneByOne(store, (record, state) =>
        record.runId === "r:t1/a" && state.turns.length === 1 && record.op !== "resume"
          ? Effect.fail(new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: "no" }))
          : store.append([record], state)
      )
      const work = RunWorker.run({ agents: [planner()], resume: () => ({ provider }) })
      const worker = yield* Effect.forkChild(Effect.provide(work, process(weak)))
      const lives = Effect.map(opsOf(store, "r"), (ops) => ops.filter((op) => op === "resume").length)
      yield* TestClock.adjust("20 minutes")
      // One in which the task came on, and seven in which nothing did.
      assert.strictEqual(yield* lives, 8)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* lives, 8)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("gives up on a workflow without progress although another of its tasks waits for a person", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const tasks = { ...minutes(3).tasks, b: [command("pay"), final("B")] }
      const provider = Scenario.scripted({ root: [plan(["a", "b"]), final("done")], tasks })
      yield* Effect.provide(Kernel.submit(planner(), "go", { runId: "r", provider }), process(store))
      const weak = oneByOne(store, (record, state) =>
        record.runId === "r:t1/a" && state.turns.length === 1 && record.events[0]?.type === "model_completed"
          ? Effect.fail(new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: "no" }))
          : store.append([record], state)
      )
      const asking = Policy.layer(({ runId }) =>
        Effect.succeed(runId === "r:t1/b" ? Policy.confirm("it costs") : Policy.allowed)
      )
      const work = RunWorker.run({ agents: [planner()], resume: () => ({ provider }) })
      const worker = yield* Effect.forkChild(Effect.provide(work, [process(weak), asking]))
      const lives = Effect.map(opsOf(store, "r"), (ops) => ops.filter((op) => op === "resume").length)
      yield* TestClock.adjust("20 minutes")
      const spent = yield* lives
      assert.isAtMost(spent, 8)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* lives, spent)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("does not count an answer to a task as an attempt (DR-22)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const tasks = { a: [command("pay"), final("A")] }
      const provider = Scenario.scripted({ root: [plan(["a"]), final("done")], tasks })
      const asking = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      let lives = 0
      const onRun = () => Effect.sync(() => void lives++)
      const work = RunWorker.run({ agents: [planner()], resume: () => ({ provider }), onRun })
      // From the answer on the store takes nothing but that a run was taken up.
      let isWeak = false
      const weak = oneByOne(store, (record, state) =>
        isWeak && record.op !== "resume"
          ? Effect.fail(new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: "no" }))
          : store.append([record], state)
      )
      yield* Effect.provide(Kernel.submit(planner(), "go", { runId: "r", provider }), process(store))
      const worker = yield* Effect.forkChild(Effect.provide(work, [process(weak), asking]))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([yield* statusOf(store, "r"), lives], ["waiting", 1])
      isWeak = true
      const open = yield* Kernel.questions("r").pipe(Effect.provideService(RunStore.RunStore, store))
      const answers = open.map(({ callId }) => ({ callId, approved: true }))
      yield* Kernel.answer("r", answers).pipe(Effect.provideService(RunStore.RunStore, store))
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(lives, 1 + 7)
      yield* Fiber.interrupt(worker)
    })
  )
})
