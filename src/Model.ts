/**
 * A model as a value: its id, its capabilities, its size and its price.
 *
 * Capabilities are never guessed during a run: a model that is not in the `catalogue` is created with `make`. `guess` is
 * for command lines and scenarios.
 *
 * @since 0.1.0
 */

import * as Catalogue from "./internal/words/catalogue.ts"
import { Capability, Model } from "./internal/words/catalogue.ts"
import type { Kind } from "./Media.ts"

export { Capability, Model }
export type { Price, Rates } from "./internal/words/catalogue.ts"

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
 * Guesses the capabilities of a model from its id, by the first known model family in it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const guess = (id: string): ReadonlyArray<Capability> => {
  const name = id.toLowerCase()
  return families.find(([family]) => name.includes(family))?.[1] ?? ["text"]
}

/**
 * Returns true if the model has all of these capabilities.
 *
 * @category guards
 * @since 0.1.0
 */
export const supports = (model: Model, ...capabilities: ReadonlyArray<Capability>): boolean =>
  capabilities.every((capability) => model.capabilities.includes(capability))

/**
 * Returns true if the vendor can hold a reply of the model to a JSON Schema, in a request with or without tools.
 *
 * @category guards
 * @since 0.1.0
 */
export const holdsSchema = ({ structuredOutput }: Model, hasTools: boolean): boolean =>
  structuredOutput === "with_tools" || (structuredOutput === "without_tools" && !hasTools)

/**
 * Returns the kinds of media the model accepts, in the order of its capabilities.
 *
 * @category getters
 * @since 0.1.0
 */
export const mediaInputs = (model: Model): ReadonlyArray<Kind> => kindsOf(model, inputs)

/**
 * Returns the kinds of media the model produces, in the order of its capabilities.
 *
 * @category getters
 * @since 0.1.0
 */
export const mediaOutputs = (model: Model): ReadonlyArray<Kind> => kindsOf(model, outputs)

/**
 * Returns true if two models have the same id and the same capabilities in the same order.
 *
 * @category comparing
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
 * The built-in models by vendor, with the page that documents them and the day it was read.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const catalogue: ReadonlyArray<{
  readonly source: { readonly provider: string; readonly url: string; readonly readOn: string }
  readonly models: ReadonlyArray<Model>
}> = Catalogue.catalogue

/**
 * Finds a model of the catalogue by its provider and id, with or without the date of a snapshot.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const find = (provider: string, id: string): Model | undefined => {
  const models = catalogue.find(({ source }) => source.provider === provider)?.models
  const found = models?.find((model) => model.id === id) ?? models?.find((model) => undated(model.id) === undated(id))
  return found === undefined || found.id === id ? found : { ...found, id }
}

/**
 * Returns the dialect in which a model calls skills best: its own `dialect`, or that of its vendor in the catalogue, or
 * `blocks`.
 *
 * @category getters
 * @since 0.1.0
 */
export const dialectOf = ({ dialect, provider }: Model): "blocks" | "tools" =>
  dialect ?? catalogue.find(({ source }) => source.provider === provider)?.models[0]?.dialect ?? "blocks"

const undated = (id: string): string => id.replace(/-(\d{8}|\d{4}-\d{2}-\d{2})$/, "")

/**
 * Anthropic's Claude Opus 4.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const claudeOpus4: Model = Catalogue.anthropic.models.claudeOpus4

/**
 * Anthropic's Claude Opus 5.5.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const claudeOpus55: Model = Catalogue.anthropic.models.claudeOpus55

/**
 * Anthropic's Claude Sonnet 4.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const claudeSonnet4: Model = Catalogue.anthropic.models.claudeSonnet4

/**
 * Anthropic's Claude Sonnet 4.5.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const claudeSonnet45: Model = Catalogue.anthropic.models.claudeSonnet45

/**
 * Anthropic's Claude Sonnet 5.5.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const claudeSonnet55: Model = Catalogue.anthropic.models.claudeSonnet55

/**
 * Anthropic's Claude Haiku 4.5.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const claudeHaiku45: Model = Catalogue.anthropic.models.claudeHaiku45

/**
 * Anthropic's Claude Haiku 5.5.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const claudeHaiku55: Model = Catalogue.anthropic.models.claudeHaiku55

/**
 * OpenAI's GPT-4o.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const gpt4o: Model = Catalogue.openai.models.gpt4o

/**
 * OpenAI's GPT-4o mini.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const gpt4oMini: Model = Catalogue.openai.models.gpt4oMini

/**
 * OpenAI's GPT-5.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const gpt5: Model = Catalogue.openai.models.gpt5

/**
 * OpenAI's GPT-5.5.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const gpt55: Model = Catalogue.openai.models.gpt55

/**
 * Google's Gemini 2.5 Pro, without a price.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const gemini25Pro: Model = Catalogue.google.models.gemini25Pro

/**
 * Google's Gemini 2.5 Flash.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const gemini25Flash: Model = Catalogue.google.models.gemini25Flash

/**
 * Google's Gemini 3.1 Pro, without a price.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const gemini31Pro: Model = Catalogue.google.models.gemini31Pro

/**
 * Meta's Llama 3.1, as served by Ollama.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const llama31: Model = Catalogue.ollama.models.llama31

/**
 * LLaVA, as served by Ollama.
 *
 * @category catalogue
 * @since 0.1.0
 */
export const llava: Model = Catalogue.ollama.models.llava

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
