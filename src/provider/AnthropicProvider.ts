/**
 * Claude, over the Messages API.
 *
 * System text travels beside the messages; everything else keeps its order and
 * is never merged (BP-107), except that the results of one turn's native calls
 * share a message, as the API wants. Thinking goes back to the model that
 * thought it, with its signature, and to no other.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { ProviderUnavailable } from "../KernelError.ts"
import { Provider, type ProviderShape } from "../Provider.ts"
import { decoder, fault } from "./internal/anthropicReply.ts"
import { media, name, toBody, toMessage } from "./internal/anthropicRequest.ts"
import { endpoint } from "./internal/body.ts"
import { fromEnvironment, layerOf, requireKey } from "./internal/configured.ts"
import * as Exchange from "./internal/httpCall.ts"
import { offer } from "./internal/modelList.ts"
import { encoder } from "./internal/messageParts.ts"

/**
 * How to reach the Messages API.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly apiKey: Redacted.Redacted
  /** Default: `https://api.anthropic.com`. */
  readonly baseUrl?: string | undefined
  /** Further headers, `anthropic-beta` for instance. */
  readonly headers?: { readonly [name: string]: string } | undefined
}

/**
 * The provider as a value, speaking through the HTTP client of the context.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<ProviderShape, never, HttpClient.HttpClient> =>
  Effect.map(HttpClient.HttpClient, (client) => {
    const encode = encoder({ provider: name, media }, toMessage)
    const baseUrl = options.baseUrl ?? "https://api.anthropic.com"
    const service: Exchange.Service = {
      name,
      secrets: [options.apiKey],
      headers: () => ({
        ...options.headers,
        "anthropic-version": "2023-06-01",
        "x-api-key": Redacted.value(options.apiKey)
      }),
      fault
    }
    return {
      name,
      models: offer(client, service, endpoint(baseUrl, "/v1", "/models", "limit=1000"), "data", "id"),
      stream: Exchange.stream(client, {
        ...service,
        framing: "sse",
        url: () => endpoint(baseUrl, "/v1", "/messages"),
        body: (request) => Effect.map(encode(request), (messages) => toBody(request, messages)),
        decoder
      })
    }
  })

/**
 * The provider of the environment: `ANTHROPIC_API_KEY`, and `ANTHROPIC_BASE_URL` if it is set (BP-106).
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromConfig: Effect.Effect<ProviderShape, ProviderUnavailable, HttpClient.HttpClient> = fromEnvironment({
  key: () => requireKey(name, ["ANTHROPIC_API_KEY"]),
  address: "ANTHROPIC_BASE_URL",
  make
})

/**
 * The provider of the environment. Without a key the layer fails, naming the variable.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Provider, ProviderUnavailable, HttpClient.HttpClient> = Layer.effect(
  Provider,
  fromConfig
)

/**
 * The provider with a key from anywhere in the configuration.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig: (
  options: Config.Wrap<Options>
) => Layer.Layer<Provider, Config.ConfigError, HttpClient.HttpClient> = layerOf<Options>(make)
