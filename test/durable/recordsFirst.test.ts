import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Logger, Queue, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Hooks, Kernel, Policy, PromptPipeline, Provider, RunStore } from "kernai"
import { MockProvider } from "kernai/testing"
import { type World, agent, kernelOn, look, replies, see, watched, watchedProvider } from "../support/watchedStore.ts"

describe("a store that has all records before foreign code runs", () => {
  const run = (world: World, store: RunStore.RunStoreShape, options: Kernel.RunOptions = {}) =>
    Kernel.run(agent, "go", { runId: "run", provider: watchedProvider(world, store), ...options }).pipe(
      Effect.provide(kernelOn(world, store))
    )

  it.effect("has them when the host's own pipeline builds the prompt (AC-10)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const pipeline: PromptPipeline.PromptPipelineShape = {
        build: (context) => Effect.andThen(see(world, store, "pipeline"), PromptPipeline.simple.build(context))
      }
      yield* Effect.provideService(run(world, store), PromptPipeline.PromptPipeline, pipeline)
      assert.deepStrictEqual(
        world.moments.filter(([what]) => what === "pipeline"),
        [
          ["pipeline", "turn_started"],
          ["pipeline", "turn_started"]
        ]
      )
    }).pipe(Effect.scoped)
  )

  it.effect(
    "has them when tokens are counted, a policy is asked, or the run waits after an empty reply (R-14, AC-19)",
    () =>
      Effect.gen(function* () {
        const world: World = { transactions: [], moments: [] }
        const store = yield* watched(world)
        const window = { ...agent, contextWindow: 100_000 }
        const count = () => Effect.as(see(world, store, "count"), 1)
        const policy: Policy.PolicyShape = {
          authorize: () => Effect.as(see(world, store, "policy"), Policy.allowed)
        }
        const fiber = yield* Kernel.run(window, "go", {
          runId: "run",
          provider: MockProvider.make(look, "", replies[1])
        }).pipe(
          Effect.provide([
            kernelOn(world, store),
            Layer.succeed(PromptPipeline.TokenCounter, count),
            Layer.succeed(Policy.Policy, policy)
          ]),
          Effect.forkChild({ startImmediately: true })
        )
        yield* TestClock.adjust(249)
        yield* see(world, store, "wait")
        yield* TestClock.adjust(1)
        yield* Fiber.join(fiber)
        const lastAt = (moment: string) => [
          ...new Set(world.moments.flatMap(([what, last]) => (what === moment ? [last] : [])))
        ]
        assert.deepStrictEqual(
          [lastAt("count"), lastAt("policy"), lastAt("wait")],
          [["turn_started"], ["model_completed"], ["turn_completed"]]
        )
      }).pipe(Effect.scoped)
  )

  it.effect("has them when a policy is asked about the arguments a person changed (AC-19)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const provider = MockProvider.make(...replies)
      const under = (authorize: Policy.PolicyShape["authorize"]) =>
        Layer.merge(kernelOn(world, store), Layer.succeed(Policy.Policy, { authorize }))
      yield* Kernel.run(agent, "go", { runId: "run", provider }).pipe(
        Effect.flip,
        Effect.provide(under(() => Effect.succeed(Policy.confirm("it costs"))))
      )
      const approvals = ["run:t1.0", "run:t1.1"].map((callId) => ({ callId, approved: true, input: { at: 1 } }))
      yield* Kernel.resume(agent, "run", { provider, answers: approvals }).pipe(
        Effect.provide(under(() => Effect.as(see(world, store, "policy"), Policy.allowed)))
      )
      assert.deepStrictEqual(
        world.moments.flatMap(([what, last]) => (what === "policy" ? [last] : [])),
        ["resume", "tool_call_started"]
      )
    }).pipe(Effect.scoped)
  )

  it.effect("keeps steering input queued when the store is gone", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const gone = new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: "gone" })
      const steering = yield* Queue.unbounded<Kernel.Input>()
      const isAsked = () => world.moments.some(([what]) => what === "model")
      const leaving: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) => (isAsked() ? Effect.fail(gone) : store.append(records, state))
      }
      const provider = MockProvider.make('<block type="final">done</block>')
      const talking: Provider.ProviderShape = {
        ...provider,
        stream: (request) =>
          Stream.concat(
            Stream.fromEffectDrain(Effect.andThen(see(world, store, "model"), Queue.offer(steering, "and this"))),
            provider.stream(request)
          )
      }
      const error = yield* Effect.flip(run(world, leaving, { provider: talking, steering }))
      assert.deepStrictEqual(error, gone)
      assert.strictEqual(yield* Queue.size(steering), 1)
    }).pipe(Effect.scoped)
  )

  it.effect("keeps steering input queued when it is unknown whether it was stored", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const steering = yield* Queue.unbounded<Kernel.Input>()
      const full = new RunStore.StoreError({ operation: "append", reason: "limit_exceeded", detail: "full" })
      let isFull = false
      const failing: RunStore.RunStoreShape = {
        ...store,
        read: (runId, revision) => (isFull ? Stream.die("unreadable") : store.read(runId, revision)),
        append: (records, state) => {
          isFull ||= records.some(({ events }) => events.some((event) => "steering" in event))
          return isFull ? Effect.fail(full) : store.append(records, state)
        }
      }
      const inner = MockProvider.make('<block type="final">done</block>')
      const provider: Provider.ProviderShape = {
        ...inner,
        stream: (request) =>
          Stream.concat(Stream.fromEffectDrain(Queue.offer(steering, "and this")), inner.stream(request))
      }
      assert.deepStrictEqual(yield* Effect.flip(run(world, failing, { provider, steering })), full)
      assert.strictEqual(yield* Queue.size(steering), 1)
    }).pipe(Effect.scoped)
  )

  it.effect("stores a long batch in order", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      const provider = MockProvider.make(look.repeat(94), '<block type="final">done</block>')
      const events = yield* Kernel.stream(agent, "go", { runId: "run", provider }).pipe(
        Stream.runCollect,
        Effect.provide(kernelOn(world, store))
      )
      assert.isAtMost(Math.max(...world.transactions), 300)
      const told = events.flatMap((event) => ("revision" in event ? [event.revision] : []))
      assert.deepStrictEqual(
        told,
        told.toSorted((a, b) => a - b)
      )
      const journal = yield* Stream.runCollect(store.read("run"))
      assert.deepStrictEqual(
        journal.map(({ revision }) => revision),
        journal.map((_, index) => index + 1)
      )
      assert.strictEqual(journal.flatMap((record) => record.events).length, told.length)
    }).pipe(Effect.scoped)
  )

  it.effect("with a bug is not asked again (DR-6)", () =>
    Effect.gen(function* () {
      const world: World = { transactions: [], moments: [] }
      const store = yield* watched(world)
      let asked = 0
      const buggy: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) =>
          state.revision > 1 ? Effect.die("a bug with Bearer SECRET-0123") : store.append(records, state)
      }
      const lines: Array<string> = []
      const logger = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
      const hooks: Hooks.Hooks = { onRunFailed: () => Effect.sync(() => void asked++) }
      const error = yield* Effect.flip(Effect.provide(run(world, buggy), [Hooks.layer(hooks), logger]))
      assert.isTrue(error._tag === "StoreError" && error.reason === "invalid")
      assert.match(lines.join("\n"), /a store failed unexpectedly.*a bug with <redacted>/)
      assert.strictEqual(asked, 0)
      assert.deepStrictEqual(world.transactions, [])
    }).pipe(Effect.scoped)
  )
})
