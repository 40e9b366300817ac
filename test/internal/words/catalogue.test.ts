/** The catalogue: its form, its sources, and what it says of models that are in it and not. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Logger, Schema } from "effect"
import { Agent, Model, ModelRegistry, Usage } from "kernai"
import { HttpModelRegistry } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import { keyless, providers } from "../../../src/cli/examine.ts"

const entries = Model.catalogue.flatMap(({ models, source }) => models.map((model) => ({ model, source })))

describe("the catalogue", () => {
  it("lists each model once, under a provider that the registry has", () => {
    const names = entries.map(({ model }) => `${model.provider}/${model.id}`)
    assert.strictEqual(new Set(names).size, names.length)
    for (const { model, source } of entries) {
      assert.strictEqual(model.provider, source.provider)
      assert.property(HttpModelRegistry.adapters, source.provider)
    }
  })

  it("names the page and the day of each vendor's facts", () => {
    for (const { source } of Model.catalogue) {
      assert.isTrue(source.url.startsWith("https://"), source.url)
      assert.match(source.readOn, /^20\d\d-\d\d-\d\d$/)
      assert.isFalse(Number.isNaN(Date.parse(source.readOn)))
    }
  })

  it("has for each hosted model a size, a dialect and a plausible price that its codec accepts", () => {
    const decode = Schema.decodeUnknownSync(Model.Model)
    for (const { model } of entries) {
      assert.deepStrictEqual(decode(model), model)
      assert.include(model.capabilities, "text")
      assert.isDefined(model.dialect)
      if (model.provider === "ollama") continue
      assert.isAtMost(model.maxOutputTokens ?? Infinity, model.contextWindow ?? 0, model.id)
      for (const rates of [model.price, model.price?.longPrompt]) {
        if (rates === undefined) continue
        assert.isAtMost(rates.inputPerMillion, rates.outputPerMillion, model.id)
        assert.isBelow(rates.cachedPerMillion ?? 0, rates.inputPerMillion, model.id)
        assert.isAtMost(rates.inputPerMillion, rates.cacheWritePerMillion ?? Infinity, model.id)
      }
    }
  })

  it("is found by provider and id, with and without the date of a snapshot", () => {
    assert.strictEqual(Model.find("anthropic", "claude-sonnet-4-5-20250929"), Model.claudeSonnet45)
    assert.deepStrictEqual(Model.find("anthropic", "claude-sonnet-4-5"), {
      ...Model.claudeSonnet45,
      id: "claude-sonnet-4-5"
    })
    assert.strictEqual(Model.find("openai", "gpt-5-2025-08-07")?.price?.inputPerMillion, 1.25)
    assert.isUndefined(Model.find("groq", "gpt-5"))
    assert.isUndefined(Model.find("openai", "gpt-5-new"))
  })

  it("charges a long prompt at its own price", () => {
    const price = Model.claudeHaiku55.price ?? assert.fail()
    const spent = (inputTokens: number) => Usage.cost(Usage.make({ inputTokens, outputTokens: 1_000_000 }), price)
    assert.closeTo(spent(100_000), 0.01 + 0.5, 1e-9)
    assert.closeTo(spent(100_001), 0.05 + 2.5, 1e-4)
  })
})

describe("a model that is not in the catalogue", () => {
  const logged: Array<string> = []
  const logger = Logger.layer([Logger.make(({ message }) => void logged.push(String(message)))])
  const resolve = (name: string) => ModelRegistry.ModelRegistry.use((registry) => registry.resolve(name))

  it.effect("can be used, with one warning that nothing is known about it", () =>
    Effect.gen(function* () {
      const { model } = yield* resolve("openai/gpt-next")
      assert.deepStrictEqual(model, { id: "gpt-next", capabilities: ["text"], provider: "openai" })
      yield* resolve("openai/gpt-next")
      yield* resolve("openai/gpt-5")
      yield* resolve("openai/mine")
      assert.deepStrictEqual(logged, [
        "the model 'openai/gpt-next' is not in the catalogue: it is asked with text only, and has no price; describe it with Model.make"
      ])
      assert.isDefined(Agent.make({ instructions: "", model: Model.make("gpt-next", { provider: "openai" }) }))
    }).pipe(
      Effect.provide([ModelRegistry.layer({ openai: MockProvider.make() }, { models: [Model.make("mine")] }), logger])
    )
  )
})

describe("the providers that 'kernai doctor' examines", () => {
  it.effect("are those of the registry, OpenRouter among them", () =>
    Effect.gen(function* () {
      const examined = [...providers.map(([name]) => name), ...keyless].toSorted()
      assert.deepStrictEqual(examined, Object.keys(HttpModelRegistry.adapters).toSorted())
      const { keys } = yield* ModelRegistry.ModelRegistry
      assert.deepStrictEqual(
        examined.filter((name) => !keyless.includes(name)),
        keys.toSorted()
      )
      assert.include(keys, "openrouter")
    }).pipe(Effect.provide(ModelRegistry.layer({})))
  )
})
