/**
 * The types of models, which the catalogue and the module `Model` share.
 */

/** One capability of a model. */
export type Capability = "text" | "vision" | "audio_in" | "video_in" | "document_in" | "image_gen" | "audio_out"

/** What tokens cost, in US dollars per million. */
export interface Rates {
  readonly inputPerMillion: number
  readonly outputPerMillion: number
  /** Price of input read from a cache. Default: the price of other input. */
  readonly cachedPerMillion?: number
  /** Price of input written to a cache. Default: the price of other input. */
  readonly cacheWritePerMillion?: number
}

/** Prices in US dollars per million tokens. */
export interface Price extends Rates {
  /** The prices of a call, its output included, whose prompt has more tokens than `above`. */
  readonly longPrompt?: Rates & { readonly above: number }
}

/** A model. Its provider receives only the id; the rest decides what is sent, and what that costs. */
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
  /** How the model is best asked to call skills: in blocks of text, or by native calls of its vendor. */
  readonly dialect?: "blocks" | "tools"
  /** Without a price no cost is counted, and a cost budget cannot be enforced. */
  readonly price?: Price
}
