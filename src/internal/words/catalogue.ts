/**
 * Models as data: their schema, and the capabilities, sizes and prices of the vendors' models.
 *
 * Each vendor's source has its page and the day it was read. A model whose price depends on the length of its prompt
 * has both prices. Prices are US dollars per million tokens.
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
 * Prices of tokens, in US dollars per million.
 *
 * @category models
 * @since 0.1.0
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
   * @since 0.1.0
   */
  readonly hosted?: { readonly [tool: string]: number }
}

/**
 * A model. Its provider receives only the id. The other fields decide what is sent and what it costs.
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
  /** The best dialect for the model's calls: blocks of text, or native calls of its vendor. */
  readonly dialect?: "blocks" | "tools"
  /**
   * The vendor's API to use for the model, if there are several (OpenAI). Default: that of the provider.
   *
   * @since 0.1.0
   */
  readonly api?: "chat" | "responses"
  /**
   * Whether the vendor can hold a reply to the JSON Schema of a typed answer, beside native tools or only in requests
   * without them. Absent: it cannot.
   *
   * @since 0.1.0
   */
  readonly structuredOutput?: "with_tools" | "without_tools"
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
    structuredOutput: Schema.optionalKey(Schema.Literals(["with_tools", "without_tools"])),
    price: Schema.optionalKey(
      Schema.Struct({
        ...rates,
        longPrompt: Schema.optionalKey(Schema.Struct({ ...rates, above: Schema.Natural })),
        hosted: Schema.optionalKey(Schema.Record(Schema.String, Amount))
      })
    )
  })
})()

/** The source of the facts about a vendor's models. */
interface Source {
  readonly provider: string
  readonly url: string
  /** A day, as `2026-11-24`. */
  readonly readOn: string
}

const text: ReadonlyArray<Capability> = ["text"]

const price = (
  inputPerMillion: number,
  outputPerMillion: number,
  cachedPerMillion?: number,
  cacheWritePerMillion?: number
): Price => ({
  inputPerMillion,
  outputPerMillion,
  ...(cachedPerMillion === undefined ? {} : { cachedPerMillion }),
  ...(cacheWritePerMillion === undefined ? {} : { cacheWritePerMillion })
})

const from = <const Name extends string>(
  source: Source,
  models: { readonly [K in Name]: Facts }
): { readonly source: Source; readonly models: { readonly [K in Name]: Model } } => ({
  source,
  // `Object.entries` and `fromEntries` keep the names but lose their types.
  models: Object.fromEntries(
    Object.entries<Facts>(models).map(([name, facts]) => [
      name,
      { ...facts, provider: source.provider, dialect: "tools" }
    ])
  ) as { readonly [K in Name]: Model }
})

const reads: ReadonlyArray<Capability> = ["text", "vision", "document_in"]

const claude = (id: string, contextWindow: number, maxOutputTokens: number, price: Price, takes = reads): Facts => ({
  id,
  capabilities: takes,
  contextWindow,
  maxOutputTokens,
  structuredOutput: "with_tools",
  // Ten dollars for a thousand searches.
  price: { ...price, hosted: { web_search: 0.01 } }
})

const sees: ReadonlyArray<Capability> = ["text", "vision"]

/** Claude 4 cannot hold a reply to a schema. Claude 4.5 is the first one that can. */
const claude4 = (id: string, maxOutputTokens: number, price: Price): Facts => {
  const { structuredOutput: _, ...facts } = claude(id, 200_000, maxOutputTokens, price, sees)
  return facts
}

export const anthropic = from(
  {
    provider: "anthropic",
    url: "https://platform.claude.com/docs/en/about-claude/pricing",
    readOn: "2026-11-24"
  },
  {
    claudeOpus4: claude4("claude-opus-4-20250514", 32_000, price(15, 75, 1.5, 18.75)),
    claudeOpus45: claude("claude-opus-4-5-20251101", 200_000, 64_000, price(5, 25, 0.5, 6.25)),
    claudeOpus46: claude("claude-opus-4-6", 1_000_000, 128_000, price(5, 25, 0.5, 6.25)),
    claudeOpus47: claude("claude-opus-4-7", 1_000_000, 128_000, price(5, 25, 0.5, 6.25)),
    claudeOpus5: claude("claude-opus-5", 1_000_000, 128_000, price(5, 25, 0.5, 6.25)),
    claudeOpus55: claude("claude-opus-5-5", 1_000_000, 128_000, price(4, 20, 0.2, 5)),
    claudeSonnet4: claude4("claude-sonnet-4-20250514", 64_000, price(3, 15, 0.3, 3.75)),
    claudeSonnet45: claude("claude-sonnet-4-5-20250929", 200_000, 64_000, price(3, 15, 0.3, 3.75)),
    claudeSonnet46: claude("claude-sonnet-4-6", 1_000_000, 64_000, price(3, 15, 0.3, 3.75)),
    claudeSonnet55: claude("claude-sonnet-5-5", 1_000_000, 128_000, price(2, 10, 0.1, 2.5)),
    claudeHaiku45: claude("claude-haiku-4-5-20251001", 200_000, 64_000, price(1, 5, 0.1, 1.25)),
    claudeHaiku55: claude("claude-haiku-5-5", 1_000_000, 128_000, {
      ...price(0.1, 0.5, 0.01, 0.125),
      longPrompt: { above: 100_000, ...price(0.5, 2.5, 0.05, 0.625) }
    })
  }
)

const gpt = (id: string, contextWindow: number, maxOutputTokens: number, price: Price, takes = reads): Facts => ({
  id,
  capabilities: takes,
  contextWindow,
  maxOutputTokens,
  structuredOutput: "with_tools",
  price
})

/** Describes a model that needs its encrypted reasoning sent back, which only the Responses API supports. */
const reasoner = (...facts: Parameters<typeof gpt>): Facts => ({ ...gpt(...facts), api: "responses" })

export const openai = from(
  {
    provider: "openai",
    url: "https://github.com/badlogic/pi-mono (models of @mariozechner/pi-ai 0.73.1, 2026-05-08)",
    readOn: "2026-11-24"
  },
  {
    gpt4o: gpt("gpt-4o", 128_000, 16_384, price(2.5, 10, 1.25), ["text", "vision", "audio_in", "audio_out"]),
    gpt4oMini: gpt("gpt-4o-mini", 128_000, 16_384, price(0.15, 0.6, 0.075), sees),
    gpt41: gpt("gpt-4.1", 1_047_576, 32_768, price(2, 8, 0.5)),
    gpt41Mini: gpt("gpt-4.1-mini", 1_047_576, 32_768, price(0.4, 1.6, 0.1)),
    gpt5: reasoner("gpt-5", 400_000, 128_000, price(1.25, 10, 0.125)),
    gpt5Mini: reasoner("gpt-5-mini", 400_000, 128_000, price(0.25, 2, 0.025)),
    gpt5Nano: reasoner("gpt-5-nano", 400_000, 128_000, price(0.05, 0.4, 0.005)),
    gpt51: reasoner("gpt-5.1", 400_000, 128_000, price(1.25, 10, 0.125)),
    gpt52: reasoner("gpt-5.2", 400_000, 128_000, price(1.75, 14, 0.175)),
    gpt54: reasoner("gpt-5.4", 272_000, 128_000, price(2.5, 15, 0.25)),
    gpt54Mini: reasoner("gpt-5.4-mini", 400_000, 128_000, price(0.75, 4.5, 0.075)),
    gpt55: reasoner("gpt-5.5", 272_000, 128_000, price(5, 30, 0.5)),
    o3: reasoner("o3", 200_000, 100_000, price(2, 8, 0.5)),
    o4Mini: reasoner("o4-mini", 200_000, 100_000, price(1.1, 4.4, 0.275))
  }
)

const perceives: ReadonlyArray<Capability> = ["text", "vision", "audio_in", "video_in", "document_in"]

const gemini = (id: string, price?: Price): Facts => ({
  id,
  capabilities: perceives,
  contextWindow: 1_048_576,
  maxOutputTokens: 65_536,
  // Gemini 2.5 refuses a schema beside tools.
  structuredOutput: id.startsWith("gemini-2") ? "without_tools" : "with_tools",
  ...(price === undefined ? {} : { price })
})

export const google = from(
  {
    provider: "google",
    url: "https://github.com/badlogic/pi-mono (models of @mariozechner/pi-ai 0.73.1, 2026-05-08)",
    readOn: "2026-11-24"
  },
  {
    // Prices of Pro models depend on the length of the prompt, and only the lower ones were found.
    gemini25Pro: gemini("gemini-2.5-pro"),
    gemini25Flash: gemini("gemini-2.5-flash", price(0.3, 2.5, 0.03)),
    gemini25FlashLite: gemini("gemini-2.5-flash-lite", price(0.1, 0.4, 0.025)),
    gemini3Flash: gemini("gemini-3-flash-preview", price(0.5, 3, 0.05)),
    gemini31Pro: gemini("gemini-3.1-pro-preview")
  }
)

const url = "https://github.com/badlogic/pi-mono (models of @mariozechner/pi-ai 0.73.1, 2026-05-08)"

const readOn = "2026-11-24"

const other = (id: string, contextWindow: number, maxOutputTokens: number, price: Price, takes = sees): Facts => ({
  id,
  capabilities: takes,
  contextWindow,
  maxOutputTokens,
  price
})

export const xai = from(
  { provider: "xai", url, readOn },
  {
    grok4: other("grok-4", 256_000, 64_000, price(3, 15, 0.75), text),
    grok43: other("grok-4.3", 1_000_000, 30_000, price(1.25, 2.5, 0.2))
  }
)

export const deepseek = from(
  { provider: "deepseek", url, readOn },
  {
    deepseekV4Flash: other("deepseek-v4-flash", 1_000_000, 384_000, price(0.14, 0.28, 0.0028), text),
    deepseekV4Pro: other("deepseek-v4-pro", 1_000_000, 384_000, price(0.435, 0.87, 0.003625), text)
  }
)

export const mistral = from(
  { provider: "mistral", url, readOn },
  {
    mistralLarge: other("mistral-large-latest", 262_144, 262_144, price(0.5, 1.5)),
    mistralMedium: other("mistral-medium-latest", 262_144, 262_144, price(1.5, 7.5)),
    mistralSmall: other("mistral-small-latest", 256_000, 256_000, price(0.15, 0.6))
  }
)

export const groq = from(
  { provider: "groq", url, readOn },
  {
    gptOss120b: other("openai/gpt-oss-120b", 131_072, 65_536, price(0.15, 0.6), text),
    llama33: other("llama-3.3-70b-versatile", 131_072, 32_768, price(0.59, 0.79), text)
  }
)

/** Local models without a price. Small ones handle blocks better than native calls. */
export const ollama = {
  source: { provider: "ollama", url: "https://ollama.com/library", readOn },
  models: {
    llama31: { id: "llama3.1", capabilities: text, provider: "ollama", dialect: "blocks" },
    llava: { id: "llava", capabilities: sees, provider: "ollama", dialect: "blocks" }
  }
} as const satisfies { readonly source: Source; readonly models: { readonly [name: string]: Model } }

/** The models of all vendors. */
export const catalogue: ReadonlyArray<{ readonly source: Source; readonly models: ReadonlyArray<Model> }> = [
  anthropic,
  openai,
  google,
  xai,
  deepseek,
  mistral,
  groq,
  ollama
].map(({ models, source }) => ({ source, models: Object.values(models) }))

type Facts = Omit<Model, "provider" | "dialect">
