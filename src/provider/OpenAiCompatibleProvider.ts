/**
 * Any server that speaks Chat Completions: llama.cpp, vLLM, LM Studio, and the hosted services of `hosts`.
 *
 * Text content is sent as a plain string, which every such server accepts.
 *
 * @since 0.1.0
 */

import type * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { ProviderUnavailable } from "../KernelError.ts"
import { Provider, type ProviderShape } from "../Provider.ts"
import { adapter } from "./internal/adapter.ts"
import { chatFormat } from "./internal/chatFormat.ts"
import * as ChatReply from "./internal/chatReply.ts"
import * as ChatRequest from "./internal/chatRequest.ts"
import { findKey, findText } from "../kit/variables.ts"
import { fromEnvironment, layerOf, requireKey } from "./internal/configured.ts"

/**
 * Differences between servers.
 *
 * @category models
 * @since 0.1.0
 */
export interface Habits {
  /** Whether the server accepts `stream_options`. Without it, usage depends on the server. Default: true. */
  readonly usageOption?: boolean | undefined
  /**
   * The form in which the server accepts a grammar (see `Agent.grammar`): `gbnf` for llama.cpp, `structured_outputs` or
   * `structural_tag` for vLLM, `json_schema` for hosted services. Default: no grammar.
   */
  readonly grammar?: ChatRequest.GrammarForm | undefined
  /**
   * The field in which a thinking model receives its own thinking along with its calls, or `false` for a server that
   * rejects it. Default: `reasoning_content`.
   */
  readonly returnsThinking?: ChatRequest.ThinkingField | false | undefined
  /**
   * Whether the server may load a model before it replies, as local servers do. It then has five minutes to begin, or
   * `Limits.headersTimeout` if that is longer. Default: false.
   */
  readonly startsSlowly?: boolean | undefined
  /**
   * Whether neighbouring messages of one role are merged, for models whose templates require alternating roles.
   * Default: false.
   */
  readonly alternates?: boolean | undefined
  /** The server's name for the seed. Default: `seed`. */
  readonly seedName?: string | undefined
  /** Whether the server only accepts call ids of nine letters and digits. Default: false. */
  readonly shortIds?: boolean | undefined
  /**
   * Whether the server refuses a user message right after results of calls, as Mistral does. Then a short message of the
   * model stands between them. Default: false.
   */
  readonly answersResults?: boolean | undefined
  /**
   * Whether a model named like one of OpenAI's reasoning models (`gpt-5`, `o4-mini`) is called like one: with
   * `max_completion_tokens` and without sampling options. Default: false.
   */
  readonly reasoners?: boolean | undefined
}

/**
 * Options of the provider: the address of a server, and what it accepts.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends Habits {
  /** The key of the model strings, and the origin of thinking. */
  readonly name: string
  /** The address up to the version: `http://localhost:8080/v1`. */
  readonly baseUrl: string
  readonly apiKey?: Redacted.Redacted | undefined
  /** The header for the key. Default: `authorization` with `Bearer`. */
  readonly keyHeader?: string | undefined
  readonly headers?: { readonly [name: string]: string } | undefined
  /** Whether images may be sent as URLs. Default: true. */
  readonly imageUrls?: boolean | undefined
}

/**
 * A hosted service that speaks the format.
 *
 * @category models
 * @since 0.1.0
 */
export interface Host extends Habits {
  readonly baseUrl: string
  /** The environment variable of its key. */
  readonly variable: string
  /** Whether it works without a key, as a local server does. */
  readonly keyless?: boolean
}

/**
 * The hosted services known by name, as in `groq/llama-3.3-70b-versatile`.
 *
 * @category models
 * @since 0.1.0
 */
export const hosts: ReadonlyMap<string, Host> = new Map<string, Host>([
  ["baseten", { baseUrl: "https://inference.baseten.co/v1", variable: "BASETEN_API_KEY" }],
  ["cerebras", { baseUrl: "https://api.cerebras.ai/v1", variable: "CEREBRAS_API_KEY", returnsThinking: "reasoning" }],
  ["cohere", { baseUrl: "https://api.cohere.ai/compatibility/v1", variable: "COHERE_API_KEY", usageOption: false }],
  ["deepinfra", { baseUrl: "https://api.deepinfra.com/v1/openai", variable: "DEEPINFRA_API_KEY" }],
  ["deepseek", { baseUrl: "https://api.deepseek.com", variable: "DEEPSEEK_API_KEY" }],
  ["fireworks", { baseUrl: "https://api.fireworks.ai/inference/v1", variable: "FIREWORKS_API_KEY" }],
  ["groq", { baseUrl: "https://api.groq.com/openai/v1", variable: "GROQ_API_KEY", returnsThinking: false }],
  [
    "mistral",
    {
      baseUrl: "https://api.mistral.ai/v1",
      variable: "MISTRAL_API_KEY",
      usageOption: false,
      returnsThinking: false,
      seedName: "random_seed",
      shortIds: true,
      answersResults: true
    }
  ],
  [
    "openrouter",
    { baseUrl: "https://openrouter.ai/api/v1", variable: "OPENROUTER_API_KEY", returnsThinking: "reasoning" }
  ],
  ["perplexity", { baseUrl: "https://api.perplexity.ai", variable: "PERPLEXITY_API_KEY", usageOption: false }],
  ["togetherai", { baseUrl: "https://api.together.xyz/v1", variable: "TOGETHER_API_KEY" }],
  ["vercel", { baseUrl: "https://api.v0.dev/v1", variable: "VERCEL_API_KEY", usageOption: false }],
  ["xai", { baseUrl: "https://api.x.ai/v1", variable: "XAI_API_KEY" }]
])

const local = { keyless: true, startsSlowly: true } as const

/**
 * Local servers known by name, as in `llamacpp/qwen3`. Replies follow the grammar of an agent with `grammar: true` (see
 * `Agent.grammar`). A server has five minutes to load a model before it replies.
 *
 * @category models
 * @since 0.1.0
 */
export const locals: ReadonlyMap<string, Host> = new Map<string, Host>([
  [
    "llamacpp",
    { baseUrl: "http://localhost:8080/v1", variable: "LLAMACPP_API_KEY", ...local, alternates: true, grammar: "gbnf" }
  ],
  ["lmstudio", { baseUrl: "http://localhost:1234/v1", variable: "LMSTUDIO_API_KEY", ...local, grammar: "json_schema" }],
  [
    "vllm",
    {
      baseUrl: "http://localhost:8000/v1",
      variable: "VLLM_API_KEY",
      ...local,
      alternates: true,
      grammar: "structured_outputs"
    }
  ]
])

/**
 * Creates the provider. It uses the HTTP client in context.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<ProviderShape, never, HttpClient.HttpClient> => {
  const { apiKey, name } = options
  const keyHeaders = (): { readonly [name: string]: string } => {
    if (apiKey === undefined) return {}
    const key = Redacted.value(apiKey)
    return options.keyHeader === undefined ? { authorization: `Bearer ${key}` } : { [options.keyHeader]: key }
  }
  return adapter(
    {
      name,
      apiKey,
      baseUrl: options.baseUrl,
      version: "",
      headers: () => ({ ...options.headers, ...keyHeaders() }),
      fault: ChatReply.fault,
      takes: ChatRequest.takes(dialectOf(options)),
      constrains: (request) => ChatRequest.structured(dialectOf(options), request) !== undefined,
      list: { path: "/models", key: "data", id: "id" }
    },
    (speak) => speak(chatFormat(dialectOf(options), options))
  )
}

const dialectOf = (options: Options): ChatRequest.Dialect => ({
  name: options.name,
  alwaysLists: false,
  usageOption: options.usageOption ?? true,
  grammar: options.grammar,
  seedName: options.seedName ?? "seed",
  shortIds: options.shortIds ?? false,
  answersResults: options.answersResults ?? false,
  returnsThinking: options.returnsThinking ?? "reasoning_content",
  alternates: options.alternates ?? false,
  reasoners: options.reasoners ?? false
})

/**
 * Creates a service with a key from the environment. `<NAME>_BASE_URL` sets its address.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromConfig = (
  name: string,
  host: Host
): Effect.Effect<ProviderShape, ProviderUnavailable, HttpClient.HttpClient> =>
  fromEnvironment({
    key: () => (host.keyless === true ? findKey([host.variable]) : requireKey(name, [host.variable])),
    address: `${name.toUpperCase()}_BASE_URL`,
    make: ({ apiKey, baseUrl = host.baseUrl }) => make({ ...host, name, apiKey, baseUrl })
  })

/**
 * Creates the provider of OpenAI's models on Azure: `AZURE_API_KEY` with `AZURE_RESOURCE_NAME` or `AZURE_BASE_URL`.
 *
 * The name of a deployment decides whether it is treated as a reasoning model, so let the name of a `gpt-5` deployment
 * begin with `gpt-5`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const azureFromConfig: Effect.Effect<ProviderShape, ProviderUnavailable, HttpClient.HttpClient> = Effect.gen(
  function* () {
    const apiKey = yield* requireKey("azure", ["AZURE_API_KEY"])
    const resource = yield* findText("AZURE_RESOURCE_NAME")
    const given = yield* findText("AZURE_BASE_URL")
    const baseUrl = given ?? (resource === undefined ? undefined : `https://${resource}.openai.azure.com/openai/v1`)
    if (baseUrl === undefined) {
      return yield* new ProviderUnavailable({ provider: "azure", variable: "AZURE_RESOURCE_NAME" })
    }
    return yield* make({ name: "azure", apiKey, keyHeader: "api-key", baseUrl, reasoners: true })
  }
)

/**
 * Provides a server at a known address.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<Provider, never, HttpClient.HttpClient> =>
  Layer.effect(Provider, make(options))

/**
 * Provides a server with settings from the configuration.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig: (
  options: Config.Wrap<Options>
) => Layer.Layer<Provider, Config.ConfigError, HttpClient.HttpClient> = layerOf<Options>(make)
