import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Content from "../../src/Content.ts"
import * as Model from "../../src/Model.ts"
import { delta } from "../support/chatStream.ts"
import { bodyOf, finishOf, message, picture, read, request, stub, tool, vendor, vision } from "../support/provider.ts"
import { reading } from "../support/openAi.ts"

describe("a request of OpenAiProvider", () => {
  it.effect("sends results as text, and their media in a user message", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf(
        "openai",
        request({
          model: vision,
          tools: [tool],
          messages: [
            message("assistant", Content.toolUse("a", "add", { x: 1 })),
            message("tool", Content.toolResult("a", [Content.text("2"), picture, Content.text("3")]))
          ]
        })
      )
      assert.deepStrictEqual((body as { messages: unknown }).messages, [
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "a", type: "function", function: { name: "add", arguments: '{"x":1}' } }]
        },
        { role: "tool", tool_call_id: "a", content: "2\n3" },
        { role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AQID" } }] }
      ])
      assert.deepStrictEqual((body as { tools: unknown }).tools, [
        { type: "function", function: { name: "add", description: "Adds", parameters: { type: "object" } } }
      ])
    })
  )

  it.effect("sends the URL of an image, and no thinking back", () =>
    Effect.gen(function* () {
      const origin = { provider: "openai", model: "m" }
      const body = yield* bodyOf(
        "openai",
        request({
          model: vision,
          tools: [tool],
          messages: [
            message("user", Content.image({ url: "https://x.test/a.png", mediaType: "image/png" })),
            message("assistant", Content.thinking("Hm.", { origin }), Content.toolUse("a", "add"))
          ]
        })
      )
      assert.deepStrictEqual((body as { messages: unknown }).messages, [
        { role: "user", content: [{ type: "image_url", image_url: { url: "https://x.test/a.png" } }] },
        {
          role: "assistant",
          content: null,
          tool_calls: [{ id: "a", type: "function", function: { name: "add", arguments: "{}" } }]
        }
      ])
    })
  )

  it.effect("sends a reasoning model its own limits and no sampling options (W-18)", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf(
        "openai",
        request({
          model: Model.make("gpt-5"),
          generation: { temperature: 0, topP: 1, maxTokens: 9, seed: 4, thinking: { effort: "low" } }
        })
      )
      assert.deepInclude(body as object, { max_completion_tokens: 9, reasoning_effort: "low", seed: 4 })
      assert.notProperty(body, "max_tokens")
      assert.notProperty(body, "temperature")
      assert.notProperty(body, "top_p")
    })
  )

  it.effect("prefers its own stream options over the default ones", () =>
    Effect.gen(function* () {
      const asked = (stream_options: Content.Json) =>
        bodyOf("openai", request({ generation: { extra: { openai: { stream_options } } } }))
      assert.deepInclude(yield* asked({ include_obfuscation: false }), {
        stream_options: { include_usage: true, include_obfuscation: false }
      })
      assert.deepInclude(yield* asked(null), { stream_options: null })
    })
  )

  it.effect("uses text forms of contents that no vendor supports (CP-7)", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf(
        "openai",
        request({
          messages: [
            message(
              "user",
              Content.data({ a: 1 }),
              Content.error("Oops", "no"),
              Content.uiResource("ui://x", { text: "shown" }),
              { type: "unknown", wireType: "hologram", raw: { type: "hologram" } }
            )
          ]
        })
      )
      const [{ content }] = (body as { messages: [{ content: ReadonlyArray<{ text: string }> }] }).messages
      assert.deepStrictEqual(
        content.map((part) => part.text),
        ['{"a":1}', "[Oops]: no", "shown", "[UnknownBlock: hologram]"]
      )
    })
  )
})

describe("a reply to OpenAiProvider", () => {
  it.effect("reads the transcript of an audio reply as its text", () =>
    Effect.gen(function* () {
      const audio = (audio: object) => delta({ content: null, audio })
      const { text } = yield* reading(
        audio({ id: "a", transcript: "Hel" }),
        audio({ transcript: "lo" }),
        audio({ data: "AAAA" }),
        { choices: [{ index: 0, message: { audio: { transcript: "Hello" } }, finish_reason: "stop" }] },
        "[DONE]"
      )
      assert.strictEqual(text, "Hello")
    })
  )

  it.effect("emits a refusal as text and finishes it as content-filter", () =>
    Effect.gen(function* () {
      const { parts, text } = yield* reading(delta({ refusal: "I will not." }), delta({}, "stop"), "[DONE]")
      assert.strictEqual(text, "I will not.")
      assert.strictEqual(finishOf(parts)?.reason, "content-filter")
    })
  )

  it.effect("reads usage from the last chunk, cached and reasoning tokens included", () =>
    Effect.gen(function* () {
      const { parts } = yield* reading(
        delta({ content: "x" }),
        delta({}, "length"),
        {
          choices: [],
          usage: {
            prompt_tokens: 10,
            completion_tokens: 5,
            prompt_tokens_details: { cached_tokens: 4 },
            completion_tokens_details: { reasoning_tokens: 2 }
          }
        },
        "[DONE]"
      )
      assert.strictEqual(finishOf(parts)?.reason, "length")
      assert.deepStrictEqual(finishOf(parts)?.usage, {
        inputTokens: { total: 10, cacheRead: 4, uncached: 6 },
        outputTokens: { total: 5, reasoning: 2 }
      })
    })
  )

  it.effect("reads usage in the last choice, and cached tokens next to the prompt, as Moonshot sends them (AC-6)", () =>
    Effect.gen(function* () {
      const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15, cached_tokens: 4 }
      const { parts } = yield* reading(delta({ content: "x" }), {
        choices: [{ index: 0, delta: {}, finish_reason: "stop", usage }]
      })
      assert.deepStrictEqual(finishOf(parts)?.usage, {
        inputTokens: { total: 10, cacheRead: 4, uncached: 6 },
        outputTokens: { total: 5, reasoning: undefined }
      })
    })
  )

  it.effect("reports the id and the model of a reply whose first chunk has none, as from Azure's", () =>
    Effect.gen(function* () {
      const { parts } = yield* reading(
        { choices: [], id: "", model: "", prompt_filter_results: [{ prompt_index: 0 }] },
        { id: "c1", model: "gpt", ...delta({ content: "x" }) },
        { id: "c1", model: "gpt", ...delta({}, "stop") }
      )
      assert.deepStrictEqual(
        parts.filter((part) => part.type === "response-metadata"),
        [{ type: "response-metadata", id: "c1", modelId: "gpt" }]
      )
    })
  )

  it.effect("reports no implausible counts: a cache larger than its prompt, or a prompt without a count", () =>
    Effect.gen(function* () {
      for (const usage of [
        { prompt_tokens: 3, prompt_tokens_details: { cached_tokens: 4 } },
        { prompt_tokens_details: { cached_tokens: 4 } },
        { prompt_tokens: 3 }
      ]) {
        const { parts } = yield* reading(delta({ content: "x" }, "stop"), { choices: [], usage })
        assert.isUndefined(finishOf(parts)?.usage.inputTokens.uncached)
      }
    })
  )

  it.effect("counts reasoning as output even if it is reported in addition to the completion, as by xAI", () =>
    Effect.gen(function* () {
      const counted = (total_tokens: number) =>
        Effect.map(
          reading(delta({ content: "x" }, "stop"), {
            choices: [],
            usage: {
              prompt_tokens: 168,
              completion_tokens: 342,
              total_tokens,
              completion_tokens_details: { reasoning_tokens: 128 }
            }
          }),
          ({ parts }) => finishOf(parts)?.usage.outputTokens
        )
      assert.deepStrictEqual(yield* counted(168 + 342 + 128), { total: 470, reasoning: 128 })
      assert.deepStrictEqual(yield* counted(168 + 342), { total: 342, reasoning: 128 })
    })
  )

  it.effect("reads only the first of several answers, however they are mixed (BP-109)", () =>
    Effect.gen(function* () {
      const other = (delta: object, finish_reason: string | null = null) => ({
        choices: [{ index: 1, delta, finish_reason }]
      })
      const { parts } = yield* reading(
        other({ content: "no" }),
        delta({ content: "y" }),
        other({}, "length"),
        { choices: [...other({ content: "no" }).choices, ...delta({ content: "es" }).choices] },
        delta({}, "stop"),
        "[DONE]"
      )
      assert.deepStrictEqual(
        parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : [])),
        ["y", "es"]
      )
      assert.strictEqual(finishOf(parts)?.reason, "stop")
    })
  )

  it.effect(
    "reads a server that streams messages instead of deltas, and skips a repetition of the whole at the end",
    () =>
      Effect.gen(function* () {
        const piece = (content: string, finish_reason: string | null = null) => ({
          choices: [{ index: 0, message: { role: "assistant", content }, finish_reason }]
        })
        assert.strictEqual((yield* reading(piece("Hel"), piece("lo", "stop"), "[DONE]")).text, "Hello")
        const whole = { object: "chat.completion", ...piece("Hello", "stop") }
        assert.strictEqual((yield* reading(delta({ content: "Hello" }), whole, "[DONE]")).text, "Hello")
        assert.strictEqual((yield* reading(whole, "[DONE]")).text, "Hello")
      })
  )

  it.effect("reads a message after or beside an empty delta", () =>
    Effect.gen(function* () {
      const message = { role: "assistant", content: "Hello" }
      for (const nothing of [{}, { role: "assistant" }, { content: "" }, { content: null, tool_calls: [] }]) {
        const behind = { choices: [{ index: 0, message, finish_reason: "stop" }] }
        assert.strictEqual((yield* reading(delta(nothing), behind, "[DONE]")).text, "Hello")
        const beside = { choices: [{ index: 0, delta: nothing, message, finish_reason: "stop" }] }
        assert.strictEqual((yield* reading(beside, "[DONE]")).text, "Hello")
      }
    })
  )

  it.effect("ignores a message that repeats the text, thinking or calls of earlier deltas", () =>
    Effect.gen(function* () {
      const call = { index: 0, id: "x", function: { name: "a", arguments: "{}" } }
      for (const said of [{ content: "Hello" }, { reasoning: "Hm" }, { refusal: "No" }, { tool_calls: [call] }]) {
        const whole = { choices: [{ index: 0, message: said, finish_reason: "stop" }] }
        const once = yield* reading(delta(said, "stop"), "[DONE]")
        assert.deepStrictEqual((yield* reading(delta(said), whole, "[DONE]")).parts, once.parts)
      }
    })
  )

  for (const [reason, ...words] of [
    ["stop", "stop", "STOP", "eos", "eos_token", "end_turn", "stop_sequence"],
    ["length", "length", "max_tokens", "MAX_TOKENS", "model_length"],
    ["tool-calls", "tool_calls", "tool_use", "function_call"],
    ["content-filter", "content_filter"],
    ["error", "error"],
    ["other", "insufficient_system_resource"]
  ] as const) {
    it.effect(`reads ${words.join(", ")} as ${reason} (AC-4)`, () =>
      Effect.gen(function* () {
        for (const word of words) {
          const { parts } = yield* reading(delta({ content: "x" }), delta({}, word), "[DONE]")
          assert.strictEqual(finishOf(parts)?.reason, reason)
        }
      })
    )
  }

  it.effect("finishes a reply without a finish reason as unknown (R-10)", () =>
    Effect.gen(function* () {
      const { parts } = yield* reading(delta({ content: "x" }), "[DONE]")
      assert.strictEqual(finishOf(parts)?.reason, "unknown")
      const whole = JSON.stringify({ choices: [{ index: 0, message: { content: "x" } }] })
      const http = stub(() => Effect.succeed(new Response(whole)))
      const provider = yield* Effect.provide(vendor("openai")({}), http.layer)
      assert.strictEqual(finishOf((yield* read(provider.stream(request()))).parts)?.reason, "unknown")
    })
  )

  it.effect("ignores numbers that are not counts and fields of the wrong type", () =>
    Effect.gen(function* () {
      const { parts, text } = yield* reading(
        { choices: "none" },
        { choices: [null] },
        { choices: [{ delta: { content: 7, tool_calls: "x", reasoning_content: [] } }] },
        { ...delta({ content: "x" }, "stop"), usage: { prompt_tokens: -1, completion_tokens: 1.5 } },
        "[DONE]"
      )
      assert.strictEqual(text, "x")
      assert.deepStrictEqual(finishOf(parts)?.usage.inputTokens.total, undefined)
      assert.deepStrictEqual(finishOf(parts)?.usage.outputTokens.total, undefined)
    })
  )

  for (const [error, reason] of [
    [{ code: "context_length_exceeded" }, "context_length"],
    [{ type: "insufficient_quota" }, "quota_exhausted"],
    [{ code: 429 }, "rate_limited"],
    [{ message: "x", code: "429" }, "rate_limited"],
    [{ type: "overloaded_error" }, "overloaded"],
    [{ type: "exceeded_current_quota_error" }, "quota_exhausted"],
    [{ code: "rate_limit_exceeded" }, "rate_limited"],
    [{ code: "odd_code", type: "odd_type" }, "server_error"],
    [{ message: "x" }, "server_error"]
  ] as const) {
    it.effect(`reports an error in the stream (${JSON.stringify(error)}) as ${reason} (BP-110)`, () =>
      Effect.map(Effect.flip(reading(delta({ content: "x" }), { error })), (failed) => {
        assert.strictEqual(failed.reason, reason)
        if ("code" in error && "type" in error) assert.include(failed.message, error.code)
      })
    )
  }
})
