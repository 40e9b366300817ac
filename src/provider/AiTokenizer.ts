/**
 * Counts tokens with any `Tokenizer` of effect/ai.
 *
 * @since 0.1.0
 */

import * as Tokenizer from "effect/ai/Tokenizer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { layerFor } from "../kit/layerFor.ts"
import { logIgnored } from "../kit/foreignCode.ts"
import { estimateTokens, TokenCounter, type TokenCount } from "../PromptPipeline.ts"

/**
 * Counts the tokens of prompts with the tokenizer in context. If it fails, the failure is logged and the count is
 * estimated as a quarter of the text's bytes.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<never, never, Tokenizer.Tokenizer> = layerFor(Tokenizer.Tokenizer, () =>
  Layer.effect(
    TokenCounter,
    Effect.map(
      Tokenizer.Tokenizer,
      (tokenizer): TokenCount =>
        (text) =>
          tokenizer.tokenize(text).pipe(
            Effect.map((tokens) => tokens.length),
            Effect.catchCause((cause) => Effect.as(logIgnored("a text was not tokenized")(cause), estimateTokens(text)))
          )
    )
  )
)
