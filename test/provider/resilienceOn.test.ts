/** The recipe that keeps a run going: retries before and after the first word, other models, limits, circuits. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  KernelError,
  Model,
  ModelRegistry,
  type Provider,
  RunStore,
  Skill,
  SkillRegistry,
  StreamPart
} from "kernai"
import { Resilience } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import { kernel, of } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"

const agent = Agent.make({ instructions: "Answer.", model: Model.make("big"), dialect: "tools" })

const error = (reason: KernelError.ProviderReason, more: { readonly retryAt?: number } = {}) =>
  new KernelError.ProviderError({ provider: "mock", reason, detail: reason, ...more })

/** A provider whose replies are each these words, and then the failure or the end that follows them. */
const breaking = (...replies: ReadonlyArray<readonly [string, KernelError.ProviderError?]>) => {
  let asked = 0
  const provider: Provider.ProviderShape = {
    name: "mock",
    stream: () =>
      Stream.suspend(() => {
        const [text, failure] = replies[Math.min(asked++, replies.length - 1)] ?? [""]
        const parts: ReadonlyArray<StreamPart.StreamPart> = [
          { type: "response-metadata", usage: { inputTokens: { total: 10 }, outputTokens: {} } },
          StreamPart.text(text)
        ]
        const end = failure === undefined ? Stream.make(StreamPart.finish()) : Stream.fail(failure)
        return Stream.concat(Stream.fromIterable(parts), end)
      })
  }
  return { provider, asked: () => asked }
}

const within = <A, E, R>(run: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(run)
    yield* TestClock.adjust("1 minute")
    return yield* Fiber.join(fiber)
  })

const on = (options?: Resilience.OnOptions<never>, ...skills: ReadonlyArray<Skill.AnySkill>) =>
  kernel(...skills).pipe(Layer.provideMerge(Resilience.on(options).pipe(Layer.provideMerge(registryOf(...skills)))))

const registryOf = (...skills: ReadonlyArray<Skill.AnySkill>) => Layer.orDie(SkillRegistry.layer(...skills))

describe("Resilience.on", () => {
  it.effect("retries after the first word, withdraws the partial reply, and counts both replies", () =>
    Effect.gen(function* () {
      const { asked, provider } = breaking(["Hel", error("disconnected")], ["Hello"])
      const run = yield* within(told(agent, "hi", { provider, runId: "run" }))
      assert.strictEqual(run.text, "Hello")
      assert.strictEqual(asked(), 2)
      assert.deepStrictEqual(
        of(run.events, "model_restarted").map(({ attempt }) => attempt),
        [2]
      )
      const again = run.events.slice(run.events.findIndex(({ type }) => type === "model_restarted"))
      assert.deepStrictEqual(
        of(again, "text_chunk").map(({ text }) => text),
        ["Hello"]
      )
      const state = yield* RunStore.RunStore.use((store) => store.load("run")).pipe(Effect.flatMap(Effect.fromOption))
      assert.isAtLeast(state.usage.inputTokens, 10)
      assert.notInclude(JSON.stringify(state.turns), 'Hel"')
    }).pipe(Effect.provide(on()))
  )

  it.effect("waits as long as the vendor asks, before and after the first word", () =>
    Effect.gen(function* () {
      const { asked, provider } = breaking(["Hel", error("overloaded", { retryAt: 30_000 })], ["Hello"])
      const fiber = yield* Effect.forkChild(told(agent, "hi", { provider }))
      yield* TestClock.adjust("29 seconds")
      assert.strictEqual(asked(), 1)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual((yield* Fiber.join(fiber)).text, "Hello")
    }).pipe(Effect.provide(on()))
  )

  it.effect("gives up after its attempts, and at once on a permanent failure", () =>
    Effect.gen(function* () {
      const lost = breaking(["Hel", error("disconnected")])
      const run = yield* within(told(agent, "hi", { provider: lost.provider }))
      assert.strictEqual(run.failure?._tag === "ProviderError" && run.failure.reason, "disconnected")
      assert.strictEqual(lost.asked(), 3)
      const filtered = breaking(["Hel", error("content_filter")])
      yield* within(told(agent, "hi", { provider: filtered.provider }))
      assert.strictEqual(filtered.asked(), 1)
    }).pipe(Effect.provide(on({ circuitBreaker: false })))
  )

  it.effect("fails a reply that broke off when it is disabled for a run", () =>
    Effect.gen(function* () {
      const { asked, provider } = breaking(["Hel", error("disconnected")], ["Hello"])
      const run = yield* within(Effect.provide(told(agent, "hi", { provider }), Resilience.off))
      assert.strictEqual(run.failure?._tag, "ProviderError")
      assert.strictEqual(asked(), 1)
    }).pipe(Effect.provide(on()))
  )

  it.effect("sends the call to the next model when the first remains unavailable", () =>
    Effect.gen(function* () {
      const small = MockProvider.make("from the small one")
      const layer = kernel().pipe(
        Layer.provideMerge(Resilience.on({ fallback: ["other/small"] })),
        Layer.provideMerge([registryOf(), ModelRegistry.layer({ other: small }, { models: [Model.make("small")] })])
      )
      const provider = MockProvider.make().onCall(() => Effect.fail(error("overloaded")))
      const run = yield* within(Effect.provide(told(agent, "hi", { provider }), layer))
      assert.strictEqual(run.text, "from the small one")
      assert.strictEqual(provider.callCount, 3)
      assert.strictEqual(of(run.events, "model_completed")[0]?.model, "mock/small")
    })
  )

  it.effect("rests a model that keeps failing, and no other", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make().onCall(({ model }) =>
        model.id === "big" ? Effect.fail(error("overloaded")) : "here"
      )
      for (let run = 0; run < 7; run++) yield* told(agent, "hi", { provider })
      assert.strictEqual(provider.callCount, 5)
      const other = yield* told({ ...agent, model: Model.make("small") }, "hi", { provider })
      assert.strictEqual(other.text, "here")
    }).pipe(Effect.provide(on({ retry: false })))
  )

  it.effect("keeps calls within a rate", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("a", "b")
      const both = Effect.zip(told(agent, "hi", { provider }), told(agent, "hi", { provider }))
      const fiber = yield* Effect.forkChild(both)
      yield* TestClock.adjust("30 seconds")
      assert.strictEqual(provider.callCount, 1)
      yield* TestClock.adjust("31 seconds")
      yield* Fiber.join(fiber)
      assert.strictEqual(provider.callCount, 2)
    }).pipe(Effect.provide(on({ rateLimit: { limit: 1, window: "1 minute" } })))
  )
})

describe("a skill that fails", () => {
  let calls = 0
  const flaky = (name: string, effects: Skill.Effects) =>
    Skill.make(name, {
      description: "",
      input: Schema.Struct({}),
      effects,
      execute: () => (++calls % 3 === 0 ? Effect.succeed("found") : Effect.fail("busy"))
    })
  const skills = [flaky("look", "read"), flaky("send", "write")]
  const calling = { ...agent, skills: "all" as const }

  it.effect("is called again when it only reads, and never when it writes", () =>
    Effect.gen(function* () {
      for (const [name, expected] of [
        ["look", 3],
        ["send", 1]
      ] as const) {
        calls = 0
        const provider = MockProvider.make({ calls: [{ name, input: {} }] }, "done")
        const run = yield* within(told(calling, "hi", { provider }))
        assert.strictEqual(calls, expected)
        assert.strictEqual(of(run.events, "tool_call_completed")[0]?.result.error === undefined, name === "look")
      }
    }).pipe(Effect.provide(on({}, ...skills)))
  )

  it.effect("is called once without it", () =>
    Effect.gen(function* () {
      calls = 0
      const provider = MockProvider.make({ calls: [{ name: "look", input: {} }] }, "done")
      yield* within(told(calling, "hi", { provider }))
      assert.strictEqual(calls, 1)
    }).pipe(Effect.provide(on({ reads: false }, ...skills)))
  )
})
