/**
 * Resolves the models of all vendors over HTTP.
 *
 * It needs no key when it is built: the key of a vendor is read from the configuration when one of its models is first
 * requested.
 *
 * @since 0.1.0
 */

import type * as Effect from "effect/Effect"
import { HttpClient } from "effect/http/HttpClient"
import type * as Layer from "effect/Layer"
import { layerFor } from "../kit/layerFor.ts"
import type { ProviderUnavailable } from "../KernelError.ts"
import * as ModelRegistry from "../ModelRegistry.ts"
import type { Model } from "../Model.ts"
import type { ProviderShape } from "../Provider.ts"
import * as AiSdkProvider from "./AiSdkProvider.ts"
import * as AnthropicProvider from "./AnthropicProvider.ts"
import * as GeminiInteractionsProvider from "./GeminiInteractionsProvider.ts"
import * as GeminiProvider from "./GeminiProvider.ts"
import * as OllamaProvider from "./OllamaProvider.ts"
import * as OpenAiCompatibleProvider from "./OpenAiCompatibleProvider.ts"
import * as OpenAiProvider from "./OpenAiProvider.ts"

/**
 * The adapters by provider key. Each reads its API key from the environment.
 *
 * Vertex and Bedrock authenticate with an account instead of a key, and are called through their AI SDK packages.
 *
 * @category models
 * @since 0.1.0
 */
export const adapters: {
  readonly [key: string]: Effect.Effect<ProviderShape, ProviderUnavailable, HttpClient>
} = {
  ...Object.fromEntries(
    Array.from(
      [...OpenAiCompatibleProvider.hosts, ...OpenAiCompatibleProvider.locals],
      ([name, host]) => [name, OpenAiCompatibleProvider.fromConfig(name, host)] as const
    )
  ),
  anthropic: AnthropicProvider.fromConfig,
  azure: OpenAiCompatibleProvider.azureFromConfig,
  google: GeminiProvider.fromConfig,
  "google-interactions": GeminiInteractionsProvider.fromConfig,
  ollama: OllamaProvider.fromConfig,
  openai: OpenAiProvider.fromConfig,
  bedrock: AiSdkProvider.fromPackage("bedrock"),
  vertex: AiSdkProvider.fromPackage("vertex")
}

/**
 * Provides a registry with all adapters.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<ModelRegistry.ModelRegistry, never, HttpClient> = layerFor(HttpClient, () =>
  ModelRegistry.layer(adapters)
)

/**
 * Provides a registry with all adapters and the given ones, which replace adapters of the same key.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerWith = <R = never>(
  own: ModelRegistry.Adapters<R>,
  options?: { readonly models?: ReadonlyArray<Model> | undefined }
): Layer.Layer<ModelRegistry.ModelRegistry, never, R | HttpClient> =>
  ModelRegistry.layer<R | HttpClient>({ ...adapters, ...own }, options)
