/**
 * The `@ai-sdk/*` packages by the keys of model strings.
 *
 * A package is loaded when one of its models is first requested. Its settings are read from the configuration here, so
 * that a missing one is reported with the names of the package and the variable.
 */

import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { ProviderUnavailable } from "../../KernelError.ts"
import { findKey, findText } from "../../kit/variables.ts"
import { isFields } from "./readFields.ts"

/** The part of an AI SDK model that is used here, typed so that models of every version fit. */
export interface AiSdkModel {
  readonly specificationVersion: string
  readonly provider: string
  readonly modelId: string
  readonly supportedUrls?: unknown
  doStream(options: CallOptions): PromiseLike<{ readonly stream: ReadableStream<unknown> }>
}

/** The arguments of a call to a model. */
export interface CallOptions {
  readonly prompt: Array<never>
  readonly abortSignal: AbortSignal
}

/** The name and the settings of a package. Each setting is read from the first of its variables that is set. */
interface Recipe {
  readonly package: string
  readonly settings: { readonly [setting: string]: readonly [string, ...Array<string>] }
  /** Groups of settings, one of which must be complete. */
  readonly needs: readonly [ReadonlyArray<string>, ...Array<ReadonlyArray<string>>]
}

const plain = (name: string, ...variables: readonly [string, ...Array<string>]): Recipe => ({
  package: `@ai-sdk/${name}`,
  settings: { apiKey: variables },
  needs: [["apiKey"]]
})

const recipes: ReadonlyMap<string, Recipe> = new Map<string, Recipe>([
  ["openai", plain("openai", "OPENAI_API_KEY")],
  ["anthropic", plain("anthropic", "ANTHROPIC_API_KEY")],
  [
    "azure",
    {
      package: "@ai-sdk/azure",
      settings: { apiKey: ["AZURE_API_KEY"], resourceName: ["AZURE_RESOURCE_NAME"], baseURL: ["AZURE_BASE_URL"] },
      needs: [
        ["apiKey", "resourceName"],
        ["apiKey", "baseURL"]
      ]
    }
  ],
  ["baseten", plain("baseten", "BASETEN_API_KEY")],
  ["cerebras", plain("cerebras", "CEREBRAS_API_KEY")],
  ["cohere", plain("cohere", "COHERE_API_KEY")],
  ["deepinfra", plain("deepinfra", "DEEPINFRA_API_KEY")],
  ["deepseek", plain("deepseek", "DEEPSEEK_API_KEY")],
  ["fireworks", plain("fireworks", "FIREWORKS_API_KEY")],
  ["google", plain("google", "GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "GOOGLE_API_KEY")],
  [
    "vertex",
    {
      package: "@ai-sdk/google-vertex",
      settings: {
        project: ["GOOGLE_VERTEX_PROJECT"],
        location: ["GOOGLE_VERTEX_LOCATION"],
        apiKey: ["GOOGLE_VERTEX_API_KEY"]
      },
      needs: [["project", "location"], ["apiKey"]]
    }
  ],
  ["groq", plain("groq", "GROQ_API_KEY")],
  ["mistral", plain("mistral", "MISTRAL_API_KEY")],
  ["perplexity", plain("perplexity", "PERPLEXITY_API_KEY")],
  ["togetherai", plain("togetherai", "TOGETHER_API_KEY", "TOGETHER_AI_API_KEY")],
  [
    "bedrock",
    {
      package: "@ai-sdk/amazon-bedrock",
      settings: {
        region: ["AWS_REGION", "AWS_DEFAULT_REGION"],
        apiKey: ["AWS_BEARER_TOKEN_BEDROCK"],
        accessKeyId: ["AWS_ACCESS_KEY_ID"],
        secretAccessKey: ["AWS_SECRET_ACCESS_KEY"],
        sessionToken: ["AWS_SESSION_TOKEN"]
      },
      needs: [
        ["apiKey", "region"],
        ["accessKeyId", "secretAccessKey", "region"]
      ]
    }
  ],
  ["vercel", plain("vercel", "VERCEL_API_KEY")],
  ["xai", plain("xai", "XAI_API_KEY")]
])

/** The keys that have a package. */
export const keys: ReadonlyArray<string> = [...recipes.keys()]

/** Loads the package of a key and sets it up. */
export const load = Effect.fnUntraced(function* (
  key: string
): Effect.fn.Return<(modelId: string) => AiSdkModel, ProviderUnavailable> {
  const recipe = recipes.get(key)
  if (recipe === undefined) return yield* new ProviderUnavailable({ provider: key })
  const settings = new Map<string, string>()
  for (const [setting, variables] of Object.entries(recipe.settings)) {
    const found = yield* setting === "apiKey" ? findKey(variables) : Effect.map(textOf(variables), Redacted.make)
    if (found !== undefined && Redacted.value(found) !== "") settings.set(setting, Redacted.value(found))
  }
  const named = recipe.package
  const missing = missingOf(recipe, settings)
  const variable = missing === undefined ? undefined : recipe.settings[missing]?.[0]
  const unavailable = new ProviderUnavailable({
    provider: key,
    package: named,
    ...(variable === undefined ? {} : { variable })
  })
  if (missing !== undefined) return yield* unavailable
  const loaded = yield* Effect.tryPromise({
    try: async (): Promise<unknown> => await import(named),
    catch: () => unavailable
  })
  const create = Object.entries(isFields(loaded) ? loaded : {}).find(
    ([name, value]) => name.startsWith("create") && typeof value === "function"
  )?.[1]
  if (!isFunction(create)) return yield* unavailable
  const provider = yield* Effect.try({ try: () => create(Object.fromEntries(settings)), catch: () => unavailable })
  if (!isFunction(provider)) return yield* unavailable
  // A provider of the AI SDK is a function from an id to a model.
  return (modelId) => provider(modelId) as AiSdkModel
})

/**
 * Returns the first missing setting of the group with the fewest missing settings. Among equals, the group with more
 * settings present wins; if nothing is set, the first group.
 */
const missingOf = ({ needs }: Recipe, settings: ReadonlyMap<string, string>): string | undefined => {
  const lacking = (needed: ReadonlyArray<string>) => needed.filter((setting) => !settings.has(setting))
  const begun = needs.filter((needed) => lacking(needed).length < needed.length)
  const [nearest = needs[0]] = begun.toSorted((a, b) => lacking(a).length - lacking(b).length || b.length - a.length)
  return lacking(nearest)[0]
}

const textOf = Effect.fnUntraced(function* (variables: ReadonlyArray<string>) {
  for (const variable of variables) {
    const found = yield* findText(variable)
    if (found !== undefined) return found
  }
  return ""
})

const isFunction = (value: unknown): value is (argument: unknown) => unknown => typeof value === "function"
