import { assert, describe, it } from "@effect/vitest"
import { Cause, Clock, Duration, Effect, Exit, Fiber, Option, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { RunEvent } from "kernai"
import { Hooks, Kernel, Limits, Provider, Recorder, RunState, RunStore } from "kernai"
import { MockProvider } from "kernai/testing"
import { type World, agent, kernelOn, nameOf, pay, replies, watched, watchedProvider } from "../support/watchedStore.ts"

/** The record by which another worker takes a run up. */
const takenUp = (state: RunState.RunState): RunState.RunRecord => ({
  runId: "run",
  revision: state.revision + 1,
  op: "resume",
  events: [],
  delta: {},
  createdAt: 0,
  workerId: "other"
})

/**
 * Runs on a store that takes a revision, does not say so, and is asked again, while another goes on from it: the worker
 * was taken for dead.
 */
const overtaken = Effect.fnUntraced(function* (revision: number) {
  const world: World = { transactions: [], moments: [] }
  const store = yield* watched(world)
  const lost = new RunStore.StoreError({ operation: "append", reason: "unavailable", detail: "no answer" })
  let isLost = false
  const late: RunStore.RunStoreShape = {
    ...store,
    append: (records, state) => {
      if (isLost || state.revision !== revision) return store.append(records, state)
      isLost = true
      const taken = takenUp(state)
      return store
        .append(records, state)
        .pipe(Effect.andThen(store.append([taken], RunState.advance(state, taken))), Effect.andThen(Effect.fail(lost)))
    }
  }
  const told: Array<string> = []
  const fiber = yield* Kernel.stream(agent, "go", { runId: "run", provider: watchedProvider(world, late) }).pipe(
    Stream.runForEach((event) => Effect.sync(() => told.push(event.type))),
    Effect.flip,
    Effect.provide(kernelOn(world, late)),
    Effect.forkChild({ startImmediately: true })
  )
  yield* TestClock.adjust("1 second")
  return { ...world, told, error: yield* Fiber.join(fiber) }
})

/** What is told of a run that is interrupted half a second after it began, and ends within a time. */
const toldOfInterrupted = Effect.fnUntraced(function* (
  world: World,
  store: RunStore.RunStoreShape,
  within: Duration.Input
) {
  const told: Array<RunEvent.RunEvent> = []
  const running = yield* Kernel.run(agent, "go", { runId: "run", provider: watchedProvider(world, store) }).pipe(
    Effect.provideService(Recorder.Recorder, { record: (event) => told.push(event) }),
    Effect.provide(kernelOn(world, store)),
    Effect.forkChild
  )
  yield* TestClock.adjust("500 millis")
  const interrupted = yield* Effect.forkChild(Fiber.interrupt(running), { startImmediately: true })
  yield* TestClock.adjust(within)
  yield* Fiber.join(interrupted)
  return told
})

describe("a store that commits records without acknowledging them, and is asked again", () => {
  it.effect("stops the run whose lease was taken over meanwhile, without publishing the records (R-5, R-6)", () =>
    Effect.gen(function* () {
      const { error, moments, told } = yield* overtaken(4)
      assert.deepStrictEqual(error, new RunStore.ConcurrentAppendError({ runId: "run", expected: 3, actual: 5 }))
      assert.deepStrictEqual(told, ["run_started"])
      assert.deepStrictEqual(moments, [])
    }).pipe(Effect.scoped)
  )
})

describe("the memory store itself", () => {
  it.effect("stops a run that another worker took over, before it does anything more (R-5)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* RunStore.RunStore
      const takeOver = Effect.gen(function* () {
        const state = Option.getOrThrow(yield* store.load("run"))
        const taken = takenUp(state)
        yield* store.append([taken], RunState.advance(state, taken))
        return taken.revision
      }).pipe(Effect.orDie)
      let actual = 0
      const provider: Provider.ProviderShape = {
        name: "mock",
        stream: (request) =>
          Stream.unwrap(
            Effect.map(takeOver, (revision) => {
              actual = revision
              return MockProvider.make(pay).stream(request)
            })
          )
      }
      const told: Array<number> = []
      const error = yield* Kernel.stream(agent, "go", { runId: "run", provider }).pipe(
        Stream.runForEach((event) => Effect.sync(() => "revision" in event && told.push(event.revision))),
        Effect.flip,
        Effect.provide(kernelOn(world, store))
      )
      assert.deepStrictEqual(error, new RunStore.ConcurrentAppendError({ runId: "run", expected: actual - 1, actual }))
      assert.strictEqual(Math.max(...told), actual - 1)
      assert.deepStrictEqual(world.moments, [])
    }).pipe(Effect.provide(RunStore.layerMemory))
  )

  it.effect("stamps records committed at once with one time", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      let millis = 0
      const ticking: Clock.Clock = {
        ...(yield* Clock.Clock),
        currentTimeMillisUnsafe: () => ++millis
      }
      yield* Kernel.run(agent, "go", { runId: "run", provider: MockProvider.make(...replies) }).pipe(
        Effect.provide(kernelOn(world, store)),
        Effect.provideService(Clock.Clock, ticking)
      )
      const journal = yield* Stream.runCollect(store.read("run"))
      let start = 1
      const times = world.transactions.map((length) => {
        const together = journal.slice(start, (start += length))
        return new Set(together.map(({ createdAt }) => createdAt)).size
      })
      assert.strictEqual(start, journal.length)
      assert.deepStrictEqual(new Set(times), new Set([1]))
    }).pipe(Effect.scoped)
  )
})

describe("a store that throws", () => {
  it.effect("fails the run with a typed error, and is asked once more to store pending records (R-6, DR-7)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const defect = new Error("no handle")
      let asked = 0
      const throwing: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) => {
          if (++asked === 4) throw defect
          return store.append(records, state)
        }
      }
      const exit = yield* Kernel.run(agent, "go", { runId: "run", provider: MockProvider.make(...replies) }).pipe(
        Effect.provide(kernelOn(world, throwing)),
        Effect.exit
      )
      assert.isTrue(Exit.isFailure(exit) && !Cause.hasDies(exit.cause))
      // A call that is not repeated was made: what it gave is not lost.
      const names = (yield* Stream.runCollect(store.read("run"))).map(nameOf)
      assert.deepStrictEqual(names.slice(names.lastIndexOf("launch")), [
        "launch",
        "tool_call_completed",
        "tool_calls_completed",
        "turn_completed",
        "turn_started",
        "turn_prepared",
        "model_started"
      ])
    }).pipe(Effect.scoped)
  )
})

describe("a record that the store has accepted", () => {
  it.effect("is published, even if it starts a run that was interrupted meanwhile (R-23)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const slow: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) => Effect.andThen(store.append(records, state), Effect.sleep("1 second"))
      }
      const told = yield* toldOfInterrupted(world, slow, "500 millis")
      assert.deepStrictEqual(
        told.map(({ type }) => type),
        ["run_started"]
      )
      assert.deepStrictEqual(world.moments, [])
    }).pipe(Effect.scoped)
  )

  for (const [before, hooks, whole] of [
    ["the model is asked", {}, ["run_started", "turn_started", "turn_prepared", "model_started"]],
    ["a hook is heard", { onTurnPrepared: () => Effect.succeed({}) }, ["run_started", "turn_started"]]
  ] as const) {
    it.effect(`is published before ${before}, even if the run was interrupted (DR-7, R-23)`, () =>
      Effect.gen(function* () {
        const world: World = { transactions: [], moments: [] }
        const store = yield* watched(world)
        const slow: RunStore.RunStoreShape = {
          ...store,
          append: (records, state) =>
            Effect.andThen(
              store.append(records, state),
              records[0].revision > 1 ? Effect.sleep("1 second") : Effect.void
            )
        }
        const events = yield* Effect.provide(toldOfInterrupted(world, slow, "10 seconds"), Hooks.layer(hooks))
        const told = events.flatMap((event) => ("revision" in event ? [event.type] : []))
        assert.deepStrictEqual(told, [...whole])
        assert.deepStrictEqual((yield* Stream.runCollect(store.read("run"))).map(nameOf), told)
        assert.deepStrictEqual(world.moments, [])
      }).pipe(Effect.scoped)
    )
  }
})

describe("a store that does not respond", () => {
  const play = Effect.fnUntraced(function* (hanging: number, stored: boolean) {
    const world: World = { transactions: [], moments: [] }
    const store = yield* watched(world)
    let appends = 0
    const slow: RunStore.RunStoreShape = {
      ...store,
      append: (records, state) =>
        Effect.suspend(() => {
          if (records[0].revision === 1) return store.append(records, state)
          const hangs = ++appends <= hanging
          const kept = hangs && !stored ? Effect.void : store.append(records, state)
          return hangs ? Effect.uninterruptible(Effect.andThen(kept, Effect.never)) : kept
        })
    }
    const fiber = yield* Kernel.run(agent, "go", { runId: "run", provider: MockProvider.make(...replies) }).pipe(
      Effect.provide(kernelOn(world, slow)),
      Effect.forkChild({ startImmediately: true })
    )
    return { fiber, appends: () => appends }
  })

  it.effect("is asked once more for the same record after appendTimeout, whether it stored it or not (R-6)", () =>
    Effect.gen(function* () {
      for (const stored of [true, false]) {
        const { fiber } = yield* play(1, stored)
        yield* TestClock.adjust(Duration.toMillis(Limits.defaults.appendTimeout) + 50)
        assert.strictEqual((yield* Fiber.join(fiber)).text, "done")
      }
    }).pipe(Effect.scoped)
  )

  it.effect("blocks no caller when it does not return the head either (R-6, R-16)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      let appends = 0
      const silent: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) =>
          Effect.suspend(() => (appends++ === 0 ? Effect.never : store.append(records, state))),
        head: () => Effect.never
      }
      const fiber = yield* Kernel.run(agent, "go", { runId: "run", provider: MockProvider.make(...replies) }).pipe(
        Effect.provide(kernelOn(world, silent)),
        Effect.forkChild({ startImmediately: true })
      )
      yield* TestClock.adjust(3 * Duration.toMillis(Limits.defaults.appendTimeout) + 300)
      const error = yield* Effect.flip(Fiber.join(fiber))
      assert.isTrue(error._tag === "StoreError" && error.reason === "timeout")
    }).pipe(Effect.scoped)
  )

  it.effect("is interrupted at its timeout, and not asked again before it has stopped (R-15)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const seen: Array<string> = []
      const hanging: RunStore.RunStoreShape = {
        ...store,
        append: () =>
          Effect.suspend(() => {
            seen.push("asked")
            return Effect.onInterrupt(Effect.never, () => Effect.sync(() => seen.push("stopped")))
          })
      }
      const fiber = yield* Kernel.run(agent, "go", { runId: "run", provider: MockProvider.make(...replies) }).pipe(
        Effect.provide(kernelOn(world, hanging)),
        Effect.forkChild({ startImmediately: true })
      )
      yield* TestClock.adjust(3 * Duration.toMillis(Limits.defaults.appendTimeout) + 300)
      assert.strictEqual((yield* Effect.flip(Fiber.join(fiber)))._tag, "StoreError")
      assert.deepStrictEqual(seen, ["asked", "stopped", "asked", "stopped", "asked", "stopped"])
    }).pipe(Effect.scoped)
  )

  it.effect("fails the run when it never stops, and blocks neither the run nor its interruption", () =>
    Effect.gen(function* () {
      const { appends, fiber } = yield* play(Number.POSITIVE_INFINITY, false)
      const left = yield* Effect.forkChild(Fiber.interrupt(fiber), { startImmediately: true })
      yield* TestClock.adjust(3 * Duration.toMillis(Limits.defaults.appendTimeout) + 300)
      yield* Fiber.join(left)
      assert.strictEqual(appends(), 3)

      // A store that is back a moment later is not given up.
      const other = yield* play(Number.POSITIVE_INFINITY, false)
      yield* TestClock.adjust(3 * Duration.toMillis(Limits.defaults.appendTimeout) + 299)
      assert.isUndefined(other.fiber.pollUnsafe())
      yield* TestClock.adjust(1)
      const error = yield* Effect.flip(Fiber.join(other.fiber))
      assert.isTrue(error._tag === "StoreError" && error.reason === "timeout")
    }).pipe(Effect.scoped)
  )
})
