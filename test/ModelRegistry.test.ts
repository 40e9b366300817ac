import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import * as Model from "../src/Model.ts"
import * as ModelRegistry from "../src/ModelRegistry.ts"
import { ProviderUnavailable } from "../src/ModelRegistry.ts"
import { MockProvider } from "../src/testing/index.ts"

const resolve = (name: string) => Effect.flatMap(ModelRegistry.ModelRegistry, (registry) => registry.resolve(name))

describe("ModelRegistry.parse (DR-25)", () => {
  for (const [name, provider, model] of [
    ["anthropic/claude", "anthropic", "claude"],
    [" Groq / meta-llama/llama-4 ", "groq", "meta-llama/llama-4"],
    ["gemini/x", "google", "x"],
    ["gemini-interactions/x", "google-interactions", "x"],
    ["google-vertex/x", "vertex", "x"],
    ["GROK/x", "xai", "x"],
    ["together/x", "togetherai", "x"],
    ["amazon-bedrock/x", "bedrock", "x"]
  ] as const) {
    it(`splits '${name}' at the first slash`, () =>
      assert.deepStrictEqual(ModelRegistry.parse(name), Result.succeed({ provider, model })))
  }

  for (const name of ["", "claude", "/claude", "anthropic/", " / ", "anthropic/  "]) {
    it(`rejects '${name}'`, () => {
      const parsed = ModelRegistry.parse(name)
      assert.isTrue(Result.isFailure(parsed))
    })
  }
})

describe("ModelRegistry.layer", () => {
  it.effect("returns the provider of the key and the known facts about the model", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make("hi")
      const known = yield* Effect.provide(
        resolve("mine/big"),
        ModelRegistry.layer(
          { " Mine ": mock },
          {
            models: [Model.make("big", { contextWindow: 9 })]
          }
        )
      )
      assert.strictEqual(known.provider, mock)
      assert.deepStrictEqual(known.model, { id: "big", capabilities: ["text"], contextWindow: 9, provider: "mine" })

      const listed = yield* Effect.provide(
        resolve(`anthropic/${Model.claudeSonnet4.id}`),
        ModelRegistry.layer({ anthropic: mock })
      )
      assert.deepStrictEqual(listed.model, Model.claudeSonnet4)
    })
  )

  it.effect("builds an adapter once, on first use, with the services of the layer", () =>
    Effect.gen(function* () {
      class Key extends Context.Service<Key, string>()("test/Key") {}
      let built = 0
      const adapter = Effect.map(Key, (key) => {
        built++
        return MockProvider.named(key)
      })
      const layer = ModelRegistry.layer({ mine: adapter }).pipe(Layer.provide(Layer.succeed(Key, "k")))
      yield* Effect.gen(function* () {
        assert.strictEqual(built, 0)
        assert.strictEqual((yield* resolve("mine/a")).provider.name, "k")
        assert.strictEqual((yield* resolve("mine/b")).provider.name, "k")
        assert.strictEqual(built, 1)
      }).pipe(Effect.provide(layer))
    })
  )

  it.effect("builds an adapter once for concurrent requests", () =>
    Effect.gen(function* () {
      let built = 0
      const adapter = Effect.andThen(
        Effect.yieldNow,
        Effect.sync(() => MockProvider.named(`mine ${++built}`))
      )
      const all = Effect.all([resolve("mine/a"), resolve("mine/b"), resolve("mine/c")], { concurrency: "unbounded" })
      const resolved = yield* Effect.provide(all, ModelRegistry.layer({ mine: adapter }))
      assert.deepStrictEqual(
        resolved.map(({ provider }) => provider.name),
        ["mine 1", "mine 1", "mine 1"]
      )
    })
  )

  it.effect("never blocks on the provider of another key", () =>
    Effect.gen(function* () {
      const slow = Effect.as(Effect.sleep("1 minute"), MockProvider.named("slow"))
      const quick = Effect.as(Effect.yieldNow, MockProvider.named("quick"))
      yield* Effect.gen(function* () {
        const waiting = yield* Effect.forkChild(resolve("slow/a"), { startImmediately: true })
        const other = yield* Effect.forkChild(resolve("quick/a"), { startImmediately: true })
        yield* TestClock.adjust("1 second")
        assert.isUndefined(waiting.pollUnsafe())
        assert.isDefined(other.pollUnsafe())
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* Fiber.join(waiting)).provider.name, "slow")
      }).pipe(Effect.provide(ModelRegistry.layer({ slow, quick })))
    })
  )

  it.effect("retries an adapter that was unavailable", () =>
    Effect.gen(function* () {
      let tries = 0
      const adapter = Effect.suspend(() =>
        tries++ === 0
          ? Effect.fail(new ProviderUnavailable({ provider: "mine", variable: "MINE_KEY" }))
          : Effect.succeed(MockProvider.make())
      )
      yield* Effect.gen(function* () {
        assert.strictEqual((yield* Effect.flip(resolve("mine/a")))._tag, "ProviderUnavailable")
        assert.strictEqual((yield* resolve("mine/a")).provider.name, "mock")
      }).pipe(Effect.provide(ModelRegistry.layer({ mine: adapter })))
    })
  )

  it.effect("reports a missing adapter, and distinguishes unknown from unavailable", () =>
    Effect.gen(function* () {
      const unknown = yield* Effect.flip(resolve("nobody/x"))
      assert.strictEqual(unknown._tag, "UnsupportedProvider")
      assert.include(unknown.message, "anthropic")
      assert.include(unknown.message, "mine")
      const missing = yield* Effect.flip(resolve("amazon-bedrock/x"))
      assert.strictEqual(missing._tag, "ProviderUnavailable")
      assert.strictEqual(
        missing.message,
        "no adapter is registered for provider 'bedrock': use HttpModelRegistry.layer, or AiSdkProvider.adapters with @ai-sdk/amazon-bedrock and AWS_BEARER_TOKEN_BEDROCK"
      )
      assert.strictEqual((yield* Effect.flip(resolve("x")))._tag, "InvalidModel")
    }).pipe(Effect.provide(ModelRegistry.layer({ mine: MockProvider.make() })))
  )

  it.effect("knows every key of the specification", () =>
    Effect.gen(function* () {
      const { keys } = yield* ModelRegistry.ModelRegistry
      for (const key of specified) {
        const parsed = Result.getOrThrow(ModelRegistry.parse(`${key}/x`))
        assert.include(keys, parsed.provider)
      }
    }).pipe(Effect.provide(ModelRegistry.layer({})))
  )
})

const specified =
  "openai anthropic azure baseten cerebras cohere deepinfra deepseek fireworks google gemini google-interactions gemini-interactions vertex google-vertex groq grok mistral perplexity together togetherai bedrock amazon-bedrock vercel xai".split(
    " "
  )
