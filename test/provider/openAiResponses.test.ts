/** OpenAI over Responses: which models are asked so, what is sent, and what is read. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { Content, Dialect, Limits, Model, type Provider, type StreamPart } from "kernai"
import { OpenAiProvider } from "kernai/provider"
import {
  bodyOf,
  finishOf,
  key,
  message,
  picture,
  read,
  request,
  serverSent,
  stub,
  tool,
  vendor
} from "../support/provider.ts"

const wire = "openai-responses"

interface Body {
  readonly input: ReadonlyArray<{ readonly type: string; readonly [key: string]: unknown }>
  readonly [key: string]: unknown
}

const sent = (ask: Provider.Request) => Effect.map(bodyOf(wire, ask), (body) => body as Body)

const reading = (...events: ReadonlyArray<object>) =>
  Effect.gen(function* () {
    const http = stub(() => Effect.succeed(serverSent(events)))
    const provider = yield* Effect.provide(vendor(wire)({}), http.layer)
    return yield* read(provider.stream(request()))
  })

const document = (value: object) =>
  Effect.gen(function* () {
    const http = stub(() => Effect.succeed(Response.json(value)))
    const provider = yield* Effect.provide(vendor(wire)({}), http.layer)
    return yield* read(provider.stream(request()))
  })

const done = (more: object = {}) => ({
  type: "response.completed",
  response: { id: "r", status: "completed", usage: { input_tokens: 5, output_tokens: 7 }, ...more }
})

const item = (index: number, item: object) => ({ type: "response.output_item.done", output_index: index, item })
const added = (index: number, item: object) => ({ type: "response.output_item.added", output_index: index, item })
const reasoning = (id: string) => ({ id, type: "reasoning", summary: [], encrypted_content: `secret-${id}` })
const call = (id: string, name = "add", args = "{}") => ({ type: "function_call", call_id: id, name, arguments: args })

describe("OpenAI is asked over Responses", () => {
  const cases: ReadonlyArray<
    readonly [what: string, model: Model.Model, api: "chat" | "responses" | undefined, path: string]
  > = [
    ["for a model of the catalogue that reasons", Model.gpt5, undefined, "/v1/responses"],
    ["for a model whose value says so", Model.make("mine", { api: "responses" }), undefined, "/v1/responses"],
    ["not for a model that says nothing", Model.make("gpt-5"), undefined, "/v1/chat/completions"],
    ["not for a model of the catalogue that does not reason", Model.gpt4o, undefined, "/v1/chat/completions"],
    ["for all models where the provider says so", Model.gpt4o, "responses", "/v1/responses"],
    ["for none where the provider says so", Model.gpt5, "chat", "/v1/chat/completions"]
  ]
  it.effect.each(cases)("%s", ([, model, api, path]) =>
    Effect.gen(function* () {
      const http = stub(() => Effect.succeed(new Response("{}", { status: 400 })))
      const provider = yield* Effect.provide(OpenAiProvider.make({ apiKey: key, api }), http.layer)
      yield* Effect.ignore(read(provider.stream(request({ model }))))
      assert.strictEqual(http.asked[0]?.url, `https://api.openai.com${path}`)
      assert.strictEqual(http.asked[0]?.headers["authorization"], `Bearer ${Redacted.value(key)}`)
    })
  )
})

describe("a request over Responses", () => {
  it.effect("stores nothing at the service, and asks a reasoner for its encrypted reasoning", () =>
    Effect.gen(function* () {
      const generation = { temperature: 0.2, maxTokens: 50, thinking: { effort: "low" } }
      const asked = (id: string) => sent(request({ model: Model.make(id), generation, tools: [tool] }))
      assert.deepStrictEqual(
        Object.entries(yield* asked("gpt-5.1")).filter(([name]) => name !== "input"),
        [
          ["model", "gpt-5.1"],
          ["stream", true],
          ["store", false],
          ["include", ["reasoning.encrypted_content"]],
          ["max_output_tokens", 50],
          [
            "tools",
            [{ type: "function", name: "add", description: "Adds", parameters: { type: "object" }, strict: false }]
          ],
          ["reasoning", { effort: "low", summary: "auto" }]
        ]
      )
      const plain = yield* asked("gpt-4o")
      assert.deepInclude(plain, { temperature: 0.2, max_output_tokens: 50 })
      assert.notProperty(plain, "include")
      assert.notProperty(plain, "reasoning")
    })
  )

  it.effect("omits the options that its model does not accept, and names them", () =>
    Effect.gen(function* () {
      const provider = yield* Effect.provide(vendor(wire)({}), stub(() => Effect.fail("refused")).layer)
      const generation = {
        temperature: 0.2,
        topP: 0.5,
        seed: 7,
        stopSequences: ["."],
        maxTokens: 9,
        thinking: { effort: "low" }
      }
      const taken = (id: string) => Object.keys(provider.takes?.({ generation, model: Model.make(id) }) ?? {})
      assert.deepStrictEqual(taken("gpt-5.1"), ["maxTokens", "thinking"])
      assert.deepStrictEqual(taken("gpt-4o"), ["maxTokens", "temperature", "topP"])
    })
  )

  it.effect("prefers the host's own options over these", () =>
    Effect.gen(function* () {
      const generation = {
        thinking: { effort: "low" },
        extra: { openai: { reasoning: { summary: "detailed" }, store: true } }
      }
      const body = yield* sent(request({ model: Model.make("gpt-5"), generation }))
      assert.deepInclude(body, { store: true, reasoning: { effort: "low", summary: "detailed" } })
    })
  )

  it.effect("holds a typed answer to its schema", () =>
    Effect.gen(function* () {
      const schema = { type: "object", properties: { a: { type: "string" } } }
      const body = yield* sent(request({ grammar: { _tag: "Json", schema } }))
      assert.deepStrictEqual(body["text"], { format: { type: "json_schema", name: "reply", schema } })
    })
  )

  it.effect("sends calls, results and the media of results as separate items", () =>
    Effect.gen(function* () {
      const { input } = yield* sent(
        request({
          model: Model.make("m", { capabilities: ["text", "vision"] }),
          tools: [tool],
          messages: [
            message("system", "Be brief."),
            message("user", "look", picture),
            message("assistant", "I add.", Content.toolUse("a", "add", { x: 1 }), Content.toolUse("b", "add", {})),
            message("tool", Content.toolResult("a", [Content.text("2"), Content.text("3")])),
            message("tool", Content.toolResult("b", [Content.text("seen"), picture]))
          ]
        })
      )
      const image = { type: "input_image", image_url: "data:image/png;base64,AQID", detail: "auto" }
      assert.deepStrictEqual(input, [
        { type: "message", role: "system", content: [{ type: "input_text", text: "Be brief." }] },
        { type: "message", role: "user", content: [{ type: "input_text", text: "look" }, image] },
        { type: "message", role: "assistant", content: "I add." },
        { type: "function_call", call_id: "a", name: "add", arguments: '{"x":1}' },
        { type: "function_call", call_id: "b", name: "add", arguments: "{}" },
        { type: "function_call_output", call_id: "a", output: "2\n3" },
        { type: "function_call_output", call_id: "b", output: [{ type: "input_text", text: "seen" }, image] }
      ])
    })
  )
})

describe("reasoning", () => {
  it.effect("is sent back encrypted, before the call it led to, and only to its own model", () =>
    Effect.gen(function* () {
      const { parts } = yield* reading(
        added(0, reasoning("rs_1")),
        item(0, reasoning("rs_1")),
        added(1, call("a")),
        item(1, call("a")),
        item(2, { ...reasoning("rs_2"), summary: [{ type: "summary_text", text: "More." }] }),
        added(3, call("b", "add", '{"x":1}')),
        item(3, call("b", "add", '{"x":1}')),
        done()
      )
      assert.strictEqual(finishOf(parts)?.reason, "tool-calls")
      const { asked, content } = yield* conversed(parts, "m")
      assert.deepStrictEqual(
        asked.input.slice(1, 5).map(({ call_id, encrypted_content, id, summary, type }) => ({
          type,
          id: id ?? call_id,
          ...(type === "reasoning" ? { encrypted_content, summary } : {})
        })),
        [
          { type: "reasoning", id: "rs_1", encrypted_content: "secret-rs_1", summary: [] },
          { type: "function_call", id: "a" },
          {
            type: "reasoning",
            id: "rs_2",
            encrypted_content: "secret-rs_2",
            summary: [{ type: "summary_text", text: "More." }]
          },
          { type: "function_call", id: "b" }
        ]
      )
      const origins = content.filter((part) => part.type === "thinking").map(({ origin }) => origin)
      assert.deepStrictEqual(origins, [
        { provider: "openai", model: "m" },
        { provider: "openai", model: "m" }
      ])
      const other = yield* conversed(parts, "other")
      assert.isFalse(other.asked.input.some(({ type }) => type === "reasoning"))
    })
  )

  it.effect("that is not encrypted is emitted, and not sent back", () =>
    Effect.gen(function* () {
      const bare = { id: "rs", type: "reasoning", summary: [{ type: "summary_text", text: "Hm." }] }
      const { parts } = yield* reading(item(0, bare), item(1, said("4")), done())
      assert.strictEqual(parts.map((part) => (part.type === "reasoning-delta" ? part.delta : "")).join(""), "Hm.")
      const { asked } = yield* conversed(parts, "m")
      assert.isFalse(asked.input.some(({ type }) => type === "reasoning"))
    })
  )
})

const said = (text: string) => ({ type: "message", role: "assistant", content: [{ type: "output_text", text }] })

describe("a reply over Responses", () => {
  it.effect("is read from whole items if nothing arrived in pieces, and from a whole document", () =>
    Effect.gen(function* () {
      const output = [said("4"), call("a", "add", '{"x":1}')]
      const streamed = yield* reading(...output.flatMap((one, index) => [added(index, one), item(index, one)]), done())
      const whole = yield* document({ status: "completed", id: "r", model: "m", output, usage: { input_tokens: 5 } })
      for (const { parts, text } of [streamed, whole]) {
        assert.strictEqual(text, "4")
        assert.deepStrictEqual(
          parts.flatMap((part) => (part.type === "tool-call" ? [[part.id, part.params]] : [])),
          [["a", { x: 1 }]]
        )
      }
    })
  )

  it.effect("that was refused is a content filter, and one that failed is an error in the vendor's words", () =>
    Effect.gen(function* () {
      const { parts, text } = yield* reading({ type: "response.refusal.delta", output_index: 0, delta: "No." }, done())
      assert.deepStrictEqual([text, finishOf(parts)?.reason], ["No.", "content-filter"])
      const error = { code: "rate_limit_exceeded", message: "Slow down, please" }
      for (const event of [
        { type: "response.failed", response: { status: "failed", error } },
        { type: "error", ...error }
      ]) {
        const failure = yield* Effect.flip(
          reading({ type: "response.output_text.delta", output_index: 0, delta: "a" }, event)
        )
        assert.strictEqual(failure.reason, "rate_limited")
        assert.include(JSON.stringify(failure.vendor), "Slow down, please")
      }
    })
  )

  it.effect("may hold an image that the model made", () =>
    Effect.gen(function* () {
      const made = { type: "image_generation_call", result: "AQID", output_format: "webp" }
      const { parts } = yield* reading(item(0, made), done())
      assert.deepInclude(parts, { type: "file", mediaType: "image/webp", data: "AQID" })
    })
  )

  it.effect("counts what was read from the cache, and what was thought", () =>
    Effect.gen(function* () {
      const usage = {
        input_tokens: 30,
        input_tokens_details: { cached_tokens: 20 },
        output_tokens: 9,
        output_tokens_details: { reasoning_tokens: 4 }
      }
      const { parts } = yield* reading(done({ usage }))
      assert.deepStrictEqual(finishOf(parts)?.usage, {
        inputTokens: { total: 30, cacheRead: 20, uncached: 10 },
        outputTokens: { total: 9, reasoning: 4 }
      })
    })
  )
})

/** What is sent to a model after the model `m` said these parts. */
const conversed = (parts: ReadonlyArray<StreamPart.StreamPart>, model: string) =>
  Effect.gen(function* () {
    const quiet = { text: () => {}, block: () => {}, part: () => {} }
    const reader = Dialect.tools.reader(quiet, Limits.defaults, { provider: "openai", model: "m" })
    reader.push(parts)
    const { content } = reader.end()
    const results = content.flatMap((part) =>
      part.type === "tool_use" ? [message("tool", Content.toolResult(part.callId, "ok"))] : []
    )
    const messages = [message("user", "go"), message("assistant", ...content), ...results, message("user", "next")]
    return { content, asked: yield* sent(request({ model: Model.make(model), tools: [tool], messages })) }
  })
