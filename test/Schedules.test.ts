import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, MediaStore, ProtocolRegistry, RunStore, RunWorker, Schedules, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"

const agent = Agent.make({ name: "reporter", instructions: "", model: "scripted" })

const kernelOn = (store: RunStore.RunStoreShape) =>
  Kernel.layer.pipe(
    Layer.provide([
      SkillRegistry.layer(),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      MockProvider.layer("<final>done</final>")
    ]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )

const hourly = { name: "hourly", cron: "0 * * * *", timeZone: "UTC" } as const

const morning = Date.UTC(2026, 0, 1, 8, 30)
const at = (hour: number) => `hourly@2026-01-01T${String(hour).padStart(2, "0")}:00:00.000Z`

/** Starts a schedule in a process on a store. */
const started = (store: RunStore.RunStoreShape, options: Partial<Kernel.ScheduleOptions> = {}) =>
  Effect.forkChild(Effect.provide(Kernel.schedule(agent, "go", { ...hourly, ...options }), kernelOn(store)), {
    startImmediately: true
  })

/** Runs an operation of an operator, whose process has no kernel. */
const operate =
  (store: RunStore.RunStoreShape) =>
  <A, E>(effect: Effect.Effect<A, E, RunStore.RunStore>) =>
    Effect.provideService(effect, RunStore.RunStore, store)

const idsIn = (store: RunStore.RunStoreShape) =>
  Effect.map(store.list({ order: "oldest" }), (heads) => heads.map(({ runId }) => runId))

describe("Schedules", () => {
  it.effect("lists what processes schedule, with the next time and the last run, by agent and tenant", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const operator = operate(store)
      yield* TestClock.setTime(morning)
      yield* started(store)
      yield* started(store, { name: "hourly@night", caller: { id: "ada", tenant: "acme" } })
      assert.deepStrictEqual(yield* operator(Schedules.list({ agent: "reporter", tenant: "acme" })), [
        {
          name: "hourly@night",
          agent: "reporter",
          tenant: "acme",
          cron: "0 * * * *",
          timeZone: "UTC",
          next: Date.UTC(2026, 0, 1, 9)
        }
      ])
      yield* TestClock.adjust("1 hour")
      const all = yield* operator(Schedules.list())
      assert.deepStrictEqual(
        all.map(({ last, name, next }) => [name, last?.runId, next]),
        [
          ["hourly", at(9), Date.UTC(2026, 0, 1, 10)],
          ["hourly@night", "hourly@night@2026-01-01T09:00:00.000Z", Date.UTC(2026, 0, 1, 10)]
        ]
      )
      assert.deepStrictEqual(yield* operator(Schedules.list({ agent: "other" })), [])
    })
  )

  it.effect("starts nothing while it is paused, in any process and after a restart, until it is resumed", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const operator = operate(store)
      yield* TestClock.setTime(morning)
      const first = yield* started(store)
      yield* started(store)
      yield* operator(Schedules.pause("hourly", { by: "Ada", reason: "maintenance" }))
      yield* TestClock.adjust("1 hour")
      yield* Fiber.interrupt(first)
      yield* started(store)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* idsIn(store), [])
      const [paused] = yield* operator(Schedules.list())
      assert.deepStrictEqual(paused?.paused, { at: morning, by: "Ada", reason: "maintenance" })
      assert.isUndefined(paused?.next)
      yield* operator(Schedules.resume("hourly"))
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* idsIn(store), [at(11)])
    })
  )

  it.effect("starts a run now as its last one began, in a process without the agent, for any worker", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const operator = operate(store)
      yield* TestClock.setTime(morning)
      yield* started(store, { caller: { id: "ada", tenant: "acme" }, context: { report: "daily" } })
      const tooEarly = yield* Effect.flip(operator(Schedules.run("hourly")))
      assert.strictEqual(tooEarly._tag === "ScheduleNotFound" && tooEarly.reason, "never_ran")
      yield* TestClock.adjust("1 hour")
      yield* operator(Schedules.pause("hourly"))
      const runId = yield* operator(Schedules.run("hourly"))
      assert.strictEqual(runId, "hourly@2026-01-01T09:30:00.000Z")
      const state = Option.getOrThrow(yield* store.load(runId))
      assert.deepStrictEqual(state.context, { report: "daily" })
      const head = Option.getOrThrow(yield* store.head(runId))
      assert.deepStrictEqual([head.status.type, head.caller?.tenant], ["queued", "acme"])
      yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), kernelOn(store))
      assert.strictEqual(Option.getOrThrow(yield* store.head(runId)).status.type, "completed")
      const [schedule] = yield* operator(Schedules.list())
      assert.strictEqual(schedule?.last?.runId, runId)
    })
  )

  it.effect("refuses a name that no process scheduled, and forgets one on request", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const operator = operate(store)
      const unknown = yield* Effect.flip(operator(Schedules.pause("hourly")))
      assert.strictEqual(unknown.message, "no schedule 'hourly': none with that name was started on this store")
      yield* started(store)
      yield* operator(Schedules.pause("hourly"))
      yield* operator(Schedules.remove("hourly"))
      assert.deepStrictEqual(yield* operator(Schedules.list()), [])
      yield* started(store)
      assert.isUndefined((yield* operator(Schedules.list()))[0]?.paused)
    })
  )

  it.effect("runs in a store without notes, where it is not listed", () =>
    Effect.gen(function* () {
      const { notes: _, ...store } = yield* RunStore.makeMemory
      yield* TestClock.setTime(morning)
      yield* started(store)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* idsIn(store), [at(9)])
      assert.deepStrictEqual(yield* operate(store)(Schedules.list()), [])
    })
  )
})
