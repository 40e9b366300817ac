/**
 * A model as data: its schema and its types.
 */

import * as Schema from "effect/Schema"

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
 * What tokens cost, in US dollars per million.
 *
 * @category models
 * @since 0.2.0
 */
export interface Rates {
  readonly inputPerMillion: number
  readonly outputPerMillion: number
  /** Price of input read from a cache. Default: the price of other input. */
  readonly cachedPerMillion?: number
  /** Price of input written to a cache. Default: the price of other input. */
  readonly cacheWritePerMillion?: number
}

/**
 * Prices in US dollars per million tokens.
 *
 * @category models
 * @since 0.1.0
 */
export interface Price extends Rates {
  /** The prices of a call, its output included, whose prompt has more tokens than `above`. */
  readonly longPrompt?: Rates & { readonly above: number }
  /**
   * US dollars for each call that the vendor runs itself, by the name of the tool, as `{ web_search: 0.01 }`. A tool
   * without a price adds nothing.
   *
   * @since 0.2.0
   */
  readonly hosted?: { readonly [tool: string]: number }
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
  /** How the model is best asked to call skills: in blocks of text, or by native calls of its vendor. */
  readonly dialect?: "blocks" | "tools"
  /**
   * The API of its vendor over which it is asked, where there are several (OpenAI). Default: that of the provider.
   *
   * @since 0.2.0
   */
  readonly api?: "chat" | "responses"
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
  const rates = {
    inputPerMillion: Amount,
    outputPerMillion: Amount,
    cachedPerMillion: Schema.optionalKey(Amount),
    cacheWritePerMillion: Schema.optionalKey(Amount)
  }
  return Schema.Struct({
    id: Schema.NonEmptyString,
    capabilities: Schema.Array(Capability),
    provider: Schema.optionalKey(Schema.String),
    contextWindow: Schema.optionalKey(Schema.Natural),
    maxOutputTokens: Schema.optionalKey(Schema.Natural),
    dialect: Schema.optionalKey(Schema.Literals(["blocks", "tools"])),
    api: Schema.optionalKey(Schema.Literals(["chat", "responses"])),
    price: Schema.optionalKey(
      Schema.Struct({
        ...rates,
        longPrompt: Schema.optionalKey(Schema.Struct({ ...rates, above: Schema.Natural })),
        hosted: Schema.optionalKey(Schema.Record(Schema.String, Amount))
      })
    )
  })
})()
