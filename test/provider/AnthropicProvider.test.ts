import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Layer, Option, Stream } from "effect"
import * as Content from "../../src/Content.ts"
import { StoreError } from "../../src/KernelError.ts"
import * as Limits from "../../src/Limits.ts"
import * as Media from "../../src/Media.ts"
import * as Model from "../../src/Model.ts"
import { Provider } from "../../src/Provider.ts"
import type { MediaLookup } from "../../src/Provider.ts"
import { AnthropicProvider } from "../../src/provider/index.ts"
import { gif, jpeg, png, webp } from "../support/images.ts"
import { bodyOf, finishOf, message, read, request, stub, vendor } from "../support/provider.ts"

const events = (...list: ReadonlyArray<object>) =>
  new Response(list.map((event) => `event: x\ndata: ${JSON.stringify(event)}\n\n`).join(""))

const reading = (...list: ReadonlyArray<object>) =>
  Effect.gen(function* () {
    const http = stub(() => Effect.succeed(events(...list)))
    const provider = yield* Effect.provide(vendor("anthropic")({}), http.layer)
    return yield* read(provider.stream(request()))
  })

const start = { type: "message_start", message: { id: "m1", model: "claude", usage: { input_tokens: 3 } } }
const stop = (reason: string, usage: object = { output_tokens: 5 }) => [
  { type: "message_delta", delta: { stop_reason: reason }, usage },
  { type: "message_stop" }
]
const tool = { name: "add", description: "Adds", inputSchema: { type: "object" } } as const

const bodyFor = (model: string, generation: object) =>
  Effect.map(bodyOf("anthropic", request({ model: Model.make(model), generation })), (body) => body as object)

describe("a request of AnthropicProvider", () => {
  it.effect("joins the results of one turn's native calls and keeps everything else apart", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf(
        "anthropic",
        request({
          tools: [tool],
          messages: [
            message("user", "1 + 1 and 2 + 2?"),
            message("assistant", "Let me see.", Content.toolUse("a", "add", { x: 1 }), Content.toolUse("b#2", "add")),
            message("tool", Content.toolResult("a", "2")),
            message("tool", Content.toolResult("b#2", "boom", { isError: true })),
            message("user", "And?"),
            message("user", "Well?")
          ]
        })
      )
      const { messages, tools } = body as {
        messages: ReadonlyArray<{ role: string; content: unknown }>
        tools: unknown
      }
      assert.deepStrictEqual(tools, [{ name: "add", description: "Adds", input_schema: { type: "object" } }])
      assert.deepStrictEqual(
        messages.map((message) => message.role),
        ["user", "assistant", "user", "user", "user"]
      )
      const [, asked, answered] = messages
      const [, , second] = (asked?.content ?? []) as ReadonlyArray<{ id: string }>
      assert.match(second?.id ?? "", /^[A-Za-z0-9_-]+$/)
      assert.deepStrictEqual(answered?.content, [
        { type: "tool_result", tool_use_id: "a", content: [{ type: "text", text: "2" }] },
        { type: "tool_result", tool_use_id: second?.id, content: [{ type: "text", text: "boom" }], is_error: true }
      ])
    })
  )

  it.effect("writes native calls as text if the request has no tools", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf(
        "anthropic",
        request({
          messages: [
            message("assistant", Content.toolUse("a", "add")),
            message("tool", Content.toolResult("a", "2")),
            message("tool", Content.toolResult("b", "3"))
          ]
        })
      )
      assert.deepStrictEqual((body as { messages: unknown }).messages, [
        { role: "assistant", content: [{ type: "text", text: "[ToolCall: add(a)]" }] },
        { role: "user", content: [{ type: "text", text: "[ToolResult: a] 2" }] },
        { role: "user", content: [{ type: "text", text: "[ToolResult: b] 3" }] }
      ])
    })
  )

  it.effect("sends thinking back to the model it came from, and to no other (CP-9)", () =>
    Effect.gen(function* () {
      const thought = (origin: Content.Json, signature: Content.Json) => Content.thinking("Hm.", { origin, signature })
      const own = { provider: "anthropic", model: "m-text" }
      const body = yield* bodyOf(
        "anthropic",
        request({
          messages: [
            message(
              "assistant",
              thought(own, { signature: "s" }),
              thought(own, { redacted: "xyz" }),
              thought(own, {}),
              thought({ provider: "anthropic", model: "other" }, { signature: "s" }),
              thought({ provider: "google", model: "m-text" }, { signature: "s" }),
              "So."
            )
          ]
        })
      )
      assert.deepStrictEqual((body as { messages: unknown }).messages, [
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm.", signature: "s" },
            { type: "redacted_thinking", data: "xyz" },
            { type: "text", text: "So." }
          ]
        }
      ])
    })
  )

  it.effect("reads media by id, and names missing ones", () =>
    Effect.gen(function* () {
      const stored = new Map([["media_1", new Uint8Array([1, 2, 3])]])
      const media: MediaLookup = {
        get: (id) => {
          const bytes = stored.get(id)
          return Effect.succeed(
            bytes === undefined
              ? Option.none()
              : Option.some<Media.Media>({
                  kind: "image",
                  mimeType: "image/png",
                  source: { _tag: "Bytes", bytes },
                  metadata: {}
                })
          )
        },
        bytes: (id) => Effect.succeed(stored.get(id) ?? new Uint8Array())
      }
      const ask = request({
        model: Model.make("m", { capabilities: ["text", "vision"] }),
        media,
        messages: [
          message(
            "user",
            Content.image({ fileId: "media_1", mediaType: "image/png" }),
            Content.image({ fileId: "media_2", mediaType: "image/gif" })
          )
        ]
      })
      const body = yield* bodyOf("anthropic", ask)
      assert.deepStrictEqual((body as { messages: ReadonlyArray<{ content: unknown }> }).messages[0]?.content, [
        { type: "image", source: { type: "base64", media_type: "image/png", data: "AQID" } },
        { type: "text", text: "[image unavailable: image/gif]" }
      ])
    })
  )

  it.effect("recognizes an image without a type by its first bytes, and passes a URL on to the vendor", () =>
    Effect.gen(function* () {
      const files: ReadonlyArray<readonly [type: string, bytes: Uint8Array]> = [
        ["image/png", png(2, 3)],
        ["image/jpeg", jpeg(2, 3)],
        ["image/gif", gif(2, 3)],
        ["image/webp", webp.lossy(2, 3)],
        ["image/webp", webp.lossless(2, 3)],
        ["application/octet-stream", new TextEncoder().encode("RIFF....WAVE")]
      ]
      const elsewhere = Content.image({ url: "https://x.test/a.png" })
      const pictures = [...files.map(([, data]) => Content.image({ data })), elsewhere]
      const model = Model.make("m", { capabilities: ["text", "vision"] })
      const body = yield* bodyOf("anthropic", request({ model, messages: [message("user", ...pictures)] }))
      const [asked] = (body as { messages: ReadonlyArray<{ content: ReadonlyArray<{ source: object }> }> }).messages
      assert.deepStrictEqual(
        asked?.content.slice(0, -1).map(({ source }) => ("media_type" in source ? source.media_type : undefined)),
        files.map(([type]) => type)
      )
      assert.deepStrictEqual(asked?.content.at(-1)?.source, { type: "url", url: "https://x.test/a.png" })
    })
  )

  it.effect("fails when the media store cannot be read instead of omitting the media", () =>
    Effect.gen(function* () {
      const down = new StoreError({ operation: "read media", reason: "unavailable", detail: "the database is gone" })
      const picture = Content.image({ fileId: "media_1", mediaType: "image/png" })
      for (const media of [
        { get: () => Effect.fail(down), bytes: () => Effect.fail(down) },
        {
          get: () => Effect.succeedSome(Media.fromBytes(new Uint8Array(1), "image/png")),
          bytes: () => Effect.fail(down)
        }
      ]) {
        const ask = request({
          model: Model.make("m", { capabilities: ["text", "vision"] }),
          media,
          messages: [message("user", picture)]
        })
        const http = stub(() => Effect.fail("refused"))
        const provider = yield* Effect.provide(vendor("anthropic")({}), http.layer)
        const error = yield* Effect.flip(Stream.runDrain(provider.stream(ask)))
        assert.deepStrictEqual(http.asked, [])
        assert.deepStrictEqual([error.provider, error.reason], ["anthropic", "disconnected"])
        assert.include(error.message, "the database is gone")
      }
    })
  )

  it.effect("omits options that a newer model does not accept, and requests its form of thinking", () =>
    Effect.gen(function* () {
      const options = { temperature: 0, topP: 0.5, thinking: { budget: 2048, effort: "low" } }
      assert.deepInclude(yield* bodyFor("claude-opus-4-8", options), {
        thinking: { type: "adaptive", display: "summarized" },
        output_config: { effort: "low" }
      })
      assert.notProperty(yield* bodyFor("claude-opus-4-8", options), "temperature")
      assert.propertyVal(yield* bodyFor("claude-opus-4-8", options), "max_tokens", 4096)
      for (const model of ["claude-opus-4-5", "claude-sonnet-4-6"]) {
        assert.deepInclude(yield* bodyFor(model, options), { output_config: { effort: "low" } })
      }
      assert.notProperty(yield* bodyFor("claude-sonnet-5", { topP: 0.5 }), "top_p")

      const older = yield* bodyFor("claude-sonnet-4-20250514", options)
      for (const model of ["claude-sonnet-4-20250514", "claude-opus-4-5", "claude-sonnet-4-6", "claude-opus-4-6"]) {
        const thinking = { type: "enabled", budget_tokens: 2048 }
        assert.deepInclude(yield* bodyFor(model, options), { thinking, max_tokens: 6144 })
      }
      assert.notProperty(older, "temperature")
      assert.notProperty(older, "output_config")
      assert.deepInclude(yield* bodyFor("claude-sonnet-4-20250514", { temperature: 0, topP: 0.5 }), {
        temperature: 0,
        top_p: 0.5
      })
    })
  )

  it.effect("prefers its own `output_config` over the common effort setting", () =>
    Effect.gen(function* () {
      const format = { type: "json_schema", schema: { type: "object" } }
      const extra = { anthropic: { output_config: { format } } }
      const body = yield* bodyFor("claude-opus-4-7", { thinking: { effort: "low" }, extra })
      assert.deepInclude(body, { output_config: { effort: "low", format } })
    })
  )

  it.effect("prefers its own thinking settings over the common ones, of which a model accepts one kind", () =>
    Effect.gen(function* () {
      const thinking = (model: string, own: Content.Json) =>
        Effect.map(
          bodyFor(model, { thinking: { budget: 2048, effort: "low" }, extra: { anthropic: { thinking: own } } }),
          (body) => (body as { thinking: unknown }).thinking
        )
      const [older, newer] = ["claude-sonnet-4-5", "claude-opus-4-7"] as const
      assert.deepStrictEqual(yield* thinking(older, { display: "omitted" }), {
        type: "enabled",
        budget_tokens: 2048,
        display: "omitted"
      })
      assert.deepStrictEqual(yield* thinking(newer, { display: "omitted" }), { type: "adaptive", display: "omitted" })
      assert.deepStrictEqual(yield* thinking(older, { type: "disabled" }), { type: "disabled" })
      assert.isNull(yield* thinking(older, null))
    })
  )

  it.effect("reads extra settings only under its own name", () =>
    Effect.gen(function* () {
      const body = yield* bodyFor("m", { extra: { top_k: 1, anthropic: { service_tier: "auto" }, openai: { n: 2 } } })
      assert.deepInclude(body, { service_tier: "auto" })
      assert.notProperty(body, "top_k")
      assert.notProperty(body, "n")
    })
  )

  it.effect("marks the last four breakpoints for its cache, the instructions too", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf(
        "anthropic",
        request({
          messages: [
            message("system", "S"),
            message("user", "a"),
            message("assistant", "b"),
            message("user", "c", "d")
          ],
          cacheBreakpoints: [0, 3]
        })
      )
      const ephemeral = { cache_control: { type: "ephemeral" } }
      assert.deepInclude(body as object, { system: [{ type: "text", text: "S", ...ephemeral }] })
      assert.deepStrictEqual((body as { messages: ReadonlyArray<{ content: unknown }> }).messages[2]?.content, [
        { type: "text", text: "c" },
        { type: "text", text: "d", ...ephemeral }
      ])
    })
  )

  it.effect(
    "omits an empty reply, a reply with only another model's thinking, and empty texts beside others (W-18)",
    () =>
      Effect.gen(function* () {
        const thought = Content.thinking("Hm.", { origin: { provider: "google", model: "m-text" }, signature: "s" })
        const body = yield* bodyOf(
          "anthropic",
          request({
            messages: [
              message("user", "a", ""),
              message("assistant", ""),
              message("assistant", thought),
              message("user", "b")
            ]
          })
        )
        assert.deepStrictEqual((body as { messages: unknown }).messages, [
          { role: "user", content: [{ type: "text", text: "a" }] },
          { role: "user", content: [{ type: "text", text: "b" }] }
        ])
      })
  )
})

describe("a reply to AnthropicProvider", () => {
  it.effect("reads thinking with its signature, text, and native calls in fragments", () =>
    Effect.gen(function* () {
      const { parts, text } = yield* reading(
        start,
        { type: "ping" },
        { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm." } },
        { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "sig" } },
        { type: "content_block_stop", index: 0 },
        { type: "content_block_start", index: 1, content_block: { type: "redacted_thinking", data: "xyz" } },
        { type: "content_block_stop", index: 1 },
        { type: "content_block_start", index: 2, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index: 2, delta: { type: "text_delta", text: "So" } },
        { type: "content_block_stop", index: 2 },
        { type: "content_block_start", index: 3, content_block: { type: "tool_use", id: "t", name: "add", input: {} } },
        { type: "content_block_delta", index: 3, delta: { type: "input_json_delta", partial_json: '{"x":' } },
        { type: "content_block_delta", index: 3, delta: { type: "input_json_delta", partial_json: "1}" } },
        { type: "content_block_stop", index: 3 },
        { type: "content_block_start", index: 4, content_block: { type: "tool_use", id: "t", name: "add", input: {} } },
        { type: "content_block_stop", index: 4 },
        ...stop("tool_use", { output_tokens: 9, output_tokens_details: { thinking_tokens: 4 } })
      )
      assert.strictEqual(text, "So")
      const [first, ...rest] = parts
      assert.deepInclude(first, { type: "response-metadata", id: "m1", modelId: "claude" })
      assert.strictEqual(first?.type === "response-metadata" && first.usage?.inputTokens.total, 3)
      assert.deepStrictEqual(rest, [
        { type: "reasoning-start", id: "0" },
        { type: "reasoning-delta", id: "0", delta: "Hm." },
        { type: "reasoning-end", id: "0", metadata: { anthropic: { signature: "sig" } } },
        { type: "reasoning-start", id: "1" },
        { type: "reasoning-end", id: "1", metadata: { anthropic: { redacted: "xyz" } } },
        { type: "text-start", id: "2" },
        { type: "text-delta", id: "2", delta: "So" },
        { type: "text-end", id: "2" },
        { type: "tool-params-start", id: "t", name: "add" },
        { type: "tool-params-delta", id: "t", delta: '{"x":' },
        { type: "tool-params-delta", id: "t", delta: "1}" },
        { type: "tool-params-end", id: "t" },
        { type: "tool-call", id: "t", name: "add", params: { x: 1 } },
        { type: "tool-params-start", id: "t#2", name: "add" },
        { type: "tool-params-end", id: "t#2" },
        { type: "tool-call", id: "t#2", name: "add", params: {} },
        {
          type: "finish",
          reason: "tool-calls",
          usage: {
            inputTokens: { total: 3, uncached: 3, cacheRead: undefined, cacheWrite: undefined },
            outputTokens: { total: 9, reasoning: 4 }
          }
        }
      ])
    })
  )

  it.effect("counts cached input as input, and replaces counts instead of adding them", () =>
    Effect.gen(function* () {
      const { parts } = yield* reading(
        { type: "message_start", message: { usage: { input_tokens: 3, output_tokens: 1 } } },
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "x" } },
        ...stop("end_turn", {
          input_tokens: 4,
          cache_read_input_tokens: 10,
          cache_creation_input_tokens: 20,
          output_tokens: 7
        })
      )
      assert.deepStrictEqual(finishOf(parts)?.usage.inputTokens, {
        total: 34,
        uncached: 4,
        cacheRead: 10,
        cacheWrite: 20
      })
      assert.strictEqual(finishOf(parts)?.usage.outputTokens.total, 7)
    })
  )

  for (const [given, expected] of [
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["max_tokens", "length"],
    ["model_context_window_exceeded", "length"],
    ["pause_turn", "pause"],
    ["refusal", "content-filter"],
    ["something_new", "other"]
  ] as const) {
    it.effect(`${given} is ${expected} (AC-4)`, () =>
      Effect.map(
        reading(
          { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "x" } },
          {
            type: "message_delta",
            delta: { stop_reason: given, stop_sequence: given === "stop_sequence" ? "!" : null }
          },
          { type: "message_stop" }
        ),
        ({ parts }) => {
          assert.strictEqual(finishOf(parts)?.reason, expected)
          assert.deepStrictEqual(
            finishOf(parts)?.metadata,
            given === "stop_sequence"
              ? { anthropic: { stopSequence: "!" } }
              : expected === "other"
                ? { anthropic: { finishReason: given } }
                : undefined
          )
        }
      )
    )
  }

  it.effect("reads the content of the first event, which may be the whole reply (BP-108, R-24)", () =>
    Effect.gen(function* () {
      const call = { type: "tool_use", id: "toolu_1", name: "add", input: { x: 1 } }
      const begun = (stop_reason: string | null) => ({
        type: "message_start",
        message: { id: "m1", model: "claude", content: [call], stop_reason, usage: { input_tokens: 3 } }
      })
      const whole = yield* reading(begun("tool_use"), { type: "message_stop" })
      assert.deepInclude(whole.parts, { type: "tool-call", id: "toolu_1", name: "add", params: { x: 1 } })
      assert.strictEqual(finishOf(whole.parts)?.reason, "tool-calls")
      const more = yield* reading(begun(null), ...stop("end_turn"))
      assert.strictEqual(finishOf(more.parts)?.reason, "stop")
      // Without its end it was cut, whatever it began with.
      assert.strictEqual((yield* Effect.flip(reading(begun("tool_use")))).reason, "incomplete")
    })
  )

  it.effect("keeps a call that is not ended before the next one starts (R-24)", () =>
    Effect.gen(function* () {
      const call = (id: string, x: number) => [
        { type: "content_block_start", index: 0, content_block: { type: "tool_use", id, name: "add", input: {} } },
        { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: `{"x":${x}}` } }
      ]
      const { parts } = yield* reading(start, ...call("a", 1), ...call("b", 2), ...stop("tool_use"))
      assert.deepStrictEqual(
        parts.filter((part) => part.type === "tool-call"),
        [
          { type: "tool-call", id: "a", name: "add", params: { x: 1 } },
          { type: "tool-call", id: "b", name: "add", params: { x: 2 } }
        ]
      )
    })
  )

  it.effect("reads blocks without an index one after the other", () =>
    Effect.gen(function* () {
      const blocks = [
        { type: "content_block_start", content_block: { type: "thinking", thinking: "Hm." } },
        { type: "content_block_delta", delta: { type: "signature_delta", signature: "s" } },
        { type: "content_block_stop" },
        { type: "content_block_start", content_block: { type: "tool_use", id: "a", name: "add", input: {} } },
        { type: "content_block_delta", delta: { type: "input_json_delta", partial_json: '{"x":1}' } },
        { type: "content_block_stop" },
        { type: "content_block_delta", delta: { type: "text_delta", text: "x" } }
      ]
      const { parts } = yield* reading(start, ...blocks, ...stop("tool_use"))
      const types = parts.map((part) => part.type)
      assert.deepInclude(parts, { type: "reasoning-end", id: "0", metadata: { anthropic: { signature: "s" } } })
      assert.deepInclude(parts, { type: "tool-call", id: "a", name: "add", params: { x: 1 } })
      assert.isBelow(types.indexOf("reasoning-end"), types.indexOf("tool-params-start"))
      assert.isBelow(types.indexOf("tool-call"), types.indexOf("text-start"))
    })
  )

  it.effect("keeps its finish reason when more usage follows", () =>
    Effect.gen(function* () {
      const { parts } = yield* reading(
        start,
        { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "x" } },
        { type: "message_delta", delta: { stop_reason: "stop_sequence", stop_sequence: "!" }, usage: {} },
        { type: "message_delta", delta: { stop_reason: null, stop_sequence: null }, usage: { output_tokens: 8 } },
        { type: "message_stop" }
      )
      assert.deepInclude(finishOf(parts), { reason: "stop", metadata: { anthropic: { stopSequence: "!" } } })
      assert.strictEqual(finishOf(parts)?.usage.outputTokens.total, 8)
    })
  )

  it.effect("keeps a signature that is there before its thinking (CP-9)", () =>
    Effect.gen(function* () {
      const { parts } = yield* reading(
        start,
        { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "Hm.", signature: "s" } },
        { type: "content_block_stop", index: 0 },
        ...stop("end_turn")
      )
      assert.deepInclude(parts, { type: "reasoning-end", id: "0", metadata: { anthropic: { signature: "s" } } })
    })
  )

  it.effect("fails with the error the stream ends in (BP-110)", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        reading(
          start,
          { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "x" } },
          { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }
        )
      )
      assert.strictEqual(error.reason, "overloaded")
      assert.include(error.message, "overloaded_error")
    })
  )

  it.effect("reports a withheld reply as such although its error says bad request", () =>
    Effect.gen(function* () {
      const said = (message: string) =>
        Effect.flip(
          reading(
            start,
            { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "x" } },
            { type: "error", error: { type: "invalid_request_error", message } }
          )
        )
      assert.strictEqual((yield* said("Output blocked by content filtering policy")).reason, "content_filter")
      assert.strictEqual((yield* said("messages: required")).reason, "invalid_request")
    })
  )

  it.effect("fails with an error whose type a gateway omitted, and ignores unknown deltas (BP-110)", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        reading(
          start,
          { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "x" } },
          { type: "content_block_delta", index: 0, delta: { type: "citations_delta", citation: {} } },
          { type: "ping" },
          {},
          { error: { type: "overloaded_error", message: "Overloaded" } }
        )
      )
      assert.strictEqual(error.reason, "overloaded")
    })
  )

  it.effect("fails when the whole reply is an error, with or without a type around it (BP-110)", () =>
    Effect.gen(function* () {
      for (const type of [{ type: "error" }, {}]) {
        const said = JSON.stringify({ ...type, error: { type: "overloaded_error", message: "Overloaded" } })
        const http = stub(() => Effect.succeed(new Response(said)))
        const provider = yield* Effect.provide(vendor("anthropic")({}), http.layer)
        const error = yield* Effect.flip(read(provider.stream(request())))
        assert.strictEqual(error.reason, "overloaded")
      }
    }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, modelAttempts: 1 }))
  )

  it.effect("keeps parameters that are not JSON as text (R-11)", () =>
    Effect.gen(function* () {
      const { parts } = yield* reading(
        { type: "content_block_start", index: 0, content_block: { type: "tool_use", name: "add" } },
        { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"x":' } },
        ...stop("tool_use")
      )
      assert.deepInclude(parts, { type: "tool-call", id: "call_0", name: "add", params: '{"x":' })
    })
  )

  it.effect("reports a prompt that is too long, or used up credit, from its own message", () =>
    Effect.gen(function* () {
      for (const [sentence, reason] of [
        ["prompt is too long: 210000 tokens > 200000 maximum", "context_length"],
        ["input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", "context_length"],
        ["Your credit balance is too low", "quota_exhausted"],
        ["Output blocked by content filtering policy", "content_filter"],
        ["You have reached your specified API usage limits. You will regain access on 2026-12-01.", "quota_exhausted"],
        ["max_tokens: required", "invalid_request"]
      ]) {
        const document = { type: "error", error: { type: "invalid_request_error", message: sentence } }
        const http = stub(() => Effect.succeed(new Response(JSON.stringify(document), { status: 400 })))
        const provider = yield* Effect.provide(vendor("anthropic")({}), http.layer)
        const error = yield* Effect.flip(read(provider.stream(request())))
        assert.strictEqual(error.reason, reason)
        assert.notInclude(error.message, sentence ?? "")
      }
    })
  )
})

describe("AnthropicProvider.layer", () => {
  const http = stub(() =>
    Effect.succeed(events({ type: "content_block_delta", delta: { text: "x" } }, ...stop("end_turn")))
  )
  const configured = (env: { readonly [name: string]: string }) =>
    AnthropicProvider.layer.pipe(
      Layer.provide(http.layer),
      Layer.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(env)))
    )

  it.effect("reads key and address from the environment", () =>
    Effect.gen(function* () {
      const provider = yield* Provider
      yield* read(provider.stream(request()))
      assert.strictEqual(http.asked[0]?.url, "https://gateway.test/anthropic/v1/messages?team=a")
      assert.strictEqual(http.asked[0]?.headers["x-api-key"], "sk-env")
      assert.strictEqual(http.asked[0]?.headers["anthropic-version"], "2023-06-01")
    }).pipe(
      Effect.provide(
        configured({ ANTHROPIC_API_KEY: "sk-env", ANTHROPIC_BASE_URL: " https://gateway.test/anthropic/?team=a " })
      )
    )
  )

  it.effect("without a key is not available, and names the variable", () =>
    Effect.gen(function* () {
      for (const env of [{}, { ANTHROPIC_API_KEY: "  " }]) {
        const error = yield* Effect.flip(Effect.provide(Effect.asVoid(Provider), configured(env as {})))
        assert.deepInclude(error, { _tag: "ProviderUnavailable", provider: "anthropic", variable: "ANTHROPIC_API_KEY" })
      }
    })
  )
})
