import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer, Logger, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Hooks, Kernel, Limits, Provider, RunStore, Skill } from "kernai"
import { Scenario } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { agent, intervals, isTask, overlap, plan, play, slow, stored, told } from "../support/workflow.ts"

const down = new Provider.ProviderError({ provider: "script", reason: "server_error", detail: "the model is down" })

const noInput = { description: "Tests", input: Schema.Struct({}), effects: "read" } as const

describe("a task that fails", () => {
  it.effect("has its failure as its result; siblings and dependents run (BP-59)", () =>
    Effect.gen(function* () {
      const { events, text } = yield* play({
        root: [plan(["bad", "good", { id: "next", depends_on: ["bad"] }]), final("ok")],
        tasks: { bad: [down], good: [slow(50, final("G"))], next: [final("N")] }
      })
      assert.strictEqual(text, "ok")
      assert.deepStrictEqual(
        of(events, "task_error").map(({ error, id }) => [id, error]),
        [["bad", down.message]]
      )
      assert.include(told(events, "run:t1/next"), `<block type="result" name="bad">error: ${down.message}</block>`)
      assert.include(told(events), `{"bad":"error: ${down.message}","good":"G","next":"N"}`)
      assert.strictEqual((yield* stored("run:t1/bad")).status.type, "failed")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("has a result also when it gives up or dies of a bug, which is logged (W-14)", () => {
    const lines: Array<string> = []
    return Effect.gen(function* () {
      const { events, text } = yield* play(
        {
          root: [plan(["endless", "bug"]), final("ok")],
          tasks: { endless: [command("/tasks")], bug: [final("x")] }
        },
        {
          agent: { maxSteps: 3 },
          provider: {
            name: "script",
            stream: (request) => {
              if (isTask(request, "bug")) throw new Error("sk-secret-1234567890 at /home/me")
              return Scenario.scripted({
                root: [plan(["endless", "bug"]), final("ok")],
                tasks: { endless: [command("/tasks")] }
              }).stream(request)
            }
          }
        }
      )
      assert.strictEqual(text, "ok")
      assert.deepStrictEqual(
        new Map(of(events, "task_error").map(({ error, id }) => [id, error])),
        new Map([
          ["bug", "script: it failed unexpectedly"],
          ["endless", "Agent reached maximum steps (3)"]
        ])
      )
      assert.notInclude(told(events), "secret")
      assert.include(lines.join("\n"), "a model call failed unexpectedly")
      assert.include(lines.join("\n"), "<redacted> at /home/me")
    }).pipe(Effect.provide([kernel(), Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])]))
  })

  it.effect("is stopped at its time limit while its siblings continue", () =>
    Effect.gen(function* () {
      const { events, text } = yield* play({
        root: [plan(["hangs", "works"]), final("ok")],
        tasks: { hangs: [slow(10_000_000, final("never"))], works: [slow(240, final("W"))] }
      }).pipe(Effect.provideService(Limits.Limits, Limits.make({ taskTimeout: 250 })))
      assert.strictEqual(text, "ok")
      assert.deepStrictEqual(
        of(events, "task_error").map(({ error, id }) => [id, error]),
        [["hangs", "the task took longer than 250 ms"]]
      )
      assert.deepStrictEqual(intervals(events).get("hangs"), [0, 250])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is stopped at its own time limit, counted from its own start", () =>
    Effect.gen(function* () {
      const { events } = yield* play({
        root: [plan(["first", "second"], "sequential"), final("ok")],
        tasks: { first: [slow(200, final("F"))], second: [slow(200, final("S"))] }
      }).pipe(Effect.provideService(Limits.Limits, Limits.make({ taskTimeout: 250 })))
      assert.deepStrictEqual(
        of(events, "task_complete").map((event) => event.result),
        ["F", "S"]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is reported as interrupted when it interrupts itself, and nothing else is", () =>
    Effect.gen(function* () {
      const script = {
        root: [plan(["stops", "works"]), final("ok")],
        tasks: { works: [slow(100, final("W"))] }
      }
      const { events, text } = yield* play(script, {
        provider: {
          name: "script",
          stream: (request) =>
            isTask(request, "stops") ? Stream.fromEffect(Effect.interrupt) : Scenario.scripted(script).stream(request)
        }
      })
      assert.strictEqual(text, "ok")
      assert.include(told(events), `{"stops":"error: the task was interrupted","works":"W"}`)
    }).pipe(Effect.provide(kernel()))
  )
})

describe("a parent that ends", () => {
  /** Counts the skill calls that run now, and those that ever ran. */
  const counter = () => {
    const counts = { now: 0, most: 0, started: 0 }
    const skill = Skill.make("work", {
      ...noInput,
      execute: () =>
        Effect.acquireUseRelease(
          Effect.sync(() => {
            counts.now++
            counts.started++
            counts.most = Math.max(counts.most, counts.now)
          }),
          () => Effect.sleep(1000),
          () => Effect.sync(() => counts.now--)
        )
    })
    return { counts, skill }
  }
  const all = Array.from({ length: 20 }, (_, index) => `t${index}`)
  const script: Scenario.Script = {
    root: [plan(all), final("ok")],
    tasks: Object.fromEntries(all.map((id) => [id, [command("work"), command("work"), final(id)]]))
  }

  it.effect("by interruption leaves no task running, and no task gets a result (R-15, R-18)", () => {
    const { counts, skill } = counter()
    return Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(
        Kernel.run(agent(), "go", { runId: "run", provider: Scenario.scripted(script) })
      )
      yield* TestClock.adjust(1500)
      assert.deepStrictEqual(counts, { now: 8, most: 8, started: 16 })
      yield* Fiber.interrupt(fiber)
      assert.strictEqual(counts.now, 0)
      const exit = yield* Fiber.await(fiber)
      assert.isTrue(Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause))
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(counts.started, 16)
      const state = yield* stored("run")
      assert.strictEqual(state.status.type, "running")
      assert.strictEqual(state.currentTurn?.inFlight.length, 8)
      assert.strictEqual(state.currentTurn?.completed.length, 0)
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("by its deadline stops every task with it (DR-21)", () => {
    const { counts, skill } = counter()
    return Effect.gen(function* () {
      const { error, events } = yield* play(script, { agent: { budget: { deadline: 1500 } } })
      assert.strictEqual(error?._tag, "DeadlineExceeded")
      assert.deepStrictEqual(counts, { now: 0, most: 8, started: 16 })
      assert.strictEqual(Math.max(...events.map((event) => event.at)), 1000)
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("because a hook failed interrupts the siblings of the task it was asked about", () => {
    const { counts, skill } = counter()
    return Effect.gen(function* () {
      const failing: Hooks.Hooks = {
        onToolCallCompleted: ({ result }) => (result.kind === "task" ? Effect.fail("no") : Effect.void)
      }
      const { error } = yield* play(
        {
          ...script,
          tasks: { ...script.tasks, t0: [slow(500, final("first"))] }
        },
        {}
      ).pipe(Effect.provideService(Hooks.Hooks, failing))
      assert.strictEqual(error?._tag, "ExtensionFailed")
      assert.strictEqual(counts.now, 0)
      assert.strictEqual(counts.started, 7)
      assert.strictEqual((yield* stored("run")).status.type, "failed")
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("because a hook asked to finish starts no further task, and lets the others end", () =>
    Effect.gen(function* () {
      const finishing: Hooks.Hooks = {
        onToolCallCompleted: ({ result }) =>
          result.name === "t0" ? Effect.succeed({ control: { _tag: "Finish", reason: "enough" } }) : Effect.void
      }
      const { error, events } = yield* play({
        root: [plan(all), final("ok")],
        tasks: Object.fromEntries(all.map((id, index) => [id, [slow(100 + index * 10, final(id))]]))
      }).pipe(Effect.provideService(Hooks.Hooks, finishing))
      assert.strictEqual(error?._tag, "RunFinished")
      assert.strictEqual(of(events, "task_start").length, 8)
      assert.strictEqual(of(events, "task_complete").length, 8)
      assert.strictEqual(overlap(intervals(events).values()), 8)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("because its store is lost stops every task at once, and reports no task as failed (R-5)", () => {
    const { counts, skill } = counter()
    return Effect.gen(function* () {
      const store = yield* RunStore.RunStore
      const broken: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) =>
          state.runId === "run:t1/t0" &&
          records.some(({ events }) => events.some((event) => event.type === "model_completed"))
            ? Effect.fail(
                new RunStore.StoreError({ operation: "commit", reason: "unavailable", detail: "the disk is full" })
              )
            : store.append(records, state)
      }
      const onBroken = Layer.fresh(Kernel.layerNoProvider).pipe(Layer.provide(Layer.succeed(RunStore.RunStore, broken)))
      const { error, events } = yield* play({
        ...script,
        tasks: { ...script.tasks, t0: [slow(500, final("first"))] }
      }).pipe(Effect.provide(onBroken))
      assert.strictEqual(error?._tag, "StoreError")
      assert.deepStrictEqual(counts, { now: 0, most: 7, started: 7 })
      assert.strictEqual(of(events, "task_error").length, 0)
      assert.strictEqual(of(events, "workflow_error").length, 1)
    }).pipe(Effect.provide(kernel(skill)))
  })
})
