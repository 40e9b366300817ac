import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { EmbeddingModel } from "effect/ai"
import { Memory } from "kernai"
import { EmbeddingMemory } from "kernai/provider"

describe("EmbeddingMemory", () => {
  it.effect("embeds entries and queries with the EmbeddingModel of the context", () => {
    const model = Layer.effect(
      EmbeddingModel.EmbeddingModel,
      EmbeddingModel.make({
        embedMany: ({ inputs }) =>
          Effect.succeed({
            results: inputs.map((input) => (input.includes("sea") || input.includes("ocean") ? [1, 0] : [0, 1])),
            usage: { inputTokens: undefined }
          })
      })
    )
    return Effect.gen(function* () {
      const memory = yield* Memory.Memory
      yield* memory.store({ content: "the ocean is deep" })
      yield* memory.store({ content: "mountains are high" })
      const [best] = yield* memory.search({ query: "sea" })
      assert.strictEqual(best?.content, "the ocean is deep")
    }).pipe(Effect.provide(Layer.provide(EmbeddingMemory.layer, model)))
  })
})
