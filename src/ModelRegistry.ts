/**
 * Resolves model strings `<provider>/<model>` to a provider and a model.
 *
 * Adapters are registered under the key of their provider and built on first use, so a registry of all providers needs
 * no API key. An unknown key fails with `UnsupportedProvider`; a known provider that cannot be used fails with
 * `ProviderUnavailable`, which names the missing adapter, package or variable.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import { closeOver } from "./kit/foreignCode.ts"
import { InvalidModel, ProviderUnavailable, UnsupportedProvider } from "./KernelError.ts"
import type { Model } from "./Model.ts"
import * as Models from "./Model.ts"
import type { ProviderShape } from "./Provider.ts"

export { InvalidModel, ProviderUnavailable, UnsupportedProvider }

/**
 * The provider and the model of a model string.
 *
 * @category models
 * @since 0.1.0
 */
export interface Resolved {
  readonly provider: ProviderShape
  readonly model: Model
}

/**
 * A provider, or the effect that builds it.
 *
 * @category models
 * @since 0.1.0
 */
export type Adapter<R = never> = ProviderShape | Effect.Effect<ProviderShape, ProviderUnavailable, R>

/**
 * Adapters by provider key.
 *
 * @category models
 * @since 0.1.0
 */
export type Adapters<R = never> = { readonly [key: string]: Adapter<R> }

/**
 * Finds providers and models by name.
 *
 * @category services
 * @since 0.1.0
 */
export class ModelRegistry extends Context.Service<
  ModelRegistry,
  {
    /** Resolves a string such as `anthropic/claude-sonnet-4-20250514`. */
    readonly resolve: (
      name: string
    ) => Effect.Effect<Resolved, InvalidModel | UnsupportedProvider | ProviderUnavailable>
    /** Returns the provider with a key. */
    readonly provider: (key: string) => Effect.Effect<ProviderShape, UnsupportedProvider | ProviderUnavailable>
    /** All known keys, without aliases. */
    readonly keys: ReadonlyArray<string>
  }
>()("kernai/ModelRegistry") {}

/**
 * Splits a model string at the first `/`. Replaces an alias such as `gemini` by its key.
 *
 * @category constructors
 * @since 0.1.0
 */
export const parse = (
  name: string
): Result.Result<{ readonly provider: string; readonly model: string }, InvalidModel> => {
  const slash = name.indexOf("/")
  const provider = slash === -1 ? "" : canonical(name.slice(0, slash))
  const model = name.slice(slash + 1).trim()
  return provider === "" || model === ""
    ? Result.fail(new InvalidModel({ input: name }))
    : Result.succeed({ provider, model })
}

/**
 * Returns a provider's model from `models` or the built-in catalogue. A model in neither has only an id.
 *
 * @category constructors
 * @since 0.1.0
 */
export const modelOf = (provider: string, id: string, models: ReadonlyArray<Model> = []): Model => {
  const key = canonical(provider)
  const isIt = (model: Model) => model.id === id && (model.provider === undefined || canonical(model.provider) === key)
  return { ...(models.find(isIt) ?? Models.find(key, id) ?? Models.make(id)), provider: key }
}

/**
 * Creates a registry of adapters. `models` extends the built-in catalogue.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <R = never>(
  adapters: Adapters<R>,
  options?: { readonly models?: ReadonlyArray<Model> | undefined }
): Layer.Layer<ModelRegistry, never, NoInfer<R>> =>
  Layer.effect(
    ModelRegistry,
    Effect.map(Effect.context<R>(), (context) => {
      const provide = closeOver(context)
      const models = options?.models ?? []
      const registered = new Map<string, { readonly adapter: Adapter<R>; readonly building: Semaphore.Semaphore }>()
      for (const [key, adapter] of Object.entries(adapters)) {
        registered.set(canonical(key), { adapter, building: Semaphore.makeUnsafe(1) })
      }
      const keys = [...new Set([...known.keys(), ...registered.keys()])]
      const built = new Map<string, ProviderShape>()

      const build = Effect.fnUntraced(function* (key: string, adapter: Adapter<R>) {
        const ready = built.get(key)
        if (ready !== undefined) return ready
        const provider = "stream" in adapter ? adapter : yield* provide(adapter)
        built.set(key, provider)
        return provider
      })

      // Concurrent requests get the same provider, since its rate limits are shared.
      const provider = (given: string) =>
        Effect.suspend((): Effect.Effect<ProviderShape, UnsupportedProvider | ProviderUnavailable> => {
          const key = canonical(given)
          const ready = built.get(key)
          if (ready !== undefined) return Effect.succeed(ready)
          const own = registered.get(key)
          return own === undefined
            ? Effect.fail(missing(key, keys))
            : own.building.withPermits(1)(build(key, own.adapter))
        })

      const assumed = new Set<string>()
      const resolve = Effect.fnUntraced(function* (name: string) {
        const parts = yield* Effect.fromResult(parse(name))
        const found = { provider: yield* provider(parts.provider), model: modelOf(parts.provider, parts.model, models) }
        const key = `${parts.provider}/${parts.model}`
        if (isListed(found.model, models) || assumed.has(key)) return found
        assumed.add(key)
        yield* Effect.logWarning(unlisted(key))
        return found
      })

      return ModelRegistry.of({ resolve, provider, keys })
    })
  )

const isListed = (model: Model, models: ReadonlyArray<Model>): boolean =>
  models.some(({ id }) => id === model.id) || Models.find(model.provider ?? "", model.id) !== undefined

const unlisted = (name: string): string =>
  `the model '${name}' is not in the catalogue: it is asked with text only, and has no price; describe it with Model.make`

/** The requirements of a known provider. */
interface Need {
  readonly package: string
  readonly variable: string
}

const known: ReadonlyMap<string, Need> = new Map<string, Need>([
  ["openrouter", { package: "@openrouter/ai-sdk-provider", variable: "OPENROUTER_API_KEY" }],
  ["openai", { package: "@ai-sdk/openai", variable: "OPENAI_API_KEY" }],
  ["anthropic", { package: "@ai-sdk/anthropic", variable: "ANTHROPIC_API_KEY" }],
  ["azure", { package: "@ai-sdk/azure", variable: "AZURE_API_KEY" }],
  ["baseten", { package: "@ai-sdk/baseten", variable: "BASETEN_API_KEY" }],
  ["cerebras", { package: "@ai-sdk/cerebras", variable: "CEREBRAS_API_KEY" }],
  ["cohere", { package: "@ai-sdk/cohere", variable: "COHERE_API_KEY" }],
  ["deepinfra", { package: "@ai-sdk/deepinfra", variable: "DEEPINFRA_API_KEY" }],
  ["deepseek", { package: "@ai-sdk/deepseek", variable: "DEEPSEEK_API_KEY" }],
  ["fireworks", { package: "@ai-sdk/fireworks", variable: "FIREWORKS_API_KEY" }],
  ["google", { package: "@ai-sdk/google", variable: "GEMINI_API_KEY" }],
  ["google-interactions", { package: "@ai-sdk/google", variable: "GEMINI_API_KEY" }],
  ["vertex", { package: "@ai-sdk/google-vertex", variable: "GOOGLE_VERTEX_PROJECT" }],
  ["groq", { package: "@ai-sdk/groq", variable: "GROQ_API_KEY" }],
  ["mistral", { package: "@ai-sdk/mistral", variable: "MISTRAL_API_KEY" }],
  ["perplexity", { package: "@ai-sdk/perplexity", variable: "PERPLEXITY_API_KEY" }],
  ["togetherai", { package: "@ai-sdk/togetherai", variable: "TOGETHER_API_KEY" }],
  ["bedrock", { package: "@ai-sdk/amazon-bedrock", variable: "AWS_BEARER_TOKEN_BEDROCK" }],
  ["vercel", { package: "@ai-sdk/vercel", variable: "VERCEL_API_KEY" }],
  ["xai", { package: "@ai-sdk/xai", variable: "XAI_API_KEY" }]
])

const aliases: ReadonlyMap<string, string> = new Map([
  ["gemini", "google"],
  ["gemini-interactions", "google-interactions"],
  ["google-vertex", "vertex"],
  ["grok", "xai"],
  ["together", "togetherai"],
  ["amazon-bedrock", "bedrock"]
])

const canonical = (key: string): string => {
  const plain = key.trim().toLowerCase()
  return aliases.get(plain) ?? plain
}

const missing = (key: string, keys: ReadonlyArray<string>): UnsupportedProvider | ProviderUnavailable => {
  const need = known.get(key)
  return need === undefined
    ? new UnsupportedProvider({ provider: key, supported: keys })
    : new ProviderUnavailable({ provider: key, package: need.package, variable: need.variable, unregistered: true })
}
