/**
 * The model registry of every vendor of DR-25.
 *
 * No key is needed to build it: the key of a vendor is read from the
 * configuration when one of its models is first asked for.
 *
 * @since 0.1.0
 */

import type * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import type * as Layer from "effect/Layer"
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
 * The adapters by provider key, each reading its key from the environment.
 *
 * Vertex and Bedrock have no key to send but an account to prove: they are asked through their AI SDK packages.
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
 * The registry of all adapters.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<ModelRegistry.ModelRegistry, never, HttpClient> = ModelRegistry.layer(adapters)

/**
 * The registry of all adapters and these, which win over those of the same key (DR-25).
 *
 * @category layers
 * @since 0.1.0
 */
export const layerWith = <R = never>(
  own: ModelRegistry.Adapters<R>,
  options?: { readonly models?: ReadonlyArray<Model> | undefined }
): Layer.Layer<ModelRegistry.ModelRegistry, never, R | HttpClient> =>
  ModelRegistry.layer<R | HttpClient>({ ...adapters, ...own }, options)
