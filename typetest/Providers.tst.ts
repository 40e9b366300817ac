/**
 * What users rely on the compiler for: what an adapter needs and can fail with, however it is given its key.
 */
import { Config, type Effect, type Layer } from "effect"
import type { HttpClient } from "effect/http"
import type { KernelError, Provider } from "kernai"
import {
  AnthropicProvider,
  GeminiInteractionsProvider,
  GeminiProvider,
  OllamaProvider,
  OpenAiCompatibleProvider,
  OpenAiProvider
} from "kernai/provider"

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const yes = <T extends true>(): T | undefined => undefined

type Value<E> = Effect.Effect<Provider.ProviderShape, E, HttpClient.HttpClient>
type Layered<E> = Layer.Layer<Provider.Provider, E, HttpClient.HttpClient>
type Keyed = Value<KernelError.ProviderUnavailable>

yes<Equal<typeof AnthropicProvider.fromConfig, Keyed>>()
yes<Equal<typeof GeminiInteractionsProvider.fromConfig, Keyed>>()
yes<Equal<typeof GeminiProvider.fromConfig, Keyed>>()
yes<Equal<typeof OpenAiProvider.fromConfig, Keyed>>()
yes<Equal<ReturnType<typeof OpenAiCompatibleProvider.fromConfig>, Keyed>>()
// A server on this machine may do without a key.
yes<Equal<typeof OllamaProvider.fromConfig, Value<never>>>()
yes<Equal<typeof OllamaProvider.layer, Layered<never>>>()
yes<Equal<typeof AnthropicProvider.layer, Layered<KernelError.ProviderUnavailable>>>()

const keyed = AnthropicProvider.layerConfig({ apiKey: Config.Redacted("KEY") })
yes<Equal<typeof keyed, Layered<Config.ConfigError>>>()
const parts = OpenAiCompatibleProvider.layerConfig({
  name: Config.String("NAME"),
  baseUrl: Config.String("BASE_URL"),
  apiKey: Config.Redacted("KEY")
})
yes<Equal<typeof parts, Layered<Config.ConfigError>>>()
yes<Equal<Parameters<typeof OllamaProvider.layerConfig>, [options: Config.Wrap<OllamaProvider.Options>]>>()
// @ts-expect-error a key does not stand in the open
OpenAiProvider.layerConfig({ apiKey: Config.String("KEY") })
// @ts-expect-error an address is needed
OpenAiCompatibleProvider.layerConfig({ name: Config.String("NAME") })

// ---------------------------------------------------------------- keys

// @ts-expect-error a key is Redacted, so that no log shows it
export const plainAnthropic = AnthropicProvider.make({ apiKey: "sk-plain" })

// @ts-expect-error a key is Redacted, so that no log shows it
export const plainOpenAi = OpenAiProvider.make({ apiKey: "sk-plain" })

// @ts-expect-error a key is Redacted, so that no log shows it
export const plainGemini = GeminiProvider.make({ apiKey: "sk-plain" })

const own = { name: "own", baseUrl: "https://example.com/v1" }

// @ts-expect-error a key is Redacted, so that no log shows it
export const plainOpenAiCompatible = OpenAiCompatibleProvider.make({ ...own, apiKey: "sk-plain" })
