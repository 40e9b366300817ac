import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, KernelError, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"

const agent = Agent.make({ name: "reporter", instructions: "", model: "scripted" })

const kernelOn = (store: RunStore.RunStoreShape) =>
  Kernel.layer.pipe(
    Layer.provide([
      SkillRegistry.layer(),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      MockProvider.layer("done")
    ]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )

const idsIn = (store: RunStore.RunStoreShape) =>
  Effect.map(store.list({ order: "oldest" }), (heads) => heads.map(({ runId }) => runId))

const hourly = { name: "hourly", cron: "0 * * * *", timeZone: "UTC" } as const

describe("Kernel.schedule", () => {
  it.effect("submits one run at each time, whichever of several processes is there", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* TestClock.setTime(Date.UTC(2026, 0, 1, 8, 30))
      const schedule = Effect.provide(Kernel.schedule(agent, "go", hourly), kernelOn(store))
      const first = yield* Effect.forkChild(schedule)
      const second = yield* Effect.forkChild(schedule)
      yield* TestClock.adjust("1 hour")
      yield* Fiber.interrupt(first)
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* idsIn(store), [
        "hourly@2026-01-01T09:00:00.000Z",
        "hourly@2026-01-01T10:00:00.000Z"
      ])
      yield* Fiber.interrupt(second)
      yield* TestClock.adjust("1 hour")
      assert.lengthOf(yield* idsIn(store), 2)
    })
  )

  it.effect("starts a run whose time no process saw, if it is not too late for it", () =>
    Effect.gen(function* () {
      for (const [late, ids] of [
        ["10 minutes", ["hourly@2026-01-01T09:00:00.000Z"]],
        ["1 minute", []]
      ] as const) {
        const store = yield* RunStore.makeMemory
        yield* TestClock.setTime(Date.UTC(2026, 0, 1, 9, 5))
        const schedule = Kernel.schedule(agent, "go", { ...hourly, late })
        const fiber = yield* Effect.forkChild(Effect.provide(schedule, kernelOn(store)))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* idsIn(store), [...ids])
        yield* Fiber.interrupt(fiber)
      }
    })
  )

  it.effect("tries again when the store fails, and then waits for the next time", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* TestClock.setTime(Date.UTC(2026, 0, 1, 8, 59))
      let isDown = true
      const down = new RunStore.StoreError({ operation: "append", reason: "unavailable", detail: "cut off" })
      const flaky: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) => Effect.suspend(() => (isDown ? Effect.fail(down) : store.append(records, state)))
      }
      yield* Effect.forkChild(Effect.provide(Kernel.schedule(agent, "go", hourly), kernelOn(flaky)))
      yield* TestClock.adjust("90 seconds")
      isDown = false
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(yield* idsIn(store), ["hourly@2026-01-01T09:00:00.000Z"])
      isDown = true
      yield* TestClock.adjust("70 minutes")
      isDown = false
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* idsIn(store), [
        "hourly@2026-01-01T09:00:00.000Z",
        "hourly@2026-01-01T11:00:00.000Z"
      ])
    })
  )

  it.effect("fails for a cron expression that cannot be read", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const refused = Kernel.schedule(agent, "go", { name: "never", cron: "every day" })
      const error = yield* Effect.flip(Effect.provide(refused, kernelOn(store)))
      assert.instanceOf(error, KernelError.ConfigInvalid)
    })
  )

  it.effect("fails for an expression of a date that does not exist", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      for (const cron of ["0 0 31 2 *", "0 * 31 2 *"]) {
        const refused = Kernel.schedule(agent, "go", { name: "never", cron, timeZone: "UTC" })
        const error = yield* Effect.flip(Effect.provide(refused, kernelOn(store)))
        assert.deepInclude({ ...error }, { _tag: "ConfigInvalid", path: "cron", reason: "no date matches it" })
      }
    })
  )
})
