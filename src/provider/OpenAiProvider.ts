/**
 * OpenAI, over Responses or Chat Completions.
 *
 * `Model.api` selects the API for a model. The reasoning models of the catalogue use Responses, which accepts their
 * encrypted reasoning with the next request. Nothing is stored at the service.
 *
 * Use `OpenAiCompatibleProvider` for other servers that speak the same format.
 *
 * @since 0.1.0
 */

import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Redacted from "effect/Redacted"
import { vendorRules } from "../kit/vendorRules.ts"
import type { ProviderShape, Request } from "../Provider.ts"
import { extras, hostedOf } from "./internal/body.ts"
import { adapter, type Format } from "./internal/adapter.ts"
import { chatFormat } from "./internal/chatFormat.ts"
import * as ChatReply from "./internal/chatReply.ts"
import * as ChatRequest from "./internal/chatRequest.ts"
import { configured, requireKey } from "./internal/configured.ts"
import { decoder } from "./internal/responsesReply.ts"
import { media, takes, toBody, toItems } from "./internal/responsesRequest.ts"

/**
 * Options of the provider.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly apiKey: Redacted.Redacted
  /** With or without `/v1` at its end. Default: `https://api.openai.com`. */
  readonly baseUrl?: string | undefined
  /**
   * The API for all models, for a proxy that offers only one. Default: `Model.api`, or `chat`.
   *
   * @since 0.1.0
   */
  readonly api?: "chat" | "responses" | undefined
  /**
   * How long the prompt cache lives, for models that offer it: in memory, or up to 24 hours. Default: what OpenAI
   * chooses.
   *
   * @since 0.1.0
   */
  readonly cacheRetention?: "in_memory" | "24h" | undefined
  /** Additional headers, such as `openai-organization`. */
  readonly headers?: { readonly [name: string]: string } | undefined
}

/**
 * Creates the provider. It uses the HTTP client in context.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<ProviderShape, never, HttpClient.HttpClient> =>
  adapter(
    {
      name: dialect.name,
      apiKey: options.apiKey,
      baseUrl: options.baseUrl ?? "https://api.openai.com",
      version: "/v1",
      headers: () => ({ ...options.headers, authorization: `Bearer ${Redacted.value(options.apiKey)}` }),
      fault: ChatReply.fault,
      takes: (asked) =>
        (options.api ?? asked.model.api) === "responses" ? takes(asked) : ChatRequest.takes(dialect)(asked),
      constrains: (request) => ChatRequest.structured(dialect, request) !== undefined,
      list: { path: "/models", key: "data", id: "id" }
    },
    (speak) => {
      const chat = speak(chatFormat(dialect))
      const responses = speak(responsesFormat)
      // Only Responses has tools that OpenAI runs.
      const usual = ({ model, tools }: Request) => (hostedOf(tools, dialect.name).length > 0 ? "responses" : model.api)
      const keep = retaining(options.cacheRetention)
      return (asked) => {
        const request = keep(asked)
        return (options.api ?? usual(request)) === "responses" ? responses(request) : chat(request)
      }
    }
  )

/** Adds the retention to the vendor's own options of a request, which win. */
const retaining =
  (retention: Options["cacheRetention"]) =>
  (request: Request): Request => {
    if (retention === undefined) return request
    const { extra } = request.generation
    const openai = { prompt_cache_retention: retention, ...extras(request, dialect.name) }
    return { ...request, generation: { ...request.generation, extra: { ...extra, [dialect.name]: openai } } }
  }

const found = configured({
  key: () => requireKey("openai", ["OPENAI_API_KEY"]),
  address: "OPENAI_BASE_URL",
  make
})

/**
 * Creates the provider from the environment: `OPENAI_API_KEY`, and optionally `OPENAI_BASE_URL`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromConfig = found.fromConfig

/**
 * Provides the provider from the environment. Without a key, fails with `ProviderUnavailable`, which names the missing
 * variable.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = found.layer

/**
 * Provides the provider with a key from the configuration.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = found.layerConfig

const responsesFormat: Format<ReadonlyArray<string>> = {
  path: () => "/responses",
  rules: vendorRules.responses,
  media,
  encode: toItems,
  body: toBody,
  decoder
}

const dialect: ChatRequest.Dialect = {
  name: "openai",
  alwaysLists: true,
  usageOption: true,
  grammar: "json_schema",
  returnsThinking: false,
  alternates: false,
  seedName: "seed",
  shortIds: false,
  answersResults: false,
  reasoners: true
}
