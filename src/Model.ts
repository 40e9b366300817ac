/**
 * A model as a value: its id, its capabilities, its size and its price.
 *
 * Capabilities are never guessed during a run: a model that is not listed here is created with `make`. `guess` is for
 * command lines and scenarios.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import type { Kind } from "./Media.ts"

/**
 * Capabilities for input (`text`, `vision`, `audio_in`, `video_in`, `document_in`) and output (`text`, `image_gen`,
 * `audio_out`).
 *
 * @category schemas
 * @since 0.1.0
 */
export const Capability = Schema.Literals([
  "text",
  "vision",
  "audio_in",
  "video_in",
  "document_in",
  "image_gen",
  "audio_out"
])
/**
 * One capability of a model.
 *
 * @category models
 * @since 0.1.0
 */
export type Capability = typeof Capability.Type

/**
 * Prices in US dollars per million tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Price {
  readonly inputPerMillion: number
  readonly outputPerMillion: number
  /** Price of input read from a cache. Default: the price of other input. */
  readonly cachedPerMillion?: number
}

/**
 * A model. Its provider receives only the id; the rest decides what is sent, and what that costs.
 *
 * @category models
 * @since 0.1.0
 */
export interface Model {
  /** The provider's name for the model. */
  readonly id: string
  readonly capabilities: ReadonlyArray<Capability>
  /**
   * Key of its provider, as in `<provider>/<model>`. A run whose agent has a model value uses the provider of its
   * layer, or without one the provider with this key in the `ModelRegistry`.
   */
  readonly provider?: string
  /** Maximum tokens of a prompt and its reply together. */
  readonly contextWindow?: number
  /** Maximum tokens of a reply, for display. Replies are limited by `Generation.maxTokens`. */
  readonly maxOutputTokens?: number
  /** Without a price no cost is counted, and a cost budget cannot be enforced. */
  readonly price?: Price
}

/**
 * The codec of models, in camelCase like all state of a run.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Model: Schema.Codec<Model> = (() => {
  const Amount = Schema.Finite.check(Schema.isGreaterThanOrEqualTo(0))
  return Schema.Struct({
    id: Schema.NonEmptyString,
    capabilities: Schema.Array(Capability),
    provider: Schema.optionalKey(Schema.String),
    contextWindow: Schema.optionalKey(Schema.Natural),
    maxOutputTokens: Schema.optionalKey(Schema.Natural),
    price: Schema.optionalKey(
      Schema.Struct({
        inputPerMillion: Amount,
        outputPerMillion: Amount,
        cachedPerMillion: Schema.optionalKey(Amount)
      })
    )
  })
})()

/**
 * Creates a model. Without `capabilities` it has text input and output.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (id: string, options?: Partial<Omit<Model, "id">>): Model => ({
  id,
  capabilities: ["text"],
  ...options
})

/**
 * Guesses the capabilities of a model from its id, by the first known family it names.
 *
 * @category constructors
 * @since 0.1.0
 */
export const guess = (id: string): ReadonlyArray<Capability> => {
  const name = id.toLowerCase()
  return families.find(([family]) => name.includes(family))?.[1] ?? ["text"]
}

/**
 * Does the model have all of these capabilities?
 *
 * @category combinators
 * @since 0.1.0
 */
export const supports = (model: Model, ...capabilities: ReadonlyArray<Capability>): boolean =>
  capabilities.every((capability) => model.capabilities.includes(capability))

/**
 * Returns the kinds of media the model accepts, in the order of its capabilities.
 *
 * @category combinators
 * @since 0.1.0
 */
export const mediaInputs = (model: Model): ReadonlyArray<Kind> => kindsOf(model, inputs)

/**
 * Returns the kinds of media the model produces, in the order of its capabilities.
 *
 * @category combinators
 * @since 0.1.0
 */
export const mediaOutputs = (model: Model): ReadonlyArray<Kind> => kindsOf(model, outputs)

/**
 * Are these the same model? They are if id and capabilities, in order, are equal.
 *
 * @category combinators
 * @since 0.1.0
 */
export const isSame = (self: Model, that: Model): boolean =>
  self.id === that.id &&
  self.capabilities.length === that.capabilities.length &&
  self.capabilities.every((capability, index) => capability === that.capabilities[index])

// ---------------------------------------------------------------- catalogue

/**
 * A placeholder for any model with text input and output.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const textOnly: Model = { id: "text-only", capabilities: ["text"] }

/**
 * Anthropic's Claude Opus 4.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const claudeOpus4: Model = {
  id: "claude-opus-4-20250514",
  capabilities: ["text", "vision"],
  provider: "anthropic",
  contextWindow: 200_000,
  maxOutputTokens: 32_000,
  price: { inputPerMillion: 15, outputPerMillion: 75, cachedPerMillion: 1.5 }
}

/**
 * Anthropic's Claude Sonnet 4.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const claudeSonnet4: Model = {
  id: "claude-sonnet-4-20250514",
  capabilities: ["text", "vision"],
  provider: "anthropic",
  contextWindow: 200_000,
  maxOutputTokens: 64_000,
  price: { inputPerMillion: 3, outputPerMillion: 15, cachedPerMillion: 0.3 }
}

/**
 * Anthropic's Claude Sonnet 4.5.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const claudeSonnet45: Model = { ...claudeSonnet4, id: "claude-sonnet-4-5-20250929" }

/**
 * Anthropic's Claude Haiku 4.5.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const claudeHaiku45: Model = {
  id: "claude-haiku-4-5-20251001",
  capabilities: ["text", "vision"],
  provider: "anthropic",
  contextWindow: 200_000,
  maxOutputTokens: 64_000,
  price: { inputPerMillion: 1, outputPerMillion: 5, cachedPerMillion: 0.1 }
}

/**
 * OpenAI's GPT-4o.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const gpt4o: Model = {
  id: "gpt-4o",
  capabilities: ["text", "vision", "audio_in", "audio_out"],
  provider: "openai",
  contextWindow: 128_000,
  maxOutputTokens: 16_384,
  price: { inputPerMillion: 2.5, outputPerMillion: 10, cachedPerMillion: 1.25 }
}

/**
 * OpenAI's GPT-4o mini.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const gpt4oMini: Model = {
  id: "gpt-4o-mini",
  capabilities: ["text", "vision"],
  provider: "openai",
  contextWindow: 128_000,
  maxOutputTokens: 16_384,
  price: { inputPerMillion: 0.15, outputPerMillion: 0.6, cachedPerMillion: 0.075 }
}

/**
 * OpenAI's GPT-5.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const gpt5: Model = {
  id: "gpt-5",
  capabilities: ["text", "vision"],
  provider: "openai",
  contextWindow: 400_000,
  maxOutputTokens: 128_000,
  price: { inputPerMillion: 1.25, outputPerMillion: 10, cachedPerMillion: 0.125 }
}

/**
 * Google's Gemini 2.5 Pro. Its price depends on the length of the prompt, so none is given.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const gemini25Pro: Model = {
  id: "gemini-2.5-pro",
  capabilities: ["text", "vision", "audio_in", "video_in", "document_in"],
  provider: "google",
  contextWindow: 1_048_576,
  maxOutputTokens: 65_536
}

/**
 * Meta's Llama 3.1, as served by Ollama.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const llama31: Model = { id: "llama3.1", capabilities: ["text"], provider: "ollama" }

/**
 * LLaVA, as served by Ollama.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const llava: Model = { id: "llava", capabilities: ["text", "vision"], provider: "ollama" }

const inputs: ReadonlyMap<Capability, Kind> = new Map([
  ["vision", "image"],
  ["audio_in", "audio"],
  ["video_in", "video"],
  ["document_in", "document"]
])

const outputs: ReadonlyMap<Capability, Kind> = new Map([
  ["image_gen", "image"],
  ["audio_out", "audio"]
])

const kindsOf = (model: Model, kinds: ReadonlyMap<Capability, Kind>): ReadonlyArray<Kind> =>
  Array.from(new Set(model.capabilities), (capability) => kinds.get(capability)).filter((kind) => kind !== undefined)

const families: ReadonlyArray<readonly [string, ReadonlyArray<Capability>]> = [
  ["claude", ["text", "vision"]],
  ["gpt-4o", ["text", "vision"]],
  ["gpt-4", ["text", "vision"]],
  ["gemini", ["text", "vision", "audio_in", "video_in", "document_in"]],
  ["llava", ["text", "vision"]],
  ["llama3.2-vision", ["text", "vision"]],
  ["gemma3", ["text", "vision"]],
  ["gemma", ["text"]]
]
