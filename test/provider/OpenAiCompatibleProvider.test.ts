import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Content from "../../src/Content.ts"
import { Grammar, OpenAiCompatibleProvider } from "../../src/provider/index.ts"
import type * as Provider from "../../src/Provider.ts"
import { delta } from "../support/chatStream.ts"
import {
  bodyOf,
  finishOf,
  key,
  message,
  picture,
  read,
  readingOf,
  request,
  serverSent,
  stub,
  tool,
  vendor,
  vision
} from "../support/provider.ts"

const reading = (...list: ReadonlyArray<object | string>) => readingOf("compatible", list)

describe("OpenAiCompatibleProvider", () => {
  it.effect("reports a model failure if a host could not read the call it wrote, as Groq sends it (R-10)", () =>
    Effect.gen(function* () {
      const error = { type: "invalid_request_error", code: "tool_use_failed", failed_generation: "<function=x>" }
      for (const before of [[], [delta({ role: "assistant", content: "", reasoning: "Hm" })]]) {
        const { parts, text } = yield* reading(...before, { error })
        assert.strictEqual(text, "")
        assert.strictEqual(finishOf(parts)?.reason, "error")
        assert.strictEqual(parts.at(-1), finishOf(parts))
      }
      const other = yield* Effect.flip(reading({ error: { ...error, code: "bad_tool" } }))
      assert.strictEqual(other.reason, "invalid_request")
      const http = stub(() => Effect.succeed(new Response(JSON.stringify({ error }), { status: 400 })))
      const provider = yield* Effect.provide(vendor("compatible")({}), http.layer)
      const refused = yield* read(provider.stream(request()))
      assert.deepStrictEqual(refused.parts, [
        { type: "finish", reason: "error", usage: { inputTokens: {}, outputTokens: {} } }
      ])
      assert.strictEqual(http.asked.length, 1)
    })
  )

  it.effect("sends text as a string, and lists only where an image needs one", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf(
        "compatible",
        request({
          model: vision,
          messages: [message("system", "S"), message("user", "a", "b"), message("user", picture)]
        })
      )
      assert.deepInclude(body as object, { stream_options: { include_usage: true } })
      assert.deepStrictEqual((body as { messages: unknown }).messages, [
        { role: "system", content: "S" },
        { role: "user", content: "ab" },
        { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AQID" } }] }
      ])
    })
  )

  it.effect("sends no image URL to a model without vision, and no empty list of calls", () =>
    Effect.gen(function* () {
      const picture = Content.image({ url: "https://x.test/a.png", mediaType: "image/png" })
      const body = yield* bodyOf(
        "compatible",
        request({ messages: [message("user", picture), message("assistant", ""), message("assistant", "I see.")] })
      )
      assert.deepStrictEqual((body as { messages: unknown }).messages, [
        { role: "user", content: "[image unavailable: image/png]" },
        { role: "assistant", content: "I see." }
      ])
    })
  )

  it.effect(
    "joins neighboring texts of a model, but not with a message that has calls, for templates that require alternating roles",
    () =>
      Effect.gen(function* () {
        const http = stub(() => Effect.succeed(serverSent([delta({ content: "x" }, "stop")])))
        const options = { name: "local", baseUrl: "http://localhost:8080/v1", alternates: true }
        const provider = yield* Effect.provide(OpenAiCompatibleProvider.make(options), http.layer)
        const messages = [message("assistant", "Wait."), message("assistant", "So:", Content.toolUse("c", "add"))]
        yield* read(provider.stream(request({ tools: [tool], messages })))
        const call = { id: "c", type: "function", function: { name: "add", arguments: "{}" } }
        const body = http.asked[0]?.body as { readonly messages: unknown }
        assert.deepStrictEqual(body.messages, [
          { role: "assistant", content: "Wait." },
          { role: "assistant", content: "So:", tool_calls: [call] }
        ])
      })
  )

  it.effect("reads thinking under either name, and content in parts", () =>
    Effect.gen(function* () {
      const { parts, text } = yield* reading(
        delta({ reasoning_content: "a" }),
        delta({ reasoning: "b" }),
        delta({
          content: [
            { type: "thinking", thinking: [{ type: "text", text: "c" }] },
            { type: "text", text: "So" }
          ]
        }),
        delta({}, "stop")
      )
      assert.strictEqual(text, "So")
      assert.strictEqual(parts.map((part) => (part.type === "reasoning-delta" ? part.delta : "")).join(""), "abc")
    })
  )

  it.effect(
    "sends a grammar to a server that accepts one, a key in its own header, and no usage option if switched off",
    () =>
      Effect.gen(function* () {
        const http = stub(() => Effect.succeed(serverSent([delta({ content: "x" }, "stop")])))
        const provider = yield* Effect.provide(
          OpenAiCompatibleProvider.make({
            name: "local",
            baseUrl: "http://localhost:8080/v1/",
            apiKey: key,
            keyHeader: "api-key",
            grammar: "gbnf",
            usageOption: false
          }),
          http.layer
        )
        yield* read(provider.stream(request({ grammar: { _tag: "Gbnf", text: 'root ::= "x"' } })))
        const [asked] = http.asked
        assert.strictEqual(asked?.url, "http://localhost:8080/v1/chat/completions")
        assert.strictEqual(asked?.headers["api-key"], "sk-SECRET-0123456789abcdef")
        assert.notProperty(asked?.headers, "authorization")
        assert.deepStrictEqual(asked?.body, {
          model: "m-text",
          stream: true,
          grammar: 'root ::= "x"',
          messages: [{ role: "user", content: "hi" }]
        })
      })
  )

  it.effect("sends a grammar in the form its server takes, and none where the form is missing", () =>
    Effect.gen(function* () {
      const skill = { name: "look", inputSchema: { type: "object" } }
      const grammar: Provider.ReplyGrammar = {
        _tag: "Blocks",
        skills: [skill],
        protocols: [],
        workflows: false,
        output: undefined
      }
      const json: Provider.ReplyGrammar = { _tag: "Json", schema: { type: "object" } }
      const jsonFormat = { type: "json_schema", json_schema: { name: "reply", schema: json.schema } }
      const sent = (form: OpenAiCompatibleProvider.Options["grammar"], given: Provider.ReplyGrammar) =>
        Effect.gen(function* () {
          const http = stub(() => Effect.succeed(serverSent([delta({ content: "x" }, "stop")])))
          const options = { name: "local", baseUrl: "http://localhost:8080/v1", grammar: form }
          const provider = yield* Effect.provide(OpenAiCompatibleProvider.make(options), http.layer)
          yield* read(provider.stream(request({ grammar: given })))
          const known = new Set(["messages", "model", "stream", "stream_options"])
          return Object.fromEntries(Object.entries(http.asked[0]?.body ?? {}).filter(([key]) => !known.has(key)))
        })
      assert.deepStrictEqual(yield* sent("structured_outputs", grammar), {
        structured_outputs: { grammar: Grammar.gbnfOf(grammar) }
      })
      assert.deepStrictEqual(yield* sent("structural_tag", grammar), {
        response_format: Grammar.structuralTagOf(grammar)
      })
      assert.deepStrictEqual(yield* sent("json_schema", json), { response_format: jsonFormat })
      assert.deepStrictEqual(yield* sent("structural_tag", json), { response_format: jsonFormat })
      assert.deepStrictEqual(yield* sent("gbnf", json), { grammar: Grammar.gbnfOf(json) })
      assert.deepStrictEqual(yield* sent("json_schema", { _tag: "Gbnf", text: "" }), {})
      assert.deepStrictEqual(yield* sent("json_schema", grammar), {
        response_format: { type: "json_schema", json_schema: { name: "reply", schema: Grammar.jsonSchemaOf(grammar) } }
      })
      assert.deepStrictEqual(yield* sent("json_schema", { _tag: "Json", schema: { type: "array" } }), {})
      assert.deepStrictEqual(yield* sent(undefined, grammar), {})
    })
  )

  it.effect(
    "recognizes a prompt that is too long by the message if there is no code, and does not pass the message on",
    () =>
      Effect.gen(function* () {
        for (const [document, reason] of [
          [
            {
              object: "error",
              message: "This model's maximum context length is 4096 tokens.",
              type: "BadRequestError"
            },
            "context_length"
          ],
          [
            { error: { message: "The decoder prompt is longer than the maximum model length of 4096.", code: 400 } },
            "context_length"
          ],
          [
            { error: { message: "This model's maximum prompt length is 131072", type: "invalid_request_error" } },
            "context_length"
          ],
          [
            { error: { message: "The input is longer than the model's context length.", code: null } },
            "context_length"
          ],
          [{ error: "The model is loaded with context length of only 4096 tokens" }, "context_length"],
          [{ error: { message: "Your request exceeded model token limit: 4096 (requested: 4097)" } }, "context_length"],
          [{ message: "Input validation error: `inputs` must have less than 4096 tokens" }, "context_length"],
          ...[
            "Input is too long for requested model.",
            "prompt token count of 4097 exceeds the limit of 4096",
            "Range of input length should be [1, 4096]",
            "Context size has been exceeded.",
            "Input length 4097 exceeds the maximum allowed input length of 4096 tokens",
            "Please reduce the length of the messages or completion."
          ].map((message) => [{ error: { message, code: 400 } }, "context_length"] as const),
          [
            [{ error: { message: "The input exceeds the maximum number of tokens allowed (4096)." } }],
            "context_length"
          ],
          [{ error: { message: "'name' is too long", type: "invalid_request_error" } }, "invalid_request"]
        ] as const) {
          const http = stub(() => Effect.succeed(new Response(JSON.stringify(document), { status: 400 })))
          const provider = yield* Effect.provide(vendor("compatible")({}), http.layer)
          const error = yield* Effect.flip(read(provider.stream(request())))
          assert.strictEqual(error.reason, reason)
          assert.notMatch(error.message, /maximum|4096/)
        }
      })
  )

  it.effect("classifies a refusal for too many requests as such, although it mentions lengths (R-13)", () =>
    Effect.gen(function* () {
      const error = { message: "Too many requests with a context length over 200k", type: "invalid_request_error" }
      const headers = { "retry-after": "3600" }
      const http = stub(() => Effect.succeed(new Response(JSON.stringify({ error }), { status: 429, headers })))
      const provider = yield* Effect.provide(vendor("compatible")({}), http.layer)
      const failed = yield* Effect.flip(read(provider.stream(request())))
      assert.strictEqual(failed.reason, "rate_limited")
      assert.isDefined(failed.retryAt)
    })
  )

  it.effect("sends Gemini its signature of a call back with that call, and none to another model (CP-9)", () =>
    Effect.gen(function* () {
      const signed = (id: string | undefined, params: string, signature?: string) => ({
        index: id === "b" ? 1 : 0,
        ...(id === undefined ? {} : { id, function: { name: "add", arguments: params } }),
        ...(id === undefined ? { function: { arguments: params } } : {}),
        ...(signature === undefined ? {} : { extra_content: { google: { thought_signature: signature } } })
      })
      const { parts } = yield* reading(
        delta({ tool_calls: [signed("a", '{"x"', "s1")] }),
        delta({ tool_calls: [signed(undefined, ":1}", "s1")] }),
        delta({ tool_calls: [signed("b", "{}")] }, "tool_calls"),
        "[DONE]"
      )
      const ends = parts.filter((part) => part.type === "reasoning-end")
      assert.deepStrictEqual(
        ends.map(({ metadata }) => metadata),
        [{ local: { signature: "s1", callId: "a" } }]
      )
      const sent = (model: string) =>
        Effect.map(
          bodyOf(
            "compatible",
            request({
              tools: [tool],
              messages: [
                message(
                  "assistant",
                  Content.thinking("", {
                    origin: { provider: "local", model },
                    signature: { signature: "s1", callId: "a" }
                  }),
                  Content.toolUse("a", "add", { x: 1 }),
                  Content.toolUse("b", "add")
                )
              ]
            })
          ),
          (body) => (body as { messages: unknown }).messages
        )
      const call = (id: string, params: string, more: object = {}) => ({
        id,
        type: "function",
        function: { name: "add", arguments: params },
        ...more
      })
      const extra_content = { google: { thought_signature: "s1" } }
      const said = { role: "assistant", content: null }
      assert.deepStrictEqual(yield* sent("m-text"), [
        { ...said, tool_calls: [call("a", '{"x":1}', { extra_content }), call("b", "{}")] }
      ])
      assert.deepStrictEqual(yield* sent("other"), [{ ...said, tool_calls: [call("a", '{"x":1}'), call("b", "{}")] }])
    })
  )

  it.effect("sends the details of a signed thought back as OpenRouter sent them, with a call or text", () =>
    Effect.gen(function* () {
      const told = (reasoning: string | null, ...reasoning_details: ReadonlyArray<object>) =>
        delta({ content: "", reasoning, reasoning_details })
      const claude = { type: "reasoning.text", format: "anthropic-claude-v1", index: 0 }
      const gemini = { type: "reasoning.encrypted", format: "google-gemini-v1", index: 0, id: "a" }
      const call = { index: 0, id: "a", function: { name: "add", arguments: "{}" } }
      const { parts } = yield* reading(
        told("H", { ...claude, text: "H" }),
        told("m.", { ...claude, text: "m.", signature: null }),
        told(null, { ...claude, signature: "s" }),
        told(null, { type: "reasoning.summary", summary: "So.", format: null }),
        told(null, { ...gemini, data: "e1" }, { ...gemini, data: "e2" }),
        delta({ tool_calls: [call] }, "tool_calls"),
        "[DONE]"
      )
      const details = [
        { ...claude, text: "Hm.", signature: "s" },
        { type: "reasoning.summary", summary: "So." },
        { ...gemini, data: "e1" },
        { ...gemini, data: "e2" }
      ]
      assert.strictEqual(parts.map((part) => (part.type === "reasoning-delta" ? part.delta : "")).join(""), "Hm.So.")
      const kept = parts.flatMap((part) =>
        part.type === "reasoning-end" && part.metadata !== undefined ? [part.metadata["local"] ?? null] : []
      )
      assert.deepStrictEqual(
        kept,
        details.map((detail) => ("id" in detail ? { detail, callId: "a" } : { detail }))
      )
      const origin = { provider: "local", model: "m-text" }
      const thoughts = kept.map((signature) => Content.thinking("", { origin, signature }))
      const renamed = Content.thinking("", {
        origin,
        signature: { detail: { ...gemini, data: "e" }, callId: "run:t1.0" }
      })
      const body = yield* bodyOf(
        "compatible",
        request({
          tools: [tool],
          messages: [
            message("assistant", ...thoughts, Content.toolUse("a", "add")),
            message("tool", Content.toolResult("a", "2")),
            message("assistant", ...thoughts, "So."),
            message("assistant", ...thoughts),
            message("assistant", renamed, Content.toolUse("run:t1.0", "add"))
          ]
        })
      )
      const messages = (body as { messages: ReadonlyArray<{ tool_calls?: ReadonlyArray<{ id: string }> }> }).messages
      const id = messages[3]?.tool_calls?.[0]?.id
      assert.notInclude([undefined, "run:t1.0"], id)
      assert.deepInclude(messages[3] as object, { reasoning_details: [{ ...gemini, data: "e", id }] })
      assert.deepStrictEqual<unknown>(messages.slice(0, 3), [
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "a", type: "function", function: { name: "add", arguments: "{}" } }],
          reasoning_details: details
        },
        { role: "tool", tool_call_id: "a", content: "2" },
        { role: "assistant", content: "So.", reasoning_details: details }
      ])
    })
  )

  it.effect("drops the details of an unsigned thought, and reads a thought that is only in its details", () =>
    Effect.gen(function* () {
      const detail = { type: "reasoning.text", text: "Hm.", index: 0 }
      const message = { content: "So.", reasoning_details: [detail] }
      const whole = { choices: [{ index: 0, message, finish_reason: "stop" }] }
      for (const list of [[delta({ reasoning_details: [detail] }), delta({ content: "So." }, "stop")], [whole]]) {
        const { parts, text } = yield* reading(...list, "[DONE]")
        assert.strictEqual(text, "So.")
        assert.deepInclude(parts, { type: "reasoning-delta", id: "0", delta: "Hm." })
        assert.deepInclude(parts, { type: "reasoning-end", id: "0" })
        assert.strictEqual(parts.at(-1)?.type, "finish")
      }
      const signed = { ...message, reasoning_details: [{ ...detail, signature: "s" }] }
      const http = stub(() =>
        Effect.succeed(
          new Response(JSON.stringify({ choices: [{ index: 0, message: signed, finish_reason: "stop" }] }))
        )
      )
      const provider = yield* Effect.provide(vendor("compatible")({}), http.layer)
      const { parts } = yield* read(provider.stream(request()))
      assert.strictEqual(parts.filter((part) => part.type === "reasoning-end").length, 2)
      assert.strictEqual(parts.at(-1)?.type, "finish")
    })
  )

  it.effect("sends a thinking model its own thinking back with its calls", () =>
    Effect.gen(function* () {
      const origin = { provider: "local", model: "m-text" }
      const body = yield* bodyOf(
        "compatible",
        request({
          tools: [tool],
          messages: [message("assistant", Content.thinking("Hm.", { origin }), Content.toolUse("a", "add"))]
        })
      )
      assert.deepInclude((body as { messages: ReadonlyArray<object> }).messages[0] ?? {}, { reasoning_content: "Hm." })
    })
  )
})
