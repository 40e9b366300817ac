import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { RunEvent } from "kernai"
import {
  Hooks,
  Kernel,
  KernelError,
  MediaStore,
  PromptPipeline,
  ProtocolRegistry,
  Provider,
  RunState,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"
import { oneByOne } from "../support/oneByOne.ts"
import { type World, agent, kernelOn, look, nameOf, pay, play, replies, watched } from "../support/watchedStore.ts"

/** A value without what differs from process to process. */
const still = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, field) => (["at", "createdAt", "updatedAt", "workerId"].includes(key) ? 0 : field))
  )

describe("a store that appends the records of a step at once", () => {
  it.effect("keeps the same journal and state, and the run emits the same events in the same order (R-23)", () =>
    Effect.gen(function* () {
      const [apart, grouped] = [yield* play({}, (store) => oneByOne(store)), yield* play()]
      assert.deepStrictEqual(still(grouped.journal), still(apart.journal))
      assert.deepStrictEqual(still(grouped.state), still(apart.state))
      assert.deepStrictEqual(still(grouped.events), still(apart.events))
      assert.isTrue(apart.transactions.every((count) => count === 1))
    }).pipe(Effect.scoped)
  )

  it.effect("publishes events in causal order, each with its turn (AC-20)", () =>
    Effect.gen(function* () {
      const { events } = yield* play()
      const isWhole = ({ type }: RunEvent.RunEvent) => !type.startsWith("block_")
      const asked = ["turn_started", "turn_prepared", "model_started", "messages_sent", "model_completed"]
      const called = ["skill_execute", "skill_result", "tool_call_completed"]
      const first = ["run_started", ...asked, "llm_response", "blocks_parsed", "tool_calls_started"]
        .concat("tool_call_started", "tool_call_started", called, called)
        .concat("tool_calls_completed", "turn_completed")
      const second = [...asked, "llm_response", "blocks_parsed", "turn_completed", "final", "result", "run_completed"]
      assert.deepStrictEqual(
        events.filter(isWhole).map(({ step, type }) => `${step} ${type}`),
        [...first.map((type) => `0 ${type}`), ...second.map((type) => `1 ${type}`)]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("stores the context set by a gating hook in the record of that phase (DR-8)", () =>
    Effect.gen(function* () {
      const { journal } = yield* play({ onTurnPrepared: () => Effect.succeed({ context: { seen: true } }) })
      assert.deepStrictEqual(RunState.fold(journal)?.context, { seen: true })
      assert.deepStrictEqual(journal.find((record) => nameOf(record) === "turn_prepared")?.delta, {
        context: { seen: true }
      })
    }).pipe(Effect.scoped)
  )

  it.effect(
    "has stored everything before the model is called and before a call with effects is entered (R-1, R-2)",
    () =>
      Effect.gen(function* () {
        const { moments } = yield* play()
        assert.deepStrictEqual(moments, [
          ["model", "model_started"],
          // What changes nothing is stored with its result.
          ["look", "model_started"],
          ["pay", "launch"],
          ["model", "model_started"]
        ])
      }).pipe(Effect.scoped)
  )

  it.effect("needs far fewer transactions than revisions", () =>
    Effect.gen(function* () {
      const { journal, transactions } = yield* play()
      const sum = transactions.reduce((sum, count) => sum + count, 0)
      assert.strictEqual(sum, journal.length - 1)
      assert.isAtMost(transactions.length, 4)
    }).pipe(Effect.scoped)
  )

  it.effect("has stored the records a hook is asked about (DR-8)", () =>
    Effect.gen(function* () {
      const keys: Array<string> = []
      const { transactions } = yield* play({
        onToolCallCompleted: ({ commitKey }) => Effect.sync(() => void keys.push(commitKey)),
        onTurnCompleted: ({ commitKey }) => Effect.sync(() => void keys.push(commitKey))
      })
      const ends = transactions.reduce<Array<number>>((ends, count) => [...ends, (ends.at(-1) ?? 1) + count], [])
      assert.isAbove(keys.length, 3)
      for (const key of keys) assert.include(ends, Number(key.split(":")[1]))
    }).pipe(Effect.scoped)
  )

  it.effect("has stored the result of an unrepeatable call before anything else happens (R-2)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const provider = MockProvider.make(...replies)
      // The second turn never gets its instructions.
      let turns = 0
      const once = { ...agent, instructions: Effect.suspend(() => (++turns === 1 ? Effect.succeed("") : Effect.never)) }
      const fiber = yield* Kernel.run(once, "go", { runId: "run", provider }).pipe(
        Effect.provide(kernelOn(world, store)),
        Effect.forkChild({ startImmediately: true })
      )
      while (turns < 2) yield* Effect.yieldNow
      const stored = (yield* Stream.runCollect(store.read("run"))).map(nameOf)
      assert.deepStrictEqual(stored.slice(-3), ["tool_calls_completed", "turn_completed", "turn_started"])
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual((yield* Stream.runCollect(store.read("run"))).map(nameOf), stored)
    }).pipe(Effect.scoped)
  )

  it.effect("receives pending records when the run is interrupted, and the run continues from there (DR-7)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const kernel = kernelOn(world, store)
      const provider = MockProvider.make(look, '<block type="final">done</block>')
      let turns = 0
      const stuck = Layer.effect(
        ProtocolRegistry.ProtocolRegistry,
        Effect.map(ProtocolRegistry.ProtocolRegistry, (registry) => ({
          ...registry,
          all: Effect.suspend(() => (++turns === 1 ? registry.all : Effect.never))
        }))
      ).pipe(Layer.provide(Layer.orDie(ProtocolRegistry.layer())))
      const fiber = yield* Kernel.run(agent, "go", { runId: "run", provider }).pipe(
        Effect.provide(kernelOn(world, store, stuck)),
        Effect.forkChild({ startImmediately: true })
      )
      while (turns < 2) yield* Effect.yieldNow
      const names = Effect.map(Stream.runCollect(store.read("run")), (records) => records.map(nameOf))
      assert.strictEqual((yield* names).at(-1), "model_started")
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual((yield* names).slice(-5), [
        "launch",
        "tool_call_completed",
        "tool_calls_completed",
        "turn_completed",
        "turn_started"
      ])
      const result = yield* Kernel.resume(agent, "run", { provider }).pipe(Effect.provide(kernel))
      assert.strictEqual(result.text, "done")
      assert.deepStrictEqual(
        world.moments.map(([what]) => what),
        ["look"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("stops the run before it does anything more when another worker took it over (R-5)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      let isLost = false
      const lost: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) =>
          isLost
            ? Effect.fail(
                new RunStore.ConcurrentAppendError({
                  runId: "run",
                  expected: records[0].revision - 1,
                  actual: 99
                })
              )
            : store.append(records, state)
      }
      const provider: Provider.ProviderShape = {
        name: "mock",
        stream: (request) => {
          isLost = true
          return MockProvider.make(pay).stream(request)
        }
      }
      const exit = yield* Kernel.run(agent, "go", { runId: "run", provider }).pipe(
        Effect.provide(kernelOn(world, lost)),
        Effect.flip,
        Effect.exit
      )
      assert.isTrue(Exit.isSuccess(exit) && exit.value._tag === "ConcurrentAppendError")
      assert.deepStrictEqual(world.moments, [])
    }).pipe(Effect.scoped)
  )

  it.effect("fails the run with the store's error, even when onRunFailed runs in between", () =>
    Effect.gen(function* () {
      const broken = new RunStore.StoreError({ operation: "append", reason: "limit_exceeded", detail: "full" })
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      let asked = 0
      const failing: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) => (state.revision === 1 ? store.append(records, state) : Effect.fail(broken))
      }
      const hooks: Hooks.Hooks = {
        onRunFailed: () =>
          Effect.sync(() => {
            asked++
          })
      }
      const pipeline = { build: () => new KernelError.TemplateError({ line: 1, detail: "no" }) }
      const error = yield* Kernel.run(agent, "go", { runId: "run", provider: MockProvider.make("x") }).pipe(
        Effect.flip,
        Effect.provide(Layer.mergeAll(kernelOn(world, failing), Hooks.layer(hooks))),
        Effect.provideService(PromptPipeline.PromptPipeline, pipeline)
      )
      assert.deepStrictEqual(error, broken)
      assert.strictEqual(asked, 0)
    })
  )
})

describe("a call that changes nothing", () => {
  /** A run whose only call waits until it is told to go on, on a store that is as slow or refuses. */
  const looking = Effect.fnUntraced(function* (append: Effect.Effect<void, RunStore.ConcurrentAppendError>) {
    const seen: Array<string> = []
    const go = yield* Deferred.make<void>()
    const store = yield* RunStore.makeMemory
    const slow: RunStore.RunStoreShape = {
      ...store,
      append: (records, state) =>
        Effect.andThen(records.some(({ op }) => op === "launch") ? append : Effect.void, store.append(records, state))
    }
    const look = Skill.make("look", {
      description: "Looks",
      input: Schema.Struct({}),
      effects: "read",
      execute: () =>
        Effect.sync(() => seen.push("entered")).pipe(
          Effect.andThen(Deferred.await(go)),
          Effect.onInterrupt(() => Effect.sync(() => seen.push("interrupted"))),
          Effect.as("ok")
        )
    })
    const provider = MockProvider.make('<block type="command" name="look">{}</block>', "<final>done</final>")
    const kernel = Kernel.layerNoProvider.pipe(
      Layer.provide([
        SkillRegistry.layer(look),
        ProtocolRegistry.layer(),
        MediaStore.layerMemory,
        Layer.succeed(RunStore.RunStore, slow)
      ])
    )
    const fiber = yield* Kernel.stream(agent, "go", { runId: "run", provider }).pipe(
      Stream.runForEach((event) => Effect.sync(() => event.type.startsWith("tool_call_") && seen.push(event.type))),
      Effect.flip,
      Effect.provide(kernel),
      Effect.forkChild({ startImmediately: true })
    )
    return { fiber, go, seen }
  })

  it.effect("is entered while its launch is being stored, and emits its start once that is stored", () =>
    Effect.gen(function* () {
      const { go, seen } = yield* looking(Effect.sleep("1 second"))
      yield* TestClock.adjust("999 millis")
      assert.deepStrictEqual(seen, ["entered"])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(seen, ["entered", "tool_call_started"])
      yield* Deferred.succeed(go, undefined)
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(seen, ["entered", "tool_call_started", "tool_call_completed"])
    })
  )

  it.effect("is interrupted when another worker has the run (R-5)", () =>
    Effect.gen(function* () {
      const lost = new RunStore.ConcurrentAppendError({ runId: "run", expected: 3, actual: 4 })
      const { fiber, seen } = yield* looking(Effect.andThen(Effect.sleep("1 second"), Effect.fail(lost)))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(fiber), lost)
      assert.deepStrictEqual(seen, ["entered", "interrupted"])
    })
  )

  it.effect("has its timeout from its start, however long the store takes for its launch", () =>
    Effect.gen(function* () {
      const memory = yield* RunStore.makeMemory
      const store: RunStore.RunStoreShape = {
        ...memory,
        append: (records, state) => {
          const appended = memory.append(records, state)
          return records.some(({ op }) => op === "launch") ? Effect.delay(appended, "2 seconds") : appended
        }
      }
      const slow = Skill.dynamic("look", {
        description: "Never answers",
        inputSchema: { type: "object" },
        effects: "read",
        timeout: "3 seconds",
        execute: () => Effect.never
      })
      const result = yield* Effect.gen(function* () {
        const provider = MockProvider.make(look, '<block type="final">done</block>')
        const running = yield* Effect.forkChild(Kernel.run(agent, "go", { provider }))
        yield* TestClock.adjust("10 seconds")
        return yield* Fiber.join(running)
      }).pipe(
        Effect.provide(
          Kernel.layerNoProvider.pipe(
            Layer.provide([
              Layer.orDie(SkillRegistry.layer(slow)),
              Layer.orDie(ProtocolRegistry.layer()),
              MediaStore.layerMemory,
              Layer.succeed(RunStore.RunStore, store)
            ])
          )
        )
      )
      assert.deepStrictEqual(
        result.calls.map(({ durationMs }) => durationMs),
        [3_000]
      )
    })
  )
})
