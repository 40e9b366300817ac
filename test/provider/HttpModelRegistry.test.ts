import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Duration, Effect, Fiber, Layer, Result } from "effect"
import { TestClock } from "effect/testing"
import * as Content from "../../src/Content.ts"
import { defaults, Limits } from "../../src/Limits.ts"
import { ModelRegistry } from "../../src/ModelRegistry.ts"
import { HttpModelRegistry } from "../../src/provider/index.ts"
import { MockProvider } from "../../src/testing/index.ts"
import { message, read, request, stub } from "../support/provider.ts"

const reply = `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`
const http = () => stub(() => Effect.succeed(new Response(reply)))

const tool = { name: "add", description: "Adds", inputSchema: { type: "object" } } as const

const configured = (layer: typeof HttpModelRegistry.layer, client: ReturnType<typeof http>, env: object) =>
  layer.pipe(Layer.provide(client.layer), Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env))))

const resolve = (name: string) => Effect.flatMap(ModelRegistry, (registry) => registry.resolve(name))

describe("HttpModelRegistry", () => {
  for (const [name, variable, url] of [
    ["openai/m", "OPENAI_API_KEY", "https://api.openai.com/v1/chat/completions"],
    ["groq/m", "GROQ_API_KEY", "https://api.groq.com/openai/v1/chat/completions"],
    ["grok/m", "XAI_API_KEY", "https://api.x.ai/v1/chat/completions"],
    ["deepseek/m", "DEEPSEEK_API_KEY", "https://api.deepseek.com/chat/completions"],
    ["together/m", "TOGETHER_API_KEY", "https://api.together.xyz/v1/chat/completions"],
    ["mistral/m", "MISTRAL_API_KEY", "https://api.mistral.ai/v1/chat/completions"]
  ] as const) {
    it.effect(`speaks to ${name} with the key in ${variable}, and names it when it is missing`, () =>
      Effect.gen(function* () {
        const client = http()
        const { model, provider } = yield* Effect.provide(
          resolve(name),
          configured(HttpModelRegistry.layer, client, { [variable]: "k-1" })
        )
        yield* read(provider.stream(request({ model })))
        assert.strictEqual(client.asked[0]?.url, url)
        assert.strictEqual(client.asked[0]?.headers["authorization"], "Bearer k-1")
        assert.deepInclude(client.asked[0]?.body as object, { model: "m" })

        const error = yield* Effect.flip(Effect.provide(resolve(name), configured(HttpModelRegistry.layer, client, {})))
        assert.deepInclude(error, { _tag: "ProviderUnavailable", variable })
      })
    )
  }

  it.effect("names the missing setting of every vendor with an adapter of its own (DR-25)", () =>
    Effect.gen(function* () {
      for (const [name, variable] of [
        ["anthropic", "ANTHROPIC_API_KEY"],
        ["azure", "AZURE_API_KEY"],
        ["google", "GEMINI_API_KEY"],
        ["google-interactions", "GEMINI_API_KEY"],
        ["bedrock", "AWS_BEARER_TOKEN_BEDROCK"],
        ["vertex", "GOOGLE_VERTEX_PROJECT"]
      ] as const) {
        const layer = configured(HttpModelRegistry.layer, http(), {})
        const error = yield* Effect.flip(Effect.provide(resolve(`${name}/m`), layer))
        assert.deepInclude(error, { _tag: "ProviderUnavailable", provider: name, variable })
      }
    })
  )

  it.effect("reaches OpenAI's models on Azure by resource name", () =>
    Effect.gen(function* () {
      const client = http()
      const env = { AZURE_API_KEY: "k-1", AZURE_RESOURCE_NAME: "team" }
      const { provider } = yield* Effect.provide(resolve("azure/m"), configured(HttpModelRegistry.layer, client, env))
      yield* read(provider.stream(request()))
      assert.strictEqual(client.asked[0]?.url, "https://team.openai.azure.com/openai/v1/chat/completions")
      assert.strictEqual(client.asked[0]?.headers["api-key"], "k-1")
    })
  )

  it.effect(
    "sends a reasoning model on Azure what OpenAI accepts: its own token limit, no sampling options (W-18)",
    () =>
      Effect.gen(function* () {
        const client = http()
        const env = { AZURE_API_KEY: "k-1", AZURE_RESOURCE_NAME: "team" }
        for (const id of ["gpt-5", "o4-mini", "gpt-4o"]) {
          const { model, provider } = yield* Effect.provide(
            resolve(`azure/${id}`),
            configured(HttpModelRegistry.layer, client, env)
          )
          yield* read(provider.stream(request({ model, generation: { temperature: 0.2, maxTokens: 50 } })))
        }
        const settings = client.asked.map(({ body }) =>
          Object.entries(body as object).filter(([name]) => /temperature|max/.test(name))
        )
        assert.deepStrictEqual(settings, [
          [["max_completion_tokens", 50]],
          [["max_completion_tokens", 50]],
          [
            ["temperature", 0.2],
            ["max_tokens", 50]
          ]
        ])
      })
  )

  for (const [name, url, field] of [
    ["llamacpp", "http://localhost:8080/v1", { grammar: 'root ::= "x"' }],
    ["vllm", "http://localhost:8000/v1", { structured_outputs: { grammar: 'root ::= "x"' } }],
    ["lmstudio", "http://localhost:1234/v1", {}]
  ] as const) {
    it.effect(`sends ${name} no key on this machine and one elsewhere, and grammars in its form`, () =>
      Effect.gen(function* () {
        const client = http()
        const asked = (env: object) =>
          Effect.gen(function* () {
            const layer = configured(HttpModelRegistry.layer, client, env)
            const { model, provider } = yield* Effect.provide(resolve(`${name}/a/b`), layer)
            yield* read(provider.stream(request({ model, grammar: { _tag: "Gbnf", text: 'root ::= "x"' } })))
            return client.asked.at(-1)
          })
        const here = yield* asked({})
        assert.strictEqual(here?.url, `${url}/chat/completions`)
        assert.notProperty(here?.headers, "authorization")
        assert.deepInclude(here?.body as object, { model: "a/b", ...field })
        const prefix = name.toUpperCase()
        const there = yield* asked({ [`${prefix}_BASE_URL`]: "http://gpu.test/v1", [`${prefix}_API_KEY`]: "k-1" })
        assert.strictEqual(there?.url, "http://gpu.test/v1/chat/completions")
        assert.strictEqual(there?.headers["authorization"], "Bearer k-1")
      })
    )
  }

  for (const [name, field] of [
    ["deepseek", { reasoning_content: "Hm." }],
    ["cerebras", { reasoning: "Hm." }],
    ["groq", {}],
    ["mistral", {}]
  ] as const) {
    it.effect(`sends a model of ${name} its thinking back with its calls only if it accepts it`, () =>
      Effect.gen(function* () {
        const client = http()
        const env = { [`${name.toUpperCase()}_API_KEY`]: "k-1" }
        const { model, provider } = yield* Effect.provide(
          resolve(`${name}/m`),
          configured(HttpModelRegistry.layer, client, env)
        )
        const thought = Content.thinking("Hm.", { origin: { provider: name, model: "m" } })
        const messages = [message("assistant", thought, Content.toolUse("abcdefghi", "add", { a: 1 }))]
        yield* read(provider.stream(request({ model, messages, tools: [tool] })))
        assert.deepInclude(client.asked[0]?.body as object, {
          messages: [
            {
              role: "assistant",
              content: null,
              tool_calls: [{ id: "abcdefghi", type: "function", function: { name: "add", arguments: '{"a":1}' } }],
              ...field
            }
          ]
        })
      })
    )
  }

  it.effect("sends Mistral the seed under its own name, and call ids of nine letters and digits (R-24)", () =>
    Effect.gen(function* () {
      const client = http()
      const { model, provider } = yield* Effect.provide(
        resolve("mistral/m"),
        configured(HttpModelRegistry.layer, client, { MISTRAL_API_KEY: "k-1" })
      )
      const ids = ["D681PevKs", "D681PevKs#2", "call_0", "toolu_01A09q90qw90lq917835lq9"]
      const messages = [
        message("assistant", ...ids.map((id) => Content.toolUse(id, "add", {}))),
        ...ids.map((id) => message("tool", Content.toolResult(id, "1")))
      ]
      yield* read(provider.stream(request({ model, messages, tools: [tool], generation: { seed: 7 } })))
      const body = client.asked[0]?.body as {
        readonly random_seed?: number
        readonly messages: readonly [
          { readonly tool_calls: ReadonlyArray<{ readonly id: string }> },
          ...ReadonlyArray<{ readonly tool_call_id: string }>
        ]
      }
      assert.deepInclude(body, { random_seed: 7 })
      assert.notProperty(body, "seed")
      const [{ tool_calls }, ...results] = body.messages
      const sent = tool_calls.map((call) => call.id)
      assert.deepStrictEqual(
        results.map((result) => result.tool_call_id),
        sent
      )
      assert.strictEqual(sent[0], "D681PevKs")
      assert.strictEqual(new Set(sent).size, 4)
      for (const id of sent) assert.match(id, /^[A-Za-z0-9]{9}$/)
    })
  )

  for (const [name, answer] of [
    ["ollama", '{"message":{"content":"x"},"done":true}\n'],
    ["llamacpp", reply],
    ["lmstudio", reply],
    ["vllm", reply]
  ] as const) {
    it.effect(`gives ${name} five minutes to load its model before it answers (BP-106)`, () =>
      Effect.gen(function* () {
        const after = (seconds: number, headersTimeout = defaults.headersTimeout) =>
          Effect.gen(function* () {
            const client = stub(() => Effect.delay(Effect.succeed(new Response(answer)), Duration.seconds(seconds)))
            const { model, provider } = yield* Effect.provide(
              resolve(`${name}/m`),
              configured(HttpModelRegistry.layer, client, {})
            )
            const fiber = yield* Effect.forkChild(Effect.result(read(provider.stream(request({ model })))))
            yield* TestClock.adjust("1 hour")
            return yield* Fiber.join(fiber)
          }).pipe(Effect.provideService(Limits, { ...defaults, headersTimeout, modelAttempts: 1 }))
        assert.deepInclude(yield* after(299), { _tag: "Success" })
        const late = yield* after(301)
        assert.include(
          Result.isFailure(late) ? late.failure.message : "",
          "waited 5m; a higher headersTimeout waits longer"
        )
        assert.deepInclude(yield* after(301, Duration.seconds(400)), { _tag: "Success" })
      })
    )
  }

  for (const name of ["llamacpp", "vllm"]) {
    it.effect(`sends ${name} neighbours of one role as one message, for templates that want roles to alternate`, () =>
      Effect.gen(function* () {
        const client = http()
        const { model, provider } = yield* Effect.provide(
          resolve(`${name}/m`),
          configured(HttpModelRegistry.layer, client, {})
        )
        const seeing = { ...model, capabilities: ["text", "vision"] as const }
        const picture = Content.image({ data: new Uint8Array([1, 2, 3]), mediaType: "image/png" })
        const shown = { type: "image_url", image_url: { url: "data:image/png;base64,AQID" } }
        const ask = request({
          model: seeing,
          tools: [tool],
          messages: [
            message("system", "S"),
            message("user", "a"),
            message("user", "b"),
            message("assistant", Content.toolUse("c", "add", {}), Content.toolUse("d", "add", {})),
            message("tool", Content.toolResult("c", "1")),
            message("tool", Content.toolResult("d", "2")),
            message("user", "e"),
            message("user", picture, "f"),
            message("assistant", ""),
            message("user", "g")
          ]
        })
        yield* read(provider.stream(ask))
        const body = client.asked[0]?.body as { readonly messages: ReadonlyArray<object> }
        assert.deepStrictEqual(body.messages.slice(0, 2), [
          { role: "system", content: "S" },
          { role: "user", content: "a\n\nb" }
        ])
        assert.deepStrictEqual(body.messages.slice(3), [
          { role: "tool", tool_call_id: "c", content: "1" },
          { role: "tool", tool_call_id: "d", content: "2" },
          {
            role: "user",
            content: [{ type: "text", text: "e" }, shown, { type: "text", text: "f" }, { type: "text", text: "g" }]
          }
        ])
      })
    )
  }

  it.effect("lets the caller's providers win and adds others", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make("hi")
      const layer = HttpModelRegistry.layerWith({ anthropic: mock, mine: mock })
      for (const name of ["anthropic/m", "mine/m"]) {
        const { provider } = yield* Effect.provide(resolve(name), configured(layer, http(), {}))
        assert.strictEqual(provider, mock)
      }
    })
  )
})
