import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Option, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Content, Hooks, Kernel, Policy, Provider, RunStore, RunWorker } from "kernai"
import { Scenario } from "kernai/testing"
import { agent } from "../support/clerk.ts"
import { command, final } from "../support/blocks.ts"
import { plan, slow, agent as planner } from "../support/workflow.ts"
import { crowded, opsOf, process, statusOf } from "../support/worker.ts"

describe("a worker", () => {
  it.effect("claims a submitted run and finishes it", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      assert.deepStrictEqual(yield* opsOf(store, "r"), ["phase"])
      const count = yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store))
      assert.strictEqual(count, 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("runs a submitted run that is stored, although the store never confirmed the offer (R-1, R-6)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const lost = Effect.fail(new RunStore.StoreError({ operation: "acquire", reason: "unavailable", detail: "lost" }))
      let failures = 0
      const hiccups: RunStore.RunStoreShape = {
        ...store,
        acquire: (...claim) => (failures++ === 0 ? lost : store.acquire(...claim))
      }
      const submit = (of: RunStore.RunStoreShape, runId: string) =>
        Effect.gen(function* () {
          const submitting = yield* Effect.forkChild(
            Effect.provide(Kernel.submit(agent, "pay eva", { runId }), process(of))
          )
          yield* TestClock.adjust("1 second")
          assert.strictEqual(yield* Fiber.join(submitting), runId)
        })
      yield* submit(hiccups, "late")
      yield* submit({ ...store, acquire: (...claim) => Effect.andThen(store.acquire(...claim), lost) }, "offered")
      yield* submit({ ...store, acquire: () => lost }, "orphan")
      const work = Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store))
      assert.strictEqual(yield* work, 2)
      assert.strictEqual(yield* statusOf(store, "late"), "completed")
      assert.strictEqual(yield* statusOf(store, "offered"), "completed")
      yield* TestClock.adjust("20 seconds")
      assert.strictEqual(yield* work, 1)
    })
  )

  it.effect("finds a run whose submitter was interrupted while the store accepted it (R-1, R-23)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const slow: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) => Effect.andThen(store.append(records, state), Effect.sleep("1 second"))
      }
      const submitting = yield* Effect.forkChild(
        Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(slow)),
        { startImmediately: true }
      )
      const interrupted = yield* Effect.forkChild(Fiber.interrupt(submitting), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(interrupted)
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store)), 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("refuses an invalid lease or concurrency before it looks for runs", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const wrong: ReadonlyArray<Pick<RunWorker.Options, "lease" | "concurrency">> = [
        ...([0, -1, -30_000, 999, NaN, Infinity, "Infinity", "0 seconds", "-1 minute", "999 millis"] as const).map(
          (lease) => ({ lease })
        ),
        { concurrency: 0 },
        { concurrency: NaN }
      ]
      for (const options of wrong) {
        const given = { agents: [agent], ...options }
        const inLayer = Effect.asVoid(Effect.scoped(Layer.build(RunWorker.layer(given))))
        for (const work of [RunWorker.run(given), Effect.asVoid(RunWorker.runOnce(given)), inLayer]) {
          const error = yield* Effect.flip(Effect.provide(work, layer))
          assert.deepStrictEqual(
            [error._tag, "path" in error && error.path],
            ["ConfigInvalid", Object.keys(options)[0]]
          )
        }
      }
      assert.deepStrictEqual(yield* opsOf(store, "r"), ["phase"])
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent], lease: "1 second" }), layer), 1)
    })
  )

  it.effect("applies the host's `allowedSkills` and `onTaskComplete`, neither of which is stored (BP-65, BP-103)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const paid: Array<string> = []
      const pay = Effect.sync(() => {
        paid.push("eva")
        return "ok"
      })
      const provider = Scenario.scripted({
        root: [plan(["a"]), final("done")],
        tasks: { a: [command("pay"), final("A")] }
      })
      yield* Effect.provide(Kernel.submit(planner(), "go", { runId: "r", provider }), process(store, pay))
      const told: Array<string> = []
      const resume = () => ({
        provider,
        allowedSkills: ["look"],
        onTaskComplete: ({ result, taskId }: Kernel.TaskReport) => Effect.sync(() => told.push(`${taskId}: ${result}`))
      })
      yield* Effect.provide(RunWorker.runOnce({ agents: [planner()], resume }), process(store, pay))
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.deepStrictEqual(paid, [])
      assert.deepStrictEqual(told, ["a: A"])
    })
  )

  it.effect("claims a run that pauses repeatedly as often as it is answered (DR-9)", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      let pauses = 0
      const gate = Hooks.layer({
        onTurnPrepared: () => Effect.sync(() => (++pauses > 10 ? undefined : Hooks.pause("not yet")))
      })
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), [layer, gate]))
      for (let seen = 1; seen <= 10; seen++) {
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual([pauses, yield* statusOf(store, "r")], [seen, "waiting"])
        yield* Effect.provide(Kernel.answer("r", []), layer)
      }
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("resumes a run with the known results of its calls, and retries later when they are unknown (DR-17)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let paid = 0
      const pay = Effect.andThen(
        Effect.sync(() => paid++),
        Effect.never
      )
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      const first = RunWorker.run({ agents: [agent], drain: 0 })
      const worker = yield* Effect.forkChild(Effect.provide(first, process(store, pay, "write")))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(worker)
      const away = new RunStore.StoreError({ operation: "ledger", reason: "unavailable", detail: "away" })
      let asked = 0
      const resume = ({ runId }: RunStore.RunHead) =>
        Effect.gen(function* () {
          if (asked++ === 0) return yield* away
          const calls = yield* RunStore.inFlight(runId)
          const known: Kernel.Recovery = { resolve: { output: [Content.text("paid before")] } }
          return { recover: Object.fromEntries(calls.map(({ callId }) => [callId, known])) }
        })
      const second = RunWorker.run({ agents: [agent], resume })
      yield* Effect.forkChild(Effect.provide(second, process(store, pay, "write")))
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual([asked, yield* statusOf(store, "r")], [1, "queued"])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([asked, paid, yield* statusOf(store, "r")], [2, 1, "completed"])
    })
  )

  it.effect("runs as many runs concurrently as configured", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      for (const runId of ["a", "b", "c"]) yield* submit(agent, runId)
      const slow = process(store, Effect.as(Effect.sleep("1 minute"), "ok"))
      const work = RunWorker.run({ agents: [agent], concurrency: 2 })
      const worker = yield* Effect.forkChild(Effect.provide(work, slow))
      yield* TestClock.adjust("10 seconds")
      assert.lengthOf(yield* store.list({ unleased: true }), 1)
      yield* TestClock.adjust("2 minutes")
      assert.lengthOf(yield* store.list({ status: ["completed"] }), 3)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("polls with the configured interval, worker id and grace period", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      // Somebody ran it without a lease, and is there no more.
      yield* submit(agent, "left")
      yield* store.release("left", Option.getOrThrow(yield* store.head("left")).lease?.workerId ?? "")
      const slow = process(store, Effect.as(Effect.sleep("1 second"), "ok"))
      const work = RunWorker.run({
        agents: [agent],
        workerId: "me",
        pollInterval: "10 seconds",
        orphanAfter: "1 minute"
      })
      const worker = yield* Effect.forkChild(Effect.provide(work, slow), { startImmediately: true })
      // Another process submits it, of which this one learns when it looks.
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process({ ...store }))
      const holder = Effect.map(store.head("r"), (head) => Option.getOrThrow(head).lease?.workerId)
      yield* TestClock.adjust("9 seconds")
      assert.notStrictEqual(yield* holder, "me")
      yield* TestClock.adjust("1500 millis")
      assert.strictEqual(yield* holder, "me")
      yield* TestClock.adjust("49 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.strictEqual(yield* statusOf(store, "left"), "running")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* statusOf(store, "left"), "completed")
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("runs until the scope of its layer closes", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      const scope = yield* Scope.make()
      yield* Layer.buildWithScope(Layer.provide(RunWorker.layer({ agents: [agent] }), layer), scope)
      yield* submit(agent, "r")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      yield* Scope.close(scope, Exit.void)
      yield* submit(agent, "s")
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* statusOf(store, "s"), "queued")
    })
  )

  it.effect("calls no model after the deadline of a run, which starts when the run is claimed (DR-21, R-19)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let asked = 0
      const scripted = Scenario.scripted({ root: [slow(20_000, final("late"))], tasks: {} })
      const provider: Provider.ProviderShape = {
        ...scripted,
        stream: (request) => Stream.suspend(() => (asked++, scripted.stream(request)))
      }
      const hasty = planner({ budget: { deadline: 10_000 } })
      yield* Effect.provide(Kernel.submit(hasty, "go", { runId: "r" }), process(store))
      yield* TestClock.adjust("1 hour")
      const ends: Array<string> = []
      const onRun = (_: RunStore.RunHead, exit: Exit.Exit<unknown, unknown>) =>
        Effect.sync(() => void ends.push(Exit.isFailure(exit) ? String(exit.cause.reasons[0]) : "done"))
      const work = RunWorker.run({ agents: [hasty], resume: () => ({ provider }), onRun })
      const worker = yield* Effect.forkChild(Effect.provide(work, process(store)))
      yield* TestClock.adjust("9 seconds")
      assert.deepStrictEqual([asked, ends.length], [1, 0])
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(asked, 1)
      assert.isTrue(ends.every((end) => end.includes("DeadlineExceeded")))
      // The life that it cut off, and one that found it over.
      assert.strictEqual(ends.length, 2)
      // The head stays at the last commit, so a worker with more time can continue.
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
      yield* Fiber.interrupt(worker)
      const patient = { ...hasty, budget: {} }
      const done = yield* Effect.forkChild(Effect.provide(Kernel.resume(patient, "r", { provider }), process(store)))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(done)).text, "late")
    })
  )

  it.effect("claims a run past its deadline once, and again when its agent allows more time (DR-21, CP-15)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const provider = Scenario.scripted({ root: [slow(20_000, final("late"))], tasks: {} })
      const within = (deadline: number) => planner({ budget: { deadline } })
      const ends: Array<string> = []
      const onRun = (_: RunStore.RunHead, exit: Exit.Exit<unknown, unknown>) =>
        Effect.sync(() => void ends.push(Exit.isFailure(exit) ? String(exit.cause.reasons[0]) : "done"))
      const working = (agent: RunWorker.Runnable) =>
        Effect.forkChild(
          Effect.provide(RunWorker.run({ agents: [agent], resume: () => ({ provider }), onRun }), process(store))
        )
      yield* Effect.provide(Kernel.submit(within(10_000), "go", { runId: "r" }), process(store))
      // The end of this one is never reported: it dies before the deadline.
      const cut = yield* Effect.forkChild(
        Effect.provide(Kernel.resume(within(10_000), "r", { provider, workerId: "dead" }), process(store))
      )
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.interrupt(cut)
      yield* store.acquire("r", { workerId: "dead", lease: "25 seconds" })
      const first = yield* working(within(10_000))
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(ends.length, 1)
      assert.include(ends[0], "DeadlineExceeded")
      yield* Fiber.interrupt(first)
      const second = yield* working(within(3_600_000))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(ends.slice(1), ["done"])
      yield* Fiber.interrupt(second)
    })
  )

  it.effect("retries a transient store failure when it is resumed, as at every commit (R-6)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      let failures = 0
      const hiccup = Effect.fail(
        new RunStore.StoreError({ operation: "acquire", reason: "unavailable", detail: "a moment" })
      )
      const flaky: RunStore.RunStoreShape = {
        ...store,
        acquire: (...asked) => (failures++ === 0 ? hiccup : store.acquire(...asked))
      }
      const resumed = yield* Effect.forkChild(Effect.provide(Kernel.resume(agent, "r"), process(flaky)))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(resumed)).status, "completed")
      assert.strictEqual(failures, 2)
    })
  )

  it.effect("finishes a run that a person approved in another process (DR-22)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      const work = Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store).pipe(Layer.provide(asks)))
      yield* work
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
      assert.strictEqual(yield* work, 0)
      const said = Kernel.answer("r", [{ callId: "call-a", approved: true, by: "eva" }])
      yield* Effect.provide(said, Layer.succeed(RunStore.RunStore, store))
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
      assert.strictEqual(yield* work, 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      const late = yield* Effect.flip(Effect.provide(said, Layer.succeed(RunStore.RunStore, store)))
      assert.strictEqual(late._tag, "QuestionNotFound")
    })
  )
})
