/**
 * Claude, over the Messages API.
 *
 * System text is sent apart from the messages. All other messages keep their order and are never merged, except that
 * the results of one turn's native calls share a message, as the API requires. Thinking is sent back, with its
 * signature, only to the model that wrote it.
 *
 * @since 0.1.0
 */

import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Redacted from "effect/Redacted"
import { vendorRules } from "../kit/vendorRules.ts"
import type { ProviderShape } from "../Provider.ts"
import { adapter } from "./internal/adapter.ts"
import { decoder, fault } from "./internal/anthropicReply.ts"
import { media, name, takes, toBody, toMessage } from "./internal/anthropicRequest.ts"
import { configured, requireKey } from "./internal/configured.ts"
import { outputSchema } from "./internal/outputSchema.ts"

/**
 * Options of the provider.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly apiKey: Redacted.Redacted
  /** Default: `https://api.anthropic.com`. */
  readonly baseUrl?: string | undefined
  /**
   * How long the prompt cache lives. Writing for an hour costs more, so set `cacheWritePerMillion` of the model's price
   * too. Default: five minutes.
   *
   * @since 0.1.0
   */
  readonly cacheLifetime?: "5m" | "1h" | undefined
  /** Additional headers, such as `anthropic-beta`. */
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
      name,
      apiKey: options.apiKey,
      baseUrl: options.baseUrl ?? "https://api.anthropic.com",
      version: "/v1",
      headers: () => ({
        ...options.headers,
        "anthropic-version": "2023-06-01",
        "x-api-key": Redacted.value(options.apiKey)
      }),
      fault,
      takes,
      constrains: (request) => outputSchema(request, vendorRules.anthropic) !== undefined,
      list: { path: "/models", key: "data", id: "id", query: "limit=1000" }
    },
    (speak) =>
      speak({
        path: () => "/messages",
        rules: vendorRules.anthropic,
        media,
        encode: toMessage,
        body: toBody(options.cacheLifetime),
        decoder
      })
  )

const found = configured({
  key: () => requireKey(name, ["ANTHROPIC_API_KEY"]),
  address: "ANTHROPIC_BASE_URL",
  make
})

/**
 * Creates the provider from the environment: `ANTHROPIC_API_KEY`, and optionally `ANTHROPIC_BASE_URL`.
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
