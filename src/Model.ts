/**
 * A model as a value: its id, what it can do, and what is known of its size and price (BP-151).
 *
 * The library never guesses what a model can do: a model not listed here is
 * made with `make`. `guess` is for command lines and scenarios.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import type { Kind } from "./Media.ts"

/**
 * What a model takes (`text`, `vision`, `audio_in`, `video_in`, `document_in`) and gives (`text`, `image_gen`, `audio_out`).
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
 * One thing a model can do.
 *
 * @category models
 * @since 0.1.0
 */
export type Capability = typeof Capability.Type

/**
 * US dollars for a million tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Price {
  readonly inputPerMillion: number
  readonly outputPerMillion: number
  /** Of input read from a cache. Default: like other input. */
  readonly cachedPerMillion?: number
}

/**
 * What is known of a model. Only its id goes to its provider; the rest decides what it is sent, and what that costs.
 *
 * @category models
 * @since 0.1.0
 */
export interface Model {
  /** What the provider calls it. */
  readonly id: string
  readonly capabilities: ReadonlyArray<Capability>
  /**
   * Key of the provider that serves it, as in `<provider>/<model>` (DR-25), by which the entry of such a name is found.
   * A run that is given a model as a value asks the provider of its layer or, where there is none, the one with this
   * key in the `ModelRegistry`.
   */
  readonly provider?: string
  /** Tokens a prompt and its answer may have together. */
  readonly contextWindow?: number
  /** Tokens an answer may have. For screens: nothing here looks at it, replies are held to `Generation.maxTokens`. */
  readonly maxOutputTokens?: number
  /** Without a price, or with one that is no number, no cost is known, and no cost budget can be kept. */
  readonly price?: Price
}

/**
 * The codec, in camelCase like all run state (CP-17).
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
 * A model by its id. Without `capabilities` it takes and gives text.
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
 * What a model can do, guessed from its id: the first known family named in it (BP-182).
 *
 * @category constructors
 * @since 0.1.0
 */
export const guess = (id: string): ReadonlyArray<Capability> => {
  const name = id.toLowerCase()
  return families.find(([family]) => name.includes(family))?.[1] ?? ["text"]
}

/**
 * Can the model do all of these?
 *
 * @category combinators
 * @since 0.1.0
 */
export const supports = (model: Model, ...capabilities: ReadonlyArray<Capability>): boolean =>
  capabilities.every((capability) => model.capabilities.includes(capability))

/**
 * The kinds of media the model takes, in the order its capabilities are declared.
 *
 * @category combinators
 * @since 0.1.0
 */
export const mediaInputs = (model: Model): ReadonlyArray<Kind> => kindsOf(model, inputs)

/**
 * The kinds of media the model gives, in the order its capabilities are declared.
 *
 * @category combinators
 * @since 0.1.0
 */
export const mediaOutputs = (model: Model): ReadonlyArray<Kind> => kindsOf(model, outputs)

/**
 * Are these the same model: same id, same capabilities in the same order (BP-151)?
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
 * No particular model: text in, text out.
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
 * Meta's Llama 3.1, as Ollama serves it.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const llama31: Model = { id: "llama3.1", capabilities: ["text"], provider: "ollama" }

/**
 * LLaVA, as Ollama serves it.
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
