/**
 * The schemas of the words about a model call: its dialect, its options, and how its reply ended.
 */

import * as Schema from "effect/Schema"
import { lazily } from "../../kit/schemas.ts"
import * as Storable from "../../kit/storable.ts"

export const dialectName = lazily(() => Schema.Literals(["blocks", "tools"]))

export const finishReason = lazily(() =>
  Schema.Literals(["stop", "length", "content-filter", "tool-calls", "error", "pause", "other", "unknown"])
)

export const generation = lazily(() =>
  Schema.Struct({
    /** At least 0. The maximum depends on the vendor. */
    temperature: Schema.optionalKey(Schema.Finite),
    /** Maximum length of the reply in tokens. Anthropic requires one: by default 4096 plus the `budget` of thinking. */
    maxTokens: Schema.optionalKey(Schema.Finite),
    /** From 0 to 1. */
    topP: Schema.optionalKey(Schema.Finite),
    /** Texts that end the reply. They are not part of it. */
    stopSequences: Schema.optionalKey(Schema.Array(Schema.String)),
    /** A whole number. */
    seed: Schema.optionalKey(Schema.Finite),
    /**
     * The amount of thinking: `budget` in tokens for vendors that count them (Anthropic, and Gemini, where -1 leaves it
     * to the model), `effort` by the vendor's names (`low`, `medium`, `high`). Ollama receives neither; it thinks with
     * `extra: { ollama: { think: true } }`.
     */
    thinking: Schema.optionalKey(
      Schema.Struct({ budget: Schema.optionalKey(Schema.Finite), effort: Schema.optionalKey(Schema.String) })
    ),
    /**
     * Options of single vendors by provider name, such as `{ anthropic: { top_k: 5 } }`. They are sent unchanged to that
     * provider only, and override the options above.
     */
    extra: Schema.optionalKey(Storable.JsonObject)
  })
)
