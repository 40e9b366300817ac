/** Every adapter and bridge, as the request that it would send. */
import { Effect, Stream } from "effect"
import { LanguageModel } from "effect/ai"
import type { Provider } from "kernai"
import { AiSdkProvider, LanguageModelProvider, OpenAiCompatibleProvider } from "kernai/provider"
import type { RequestRules } from "kernai/testing"
import { key, stub, vendor, vendors } from "./provider.ts"

/** An adapter, its format, and how to get the body that it sends. */
export interface Target {
  readonly name: string
  readonly wire: RequestRules.Wire
  readonly bodyOf: (request: Provider.Request) => Effect.Effect<unknown>
}

const wiresOf: { readonly [vendor: string]: RequestRules.Wire } = {
  anthropic: "anthropic",
  openai: "chat",
  "openai-responses": "responses",
  compatible: "chat",
  ollama: "ollama",
  google: "gemini",
  "google-interactions": "gemini-interactions"
}

const mistral = OpenAiCompatibleProvider.make({
  ...OpenAiCompatibleProvider.hosts.get("mistral"),
  name: "mistral",
  baseUrl: "http://localhost:8080/v1",
  apiKey: key
})

const overHttp = (name: string, wire: RequestRules.Wire, open: typeof mistral): Effect.Effect<Target> =>
  Effect.gen(function* () {
    const http = stub(() => Effect.sync(() => new Response("{}", { status: 400 })))
    const provider = yield* Effect.provide(open, http.layer)
    return {
      name,
      wire,
      bodyOf: (request) =>
        Effect.map(Effect.ignore(Stream.runDrain(provider.stream(request))), () => http.asked.splice(0)[0]?.body)
    }
  })

const overAiSdk = (version: "v2" | "v3" | "v4"): Target => {
  const asked: Array<object> = []
  const model = {
    specificationVersion: version,
    provider: "acme",
    modelId: "m",
    supportedUrls: { "image/*": [/^https:\/\/x\.test\//] },
    doGenerate: () => Promise.reject(new Error("only streamed")),
    doStream: (options: object) => {
      asked.push(options)
      return Promise.reject(Object.assign(new Error("refused"), { name: "AI_APICallError", statusCode: 400 }))
    }
  }
  const provider = AiSdkProvider.fromModel(model)
  return {
    name: `ai-sdk ${version}`,
    wire: "ai-sdk",
    bodyOf: (request) => Effect.map(Effect.ignore(Stream.runDrain(provider.stream(request))), () => asked.splice(0)[0])
  }
}

const usage = {
  inputTokens: { total: 1, uncached: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 }
}

const overEffect: Effect.Effect<Target> = Effect.gen(function* () {
  const asked: Array<LanguageModel.ProviderOptions> = []
  const model = yield* LanguageModel.make({
    generateText: () => Effect.die(new Error("only streamed")),
    streamText: (options) => {
      asked.push(options)
      return Stream.make({ type: "finish", reason: "stop", usage } as const)
    }
  })
  const provider = LanguageModelProvider.fromModel(model)
  return {
    name: "effect-ai",
    wire: "effect-ai",
    bodyOf: (request) =>
      Effect.map(Effect.ignore(Stream.runDrain(provider.stream(request))), () => {
        const options = asked.splice(0)[0]
        return options && { prompt: options.prompt, tools: options.tools.map(({ name }) => ({ name })) }
      })
  }
})

/** All targets, each opened once: what it encoded once must fit wherever it stands. */
export const targets: Effect.Effect<ReadonlyArray<Target>> = Effect.gen(function* () {
  const http = yield* Effect.forEach(Object.keys(vendors), (name) =>
    overHttp(name, wiresOf[name] ?? "chat", vendor(name)({}))
  )
  return [
    ...http,
    yield* overHttp("mistral", "mistral", mistral),
    ...(["v2", "v3", "v4"] as const).map(overAiSdk),
    yield* overEffect
  ]
})
