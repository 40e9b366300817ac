// That a workflow ends the same wherever it is cut off is proven by test/reliability/crashMatrix.test.ts.
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Hooks, Kernel, KernelError, MediaStore, ProtocolRegistry, RunStore, Skill, SkillRegistry } from "kernai"
import { Replay, Scenario } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { agent, plan, play, slow, stored, takeUp, told } from "../support/workflow.ts"

/** A skill that takes a second and tells which calls entered it and which left it. */
const worker = (effects: Skill.Effects) => {
  const entered: Array<string> = []
  const left: Array<string> = []
  const skill = Skill.make("work", {
    description: "Works a second",
    input: Schema.Struct({}),
    effects,
    execute: (_, { callId }) =>
      Effect.gen(function* () {
        entered.push(callId)
        yield* Effect.sleep(1000)
        left.push(callId)
        return "worked"
      })
  })
  return { entered, left, skill }
}

/** `quick` is done at 100 ms, `slow` asks its model for a minute, `work` is inside its skill for a second. */
const script: Scenario.Script = {
  root: [plan(["quick", "slow", "work", { id: "after", depends_on: ["quick", "work"] }]), final("ok")],
  tasks: {
    quick: [slow(100, final("Q"))],
    slow: [slow(60_000, final("S"))],
    work: [command("work"), final("W")],
    after: [final("A")]
  }
}

/** Runs until 500 ms, then the process is gone. */
const cutOff = Effect.gen(function* () {
  const fiber = yield* Effect.forkChild(
    Kernel.run(agent(), "go", { runId: "run", provider: Scenario.scripted(script) })
  )
  yield* TestClock.adjust(500)
  yield* Fiber.interrupt(fiber)
})

describe("an interrupted workflow", () => {
  it.effect("continues with the remaining tasks and repeats no finished one (R-4, R-18)", () => {
    const { entered, left, skill } = worker("idempotent")
    return Effect.gen(function* () {
      yield* cutOff
      const { events, text } = yield* takeUp(script)
      assert.strictEqual(text, "ok")
      assert.deepStrictEqual(
        of(events, "task_start").map((event) => event.id),
        ["slow", "work", "after"]
      )
      assert.include(told(events), '{"quick":"Q","slow":"S","work":"W","after":"A"}')
      assert.include(told(events, "run:t1/after"), '<block type="result" name="quick">Q</block>')
      // The idempotent skill ran again with the same id, in the same child run.
      assert.deepStrictEqual(entered, ["run:t1/work:t1.0", "run:t1/work:t1.0"])
      assert.strictEqual(left.length, 1)
      assert.strictEqual(of(events, "run_started").length, 1)
      assert.deepStrictEqual(of(events, "workflow_start"), [])
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("emits no second `workflow_start` if it was interrupted before any task ended", () => {
    const { skill } = worker("idempotent")
    return Effect.gen(function* () {
      const small = { root: [plan(["work"]), final("ok")], tasks: { work: [command("work"), final("W")] } }
      const provider = Scenario.scripted(small)
      const fiber = yield* Effect.forkChild(Kernel.run(agent(), "go", { runId: "run", provider }))
      yield* TestClock.adjust(500)
      yield* Fiber.interrupt(fiber)
      const { events, text } = yield* takeUp(small)
      assert.strictEqual(text, "ok")
      assert.deepStrictEqual(of(events, "workflow_start"), [])
      assert.lengthOf(of(events, "workflow_complete"), 1)
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("continues a task that a suspended former owner started when it woke up (R-1, R-7)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const woken: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) =>
          state.runId === "run:t1/a" && records[0].revision === 1
            ? Effect.andThen(store.append([{ ...records[0], workerId: "before" }], state), store.append(records, state))
            : store.append(records, state)
      }
      const live = Kernel.layerNoProvider.pipe(
        Layer.provide([SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory]),
        Layer.provide(Layer.succeed(RunStore.RunStore, woken))
      )
      const small = { root: [plan(["a"]), final("ok")], tasks: { a: [final("A")] } }
      const { events, text } = yield* Effect.provide(play(small), live)
      assert.strictEqual(text, "ok")
      assert.include(told(events), '{"a":"A"}')
      assert.deepStrictEqual(of(events, "run_failed"), [])
    })
  )

  it.effect("refuses a child run that belongs to another task, and fails with the store's error (R-1)", () =>
    Effect.gen(function* () {
      const small = { root: [plan(["a"]), final("ok")], tasks: { a: [final("A")] } }
      const store = yield* RunStore.makeMemory
      const broken = new RunStore.StoreError({ operation: "create", reason: "corrupt", detail: "the disk is broken" })
      const on = (store: RunStore.RunStoreShape) =>
        Layer.fresh(Kernel.layerNoProvider).pipe(
          Layer.provide([SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory]),
          Layer.provide(Layer.succeed(RunStore.RunStore, store))
        )
      const lost = yield* Effect.provide(
        play(small),
        on({
          ...store,
          append: (records, state) => (state.depth > 0 ? Effect.fail(broken) : store.append(records, state))
        })
      )
      assert.deepStrictEqual(lost.error, broken)
      const foreign = Scenario.scripted({ root: [final("mine")], tasks: {} })
      yield* Effect.provide(Kernel.run(agent(), "go", { runId: "run:t1/a", provider: foreign }), on(store))
      const { error } = yield* Effect.provide(takeUp(small), on(store))
      assert.strictEqual(error?._tag, "RunExists")
    })
  )

  it.effect("reports the end of a finished task as before, without reading the task's journal (R-18, R-23)", () =>
    Effect.gen(function* () {
      const small = { root: [plan(["a"]), final("ok")], tasks: { a: [final("A")] } }
      const store = yield* RunStore.makeMemory
      const read: Array<string> = []
      const lost = new RunStore.StoreError({ operation: "commit", reason: "corrupt", detail: "the disk is broken" })
      let isLost = true
      const dying: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) =>
          isLost &&
          state.depth === 0 &&
          records.some(({ events }) => events.some(({ type }) => type === "tool_call_completed"))
            ? Effect.fail(lost)
            : store.append(records, state),
        read: (runId, from) => Stream.suspend(() => (read.push(runId), store.read(runId, from)))
      }
      const live = Kernel.layerNoProvider.pipe(
        Layer.provide([SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory]),
        Layer.provide(Layer.succeed(RunStore.RunStore, dying))
      )
      yield* Effect.gen(function* () {
        const before = yield* play(small)
        assert.deepStrictEqual(before.error, lost)
        isLost = false
        const after = yield* takeUp(small)
        assert.strictEqual(after.text, "ok")
        const [task, whole] = of(after.events, "run_completed")
        assert.deepStrictEqual(task, of(before.events, "run_completed")[0])
        assert.isFalse(task && "result" in task)
        assert.strictEqual(whole?.depth, 0)
        assert.notInclude(read, "run:t1/a")
      }).pipe(Effect.provide(live))
    })
  )

  it.effect("reads its own journal once, however many tasks continue", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const read: Array<string> = []
      const watched: RunStore.RunStoreShape = {
        ...store,
        read: (runId, from) => Stream.suspend(() => (read.push(runId), store.read(runId, from)))
      }
      const live = Kernel.layerNoProvider.pipe(
        Layer.provide([SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory]),
        Layer.provide(Layer.succeed(RunStore.RunStore, watched))
      )
      const names = Array.from({ length: 30 }, (_, index) => `t${index}`)
      const tasks = Object.fromEntries(names.map((name) => [name, [slow(60_000, final(name))]]))
      const many = { root: [plan(names), final("ok")], tasks }
      yield* Effect.gen(function* () {
        const run = Kernel.run(agent(), "go", { runId: "run", provider: Scenario.scripted(many) })
        const fiber = yield* Effect.forkChild(run)
        yield* TestClock.adjust(500)
        yield* Fiber.interrupt(fiber)
        read.length = 0
        const { events, text } = yield* takeUp(many)
        assert.strictEqual(text, "ok")
        assert.strictEqual(of(events, "task_complete").length, 30)
        assert.deepStrictEqual(
          read.filter((runId) => runId === "run"),
          ["run"]
        )
      }).pipe(Effect.provide(live))
    })
  )

  it.effect("asks about a task's write in flight, and runs nothing before the decision (DR-16)", () => {
    const { entered, skill } = worker("write")
    return Effect.gen(function* () {
      yield* cutOff
      const refused = yield* takeUp(script)
      assert.deepInclude(refused.error, { _tag: "InFlightToolCalls", callIds: ["run:t1/work:t1.0"] })
      assert.deepStrictEqual(
        refused.events.map((event) => event.type),
        ["run_failed"]
      )
      assert.strictEqual(entered.length, 1)
      const told1 = yield* takeUp(script, {
        recover: { "run:t1/work:t1.0": { resolve: { output: [{ type: "text", text: "it had worked" }] } } }
      })
      assert.strictEqual(told1.text, "ok")
      assert.strictEqual(entered.length, 1)
      assert.include(told(told1.events, "run:t1/work"), "it had worked")
    }).pipe(Effect.provide(kernel(skill)))
  })

  /** A process that takes the run up and dies before it launches anything. */
  const dyingBeforeLaunch = takeUp(script, {
    recover: { "run:t1/work:t1.0": "retry" },
    stop: () => new KernelError.AgentCrashError({ runId: "run", agentId: "agent" })
  })

  it.effect(
    "continues with the same tasks when the process that resumed it died before it launched them (R-1, R-4)",
    () => {
      const { entered, skill } = worker("idempotent")
      return Effect.gen(function* () {
        yield* cutOff
        const died = yield* dyingBeforeLaunch
        assert.strictEqual(died.error?._tag, "AgentCrashError")
        const { error, events, text } = yield* takeUp(script)
        assert.isUndefined(error)
        assert.strictEqual(text, "ok")
        assert.strictEqual(of(events, "run_failed").length, 0)
        assert.deepStrictEqual(entered, ["run:t1/work:t1.0", "run:t1/work:t1.0"])
        assert.deepStrictEqual(
          of(events, "run_started").map((event) => event.runId),
          ["run:t1/after"]
        )
      }).pipe(Effect.provide(kernel(skill)))
    }
  )

  it.effect(
    "passes its tasks the context given at the resume, even if that process died before it continued them (DR-9)",
    () => {
      const { skill } = worker("idempotent")
      return Effect.gen(function* () {
        yield* cutOff
        const stop = () => new KernelError.AgentCrashError({ runId: "run", agentId: "agent" })
        yield* takeUp(script, { stop, context: { who: "Ada", sure: false } })
        yield* takeUp(script, { stop, context: { sure: true } })
        assert.strictEqual((yield* takeUp(script, { context: { last: true } })).text, "ok")
        const context = { who: "Ada", sure: true, last: true }
        assert.deepStrictEqual((yield* stored("run")).context, context)
        assert.deepStrictEqual((yield* stored("run:t1/work")).context, context)
        assert.deepStrictEqual((yield* stored("run:t1/slow")).context, context)
      }).pipe(Effect.provide(kernel(skill)))
    }
  )

  it.effect(
    "still asks about a task's write when the process that resumed it died before it launched the task (DR-16)",
    () => {
      const { entered, skill } = worker("write")
      return Effect.gen(function* () {
        yield* cutOff
        yield* dyingBeforeLaunch
        const refused = yield* takeUp(script)
        assert.deepInclude(refused.error, { _tag: "InFlightToolCalls", callIds: ["run:t1/work:t1.0"] })
        assert.deepStrictEqual(
          refused.events.map((event) => event.type),
          ["run_failed"]
        )
        const { text } = yield* takeUp(script, { recover: { "run:t1/work:t1.0": "retry" } })
        assert.strictEqual(text, "ok")
        assert.strictEqual(entered.length, 2)
      }).pipe(Effect.provide(kernel(skill)))
    }
  )

  it.effect("repeats the write when the decision says so (DR-17)", () => {
    const { entered, skill } = worker("write")
    return Effect.gen(function* () {
      yield* cutOff
      const { text } = yield* takeUp(script, { recover: { "run:t1/work:t1.0": "retry" } })
      assert.strictEqual(text, "ok")
      assert.deepStrictEqual(entered, ["run:t1/work:t1.0", "run:t1/work:t1.0"])
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("uses a given result of a task without running the task", () => {
    const { entered, skill } = worker("write")
    return Effect.gen(function* () {
      yield* cutOff
      const { events, text } = yield* takeUp(script, {
        recover: { "run:t1/work": { resolve: { output: [{ type: "text", text: "given" }] } } }
      })
      assert.strictEqual(text, "ok")
      assert.include(told(events), '"work":"given"')
      assert.strictEqual(entered.length, 1)
    }).pipe(Effect.provide(kernel(skill)))
  })
})

describe("a workflow whose task was paused by a hook", () => {
  const script: Scenario.Script = { root: [plan(["a"]), final("ok")], tasks: { a: [final("A")] } }
  const gate = Hooks.layer({
    onTurnPrepared: ({ context, state }) =>
      Effect.sync(() => (state.depth === 0 || context["approved"] === true ? undefined : Hooks.pause("not approved")))
  })

  it.effect("asks the hook again on resume, with the context given at the resume (DR-9)", () =>
    Effect.gen(function* () {
      yield* play(script, { context: { who: "Ada" } })
      const refused = yield* takeUp(script, { context: { seen: true } })
      assert.deepStrictEqual(
        of(refused.events, "paused").map(({ depth, reason }) => ({ depth, reason })),
        [1, 0].map((depth) => ({ depth, reason: "not approved" }))
      )
      assert.strictEqual((yield* takeUp(script, { context: { approved: true } })).text, "ok")
      const context = { who: "Ada", seen: true, approved: true }
      assert.deepStrictEqual((yield* stored("run:t1/a")).context, context)
      assert.deepStrictEqual((yield* stored("run")).context, context)
      assert.strictEqual((yield* Replay.run(agent(), "run")).state.status.type, "completed")
    }).pipe(Effect.provide([kernel(), gate]))
  )

  /** The first task pauses when its turn is done; the other asks its model for a minute. */
  const both: Scenario.Script = {
    root: [plan(["a", "slow"]), final("ok")],
    tasks: { a: [command("/tasks"), final("A")], slow: [slow(60_000, final("S"))] }
  }
  const settling = Hooks.layer({
    onTurnCompleted: ({ state }) =>
      Effect.sync(() => (state.taskId === "a" && state.turns.length === 1 ? Hooks.pause("look at it") : undefined))
  })
  const paused = (events: Parameters<typeof of>[0]) =>
    of(events, "paused").map(({ depth, reason }) => ({ depth, reason }))

  it.effect("pauses on resume, even if it was interrupted before it learned of the task's pause (DR-9)", () =>
    Effect.gen(function* () {
      const cut = yield* Effect.forkChild(
        Kernel.run(agent(), "go", { runId: "run", provider: Scenario.scripted(both) })
      )
      yield* TestClock.adjust(500)
      yield* Fiber.interrupt(cut)
      assert.strictEqual((yield* stored("run:t1/a")).status.type, "paused")
      const heard = yield* takeUp(both)
      assert.deepStrictEqual(paused(heard.events), [{ depth: 0, reason: "look at it" }])
      assert.strictEqual((yield* stored("run")).currentTurn?.completed.length, 1)
      // Whoever goes on from there goes on with the task.
      yield* Kernel.answer("run", [])
      assert.strictEqual((yield* takeUp(both)).text, "ok")
      assert.strictEqual((yield* Replay.run(agent(), "run")).state.status.type, "completed")
    }).pipe(Effect.provide([kernel(), settling]))
  )

  it.effect("continues after its own resume of a task that paused again (DR-9)", () =>
    Effect.gen(function* () {
      const twice: Scenario.Script = {
        root: [plan(["a"]), final("ok")],
        tasks: { a: [command("/tasks"), command("/tasks"), final("A")] }
      }
      const looks = Hooks.layer({
        onTurnCompleted: ({ state }) =>
          Effect.sync(() => (state.taskId === "a" && state.turns.length < 3 ? Hooks.pause("look at it") : undefined))
      })
      yield* Effect.gen(function* () {
        yield* play(twice)
        // The clock stands still only here.
        yield* TestClock.adjust("1 second")
        const provider = Scenario.scripted(twice)
        const alone = yield* Effect.flip(Kernel.resume(agent(), "run:t1/a", { provider }))
        assert.strictEqual(alone._tag, "RunPaused")
        yield* TestClock.adjust("1 second")
        // It is told of that pause once, and then goes on.
        yield* Kernel.answer("run", [])
        assert.deepStrictEqual(paused((yield* takeUp(twice)).events), [{ depth: 0, reason: "look at it" }])
        yield* Kernel.answer("run", [])
        assert.strictEqual((yield* takeUp(twice)).text, "ok")
      }).pipe(Effect.provide(looks))
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is not paused again by an answered pause when the process dies before the task continues (DR-9)", () =>
    Effect.gen(function* () {
      yield* play(both)
      assert.strictEqual((yield* stored("run")).status.type, "paused")
      yield* Kernel.answer("run", [])
      const dying = () => new KernelError.AgentCrashError({ runId: "run", agentId: "agent" })
      assert.strictEqual((yield* takeUp(both, { stop: dying })).error?._tag, "AgentCrashError")
      const { events, text } = yield* takeUp(both)
      assert.deepStrictEqual(paused(events), [])
      assert.strictEqual(text, "ok")
      assert.strictEqual((yield* Replay.run(agent(), "run")).state.status.type, "completed")
    }).pipe(Effect.provide([kernel(), settling]))
  )
})
