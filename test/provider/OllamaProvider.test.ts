import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer } from "effect"
import * as Content from "../../src/Content.ts"
import * as Model from "../../src/Model.ts"
import { Provider, type ReplyGrammar } from "../../src/Provider.ts"
import { OllamaProvider } from "../../src/provider/index.ts"
import { bodyOf, finishOf, message, read, request, stub, vendor } from "../support/provider.ts"

const lines = (...list: ReadonlyArray<object | string>) =>
  new Response(list.map((item) => (typeof item === "string" ? item : JSON.stringify(item))).join("\n"))

const reading = (...list: ReadonlyArray<object | string>) =>
  Effect.gen(function* () {
    const http = stub(() => Effect.succeed(lines(...list)))
    const provider = yield* Effect.provide(vendor("ollama")({}), http.layer)
    return yield* read(provider.stream(request()))
  })

const say = (content: string, more: object = {}) => ({
  model: "m",
  message: { role: "assistant", content },
  done: false,
  ...more
})

describe("a request of OllamaProvider", () => {
  it.effect("sends images apart from the text, as bytes only (BP-106)", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf(
        "ollama",
        request({
          model: Model.make("llava", { capabilities: ["text", "vision"] }),
          messages: [
            message(
              "user",
              "see ",
              Content.image({ data: new Uint8Array([1, 2, 3]), mediaType: "image/png" }),
              Content.image({ url: "https://x.test/y.png", mediaType: "image/png" })
            ),
            message("assistant", ""),
            message("assistant", Content.image({ data: new Uint8Array([1, 2, 3]), mediaType: "image/png" }))
          ],
          generation: { temperature: 0, topP: 0.5, maxTokens: 7, stopSequences: ["x"], seed: 1 }
        })
      )
      assert.deepStrictEqual(body, {
        model: "llava",
        messages: [
          { role: "user", content: "see [image unavailable: image/png]", images: ["AQID"] },
          { role: "assistant", content: "", images: ["AQID"] }
        ],
        stream: true,
        options: { temperature: 0, top_p: 0.5, num_predict: 7, stop: ["x"], seed: 1 }
      })
    })
  )

  it.effect("prefers each of its own options over the common one", () =>
    Effect.gen(function* () {
      const extra = { ollama: { options: { num_ctx: 16_384, seed: 2 }, keep_alive: "10m" } }
      const body = yield* bodyOf("ollama", request({ generation: { temperature: 0.2, seed: 1, extra } }))
      assert.deepInclude(body, { options: { temperature: 0.2, seed: 2, num_ctx: 16_384 }, keep_alive: "10m" })
    })
  )

  it.effect("sends a JSON Schema as format, but not together with tools", () =>
    Effect.gen(function* () {
      const grammar: ReplyGrammar = { _tag: "Json", schema: { type: "object" } }
      assert.deepInclude(yield* bodyOf("ollama", request({ grammar })), { format: { type: "object" } })
      const tools = [{ name: "add", description: "", inputSchema: { type: "object" } }]
      assert.notProperty(yield* bodyOf("ollama", request({ grammar, tools })), "format")
      assert.notProperty(yield* bodyOf("ollama", request({ grammar: { _tag: "Gbnf", text: "" } })), "format")
    })
  )

  it.effect("names the call of each result", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf(
        "ollama",
        request({
          tools: [{ name: "add", description: "", inputSchema: { type: "object" } }],
          messages: [
            message("assistant", "Well.", Content.toolUse("a", "add", { x: 1 })),
            message("tool", Content.toolResult("a", "2"))
          ]
        })
      )
      assert.deepStrictEqual((body as { messages: unknown }).messages, [
        { role: "assistant", content: "Well.", tool_calls: [{ function: { name: "add", arguments: { x: 1 } } }] },
        { role: "tool", content: "2", tool_name: "add" }
      ])
    })
  )
})

describe("a reply to OllamaProvider", () => {
  it.effect("reads thinking, text and calls, and a last line without its end", () =>
    Effect.gen(function* () {
      const call = (name: string) => ({ function: { name, arguments: { x: 1 } } })
      const { parts, text } = yield* reading(
        { message: { thinking: "Hm." } },
        say("So"),
        say("", { message: { tool_calls: [call("add"), { ...call("add"), id: "a" }] } }),
        say("", { done: true, done_reason: "stop", prompt_eval_count: 4, eval_count: 2 })
      )
      assert.strictEqual(text, "So")
      assert.deepStrictEqual(
        parts.filter((part) => part.type === "tool-call"),
        [
          { type: "tool-call", id: "call_0", name: "add", params: { x: 1 } },
          { type: "tool-call", id: "a", name: "add", params: { x: 1 } }
        ]
      )
      assert.strictEqual(finishOf(parts)?.reason, "tool-calls")
      assert.strictEqual(finishOf(parts)?.usage.inputTokens.total, 4)
    })
  )

  it.effect("reads null arguments as none", () =>
    Effect.gen(function* () {
      for (const given of [null, "null", undefined]) {
        const call = { function: { name: "now", arguments: given } }
        const { parts } = yield* reading({ message: { content: "", tool_calls: [call] }, done: true })
        assert.deepInclude(
          parts.find((part) => part.type === "tool-call"),
          { name: "now", params: {} }
        )
      }
    })
  )

  it.effect(
    "never turns a number too large for a double into null: such arguments are text that is not JSON (R-22)",
    () =>
      Effect.gen(function* () {
        const big = '{"message":{"tool_calls":[{"function":{"name":"add","arguments":{"x":[1e400]}}}]}}'
        const { parts } = yield* reading(big, say("", { done: true, done_reason: "stop" }))
        const call = parts.find((part) => part.type === "tool-call")
        assert.isString(call?.type === "tool-call" ? call.params : undefined)
      })
  )

  it.effect("ignores an error that is null", () =>
    Effect.map(reading(say("x", { error: null }), say("", { done: true, error: null })), ({ text }) =>
      assert.strictEqual(text, "x")
    )
  )

  it.effect("keeps the reason `length`, and maps unknown reasons to `other`", () =>
    Effect.gen(function* () {
      for (const [given, expected] of [
        ["length", "length"],
        ["load", "other"],
        ["stop", "stop"]
      ]) {
        const { parts } = yield* reading(say("x"), say("", { done: true, done_reason: given }))
        assert.strictEqual(finishOf(parts)?.reason, expected)
      }
    })
  )

  it.effect("reports a model failure if the server could not read the call it wrote (R-10)", () =>
    Effect.gen(function* () {
      const error = "error parsing tool call: raw='{\"a\":', err=unexpected end of JSON input"
      for (const before of [[], [say("", { message: { content: "", thinking: "Hm" } })]]) {
        const { parts, text } = yield* reading(...before, { error })
        assert.strictEqual(text, "")
        assert.strictEqual(finishOf(parts)?.reason, "error")
      }
    })
  )

  for (const [what, list, reason] of [
    ["an error line", [say("x"), { error: "model runner has stopped" }], "server_error"],
    ["a junk line", [say("x"), "oops", say("y")], "invalid_response"],
    ["a cut line", [say("x"), '{"message":{"con'], "incomplete"],
    ["no last line", [say("x"), say("y")], "incomplete"]
  ] as const) {
    it.effect(`${what} is ${reason} (BP-110)`, () =>
      Effect.map(Effect.flip(reading(...list)), (error) => assert.strictEqual(error.reason, reason))
    )
  }
})

describe("a refusal to OllamaProvider", () => {
  it.effect("reports a prompt that is too long, from its own message", () =>
    Effect.gen(function* () {
      for (const [sentence, reason] of [
        ["the input length exceeds the context length", "context_length"],
        ["prompt too long; exceeded max context length by 2 tokens", "context_length"],
        ["llama3 does not support tools", "invalid_request"]
      ] as const) {
        const http = stub(() => Effect.succeed(new Response(JSON.stringify({ error: sentence }), { status: 400 })))
        const provider = yield* Effect.provide(vendor("ollama")({}), http.layer)
        const error = yield* Effect.flip(read(provider.stream(request())))
        assert.strictEqual(error.reason, reason)
        assert.notInclude(error.message, sentence)
      }
    })
  )
})

describe("OllamaProvider.layer", () => {
  it.effect("needs no key, and takes its address from the environment", () =>
    Effect.gen(function* () {
      const http = stub(() => Effect.succeed(lines(say("x", { done: true }))))
      for (const [env, url] of [
        [{}, "http://localhost:11434/api/chat"],
        [{ OLLAMA_BASE_URL: "https://api.ollama.com/", OLLAMA_API_KEY: "k-1" }, "https://api.ollama.com/api/chat"]
      ] as const) {
        yield* Effect.flatMap(Provider, (provider) => read(provider.stream(request()))).pipe(
          Effect.provide(
            OllamaProvider.layer.pipe(
              Layer.provide(http.layer),
              Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env)))
            )
          )
        )
        assert.strictEqual(http.asked.at(-1)?.url, url)
      }
      assert.notProperty(http.asked[0]?.headers, "authorization")
      assert.strictEqual(http.asked[1]?.headers["authorization"], "Bearer k-1")
    })
  )
})
