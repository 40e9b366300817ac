/**
 * Finds memories by meaning, with any `EmbeddingModel` of effect/ai.
 *
 * @since 0.1.0
 */

import * as EmbeddingModel from "effect/ai/EmbeddingModel"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { layerFor } from "../kit/layerFor.ts"
import * as Memory from "../Memory.ts"

/**
 * Makes every memory under this layer compare by meaning, whatever its store.
 *
 * @example
 * SqlMemory.layer().pipe(Layer.provide(EmbeddingMemory.embedder))
 *
 * @category layers
 * @since 0.1.0
 */
export const embedder: Layer.Layer<never, never, EmbeddingModel.EmbeddingModel> = layerFor(
  EmbeddingModel.EmbeddingModel,
  () =>
    Layer.effect(
      Memory.Embedder,
      Effect.map(
        EmbeddingModel.EmbeddingModel,
        (model): Memory.Embed =>
          (text) =>
            Effect.map(model.embed(text), (response) => response.vector)
      )
    )
)

/**
 * Keeps memories in this process and compares them by words and by meaning.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Memory.Memory, never, EmbeddingModel.EmbeddingModel> = layerFor(
  EmbeddingModel.EmbeddingModel,
  () => Layer.provide(Memory.layerMemory, embedder)
)
