import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Content from "../../src/Content.ts"
import * as Model from "../../src/Model.ts"
import type { Read } from "../support/provider.ts"
import {
  attachments,
  bodyOf,
  finishOf,
  message,
  read,
  readingOf,
  request,
  stub,
  tool,
  vendor
} from "../support/provider.ts"

const reading = (...list: ReadonlyArray<object>) => readingOf("google-interactions", list, "\r\n")

const all = Model.gemini25Pro

describe("GeminiInteractionsProvider", () => {
  it.effect("writes a conversation as steps and stores nothing", () =>
    Effect.gen(function* () {
      const origin = { provider: "google-interactions", model: all.id }
      const body = yield* bodyOf(
        "google-interactions",
        request({
          model: all,
          tools: [tool],
          messages: [
            message("system", "S"),
            attachments,
            message(
              "assistant",
              Content.thinking("Hm.", { origin, signature: { signature: "sig" } }),
              Content.thinking("", { origin, signature: { signature: "call-sig", callId: "a" } }),
              "So.",
              Content.toolUse("a", "add", { x: 1 })
            ),
            message("tool", Content.toolResult("a", "2"))
          ],
          generation: {
            temperature: 0,
            topP: 1,
            maxTokens: 5,
            stopSequences: ["x"],
            seed: 2,
            thinking: { effort: "low" }
          }
        })
      )
      assert.deepStrictEqual(body, {
        model: all.id,
        stream: true,
        store: false,
        system_instruction: "S",
        generation_config: {
          temperature: 0,
          top_p: 1,
          max_output_tokens: 5,
          stop_sequences: ["x"],
          seed: 2,
          thinking_level: "low",
          thinking_summaries: "auto"
        },
        tools: [{ type: "function", name: "add", description: "Adds", parameters: { type: "object" } }],
        input: [
          {
            type: "user_input",
            content: [
              { type: "image", mime_type: "image/png", data: "AQID" },
              { type: "document", mime_type: "application/pdf", uri: "https://x.test/a.pdf" }
            ]
          },
          { type: "thought", signature: "sig", summary: [{ type: "text", text: "Hm." }] },
          { type: "model_output", content: [{ type: "text", text: "So." }] },
          { type: "function_call", id: "a", name: "add", arguments: { x: 1 }, signature: "call-sig" },
          { type: "function_result", call_id: "a", name: "add", result: [{ type: "text", text: "2" }] }
        ]
      })
    })
  )

  for (const [status, expected] of [
    ["completed", "stop"],
    ["incomplete", "length"],
    ["budget_exceeded", "length"],
    ["requires_action", "tool-calls"],
    ["requires_continuation", "pause"],
    ["cancelled", "other"]
  ] as const) {
    it.effect(`${status} is ${expected}`, () =>
      Effect.map(
        reading(
          {
            event_type: "step.start",
            index: 0,
            step: { type: "model_output", content: [{ type: "text", text: "x" }] }
          },
          { event_type: "interaction.completed", interaction: { status } }
        ),
        ({ parts, text }) => {
          assert.strictEqual(text, "x")
          assert.strictEqual(finishOf(parts)?.reason, expected)
        }
      )
    )
  }

  it.effect("a failed interaction and an error event fail the call", () =>
    Effect.gen(function* () {
      const start = { event_type: "step.start", index: 0, step: { type: "text", text: "x" } }
      for (const last of [
        { event_type: "interaction.completed", interaction: { status: "failed", error: { status: "UNAVAILABLE" } } },
        { event_type: "error", error: { code: "UNAVAILABLE", message: "x" } },
        { event_type: "interaction.status_update", status: "failed", error: { status: "UNAVAILABLE" } }
      ]) {
        const error = yield* Effect.flip(reading(start, last))
        assert.strictEqual(error.reason, "overloaded")
      }
    })
  )

  it.effect("reads the arguments of a call from an object, a text or pieces", () =>
    Effect.gen(function* () {
      const start = (step: object) => ({ event_type: "step.start", index: 0, step: { type: "function_call", ...step } })
      const end = { event_type: "interaction.completed", error: null, interaction: { status: "requires_action" } }
      const piece = { event_type: "step.delta", index: 0, delta: { type: "arguments_delta", arguments: '{"a":1}' } }
      for (const given of [
        [start({ name: "add", arguments: { a: 1 } })],
        [start({ name: "add", arguments: '{"a":1}' })],
        [start({ name: "add", arguments: {} }), piece]
      ]) {
        const { parts } = yield* reading({ event_type: "x", error: null }, ...given, end)
        const calls = parts.flatMap((part) => (part.type === "tool-call" ? [part.params] : []))
        assert.deepStrictEqual(calls, [{ a: 1 }])
      }
    })
  )

  it.effect("emits a medium that the model made once, in whatever form it arrives", () =>
    Effect.gen(function* () {
      const png = { type: "image", mime_type: "image/png", data: "AQID" }
      const wav = { type: "audio", mime_type: "audio/wav", data: "AQID" }
      const end = { event_type: "interaction.completed", interaction: { status: "completed" } }
      const files = ({ parts }: Read) =>
        parts.flatMap((part) => (part.type === "file" ? [[part.mediaType, part.data]] : []))
      const streamed = yield* reading(
        { event_type: "step.delta", index: 0, delta: { type: "text", text: "Here: " } },
        { event_type: "step.delta", index: 0, delta: png },
        { event_type: "step.delta", index: 1, delta: wav },
        { event_type: "step.delta", index: 1, delta: wav },
        { event_type: "step.delta", index: 1, delta: { type: "news", mime_type: "image/png" } },
        end
      )
      assert.strictEqual(streamed.text, "Here: ")
      assert.deepStrictEqual(files(streamed), [
        ["image/png", "AQID"],
        ["audio/wav", "AQIDAQID"]
      ])
      const step = { type: "model_output", content: [png, { type: "text", text: " and " }, png, { type: "news" }] }
      const whole = yield* reading({ event_type: "step.start", index: 0, step }, end)
      assert.strictEqual(whole.text, " and ")
      assert.deepStrictEqual(files(whole), [
        ["image/png", "AQID"],
        ["image/png", "AQID"]
      ])
      const announced = yield* reading(
        { event_type: "step.start", index: 0, step: { type: "model_output", content: [{ ...png, data: "" }] } },
        { event_type: "step.delta", index: 0, delta: png },
        { event_type: "step.delta", index: 0, delta: { type: "image", data: "AQID" } },
        { event_type: "step.start", index: 1, step: png },
        end
      )
      assert.deepStrictEqual(files(announced), [
        ["image/png", "AQIDAQID"],
        ["image/png", "AQID"]
      ])
      const empty = yield* reading({ event_type: "step.start", index: 0, step: { ...png, data: "" } }, end)
      assert.strictEqual(empty.text, "[image unavailable: image/png]")
    })
  )

  it.effect("reads a whole interaction", () =>
    Effect.gen(function* () {
      const whole = {
        id: "i1",
        status: "completed",
        steps: [
          { type: "user_input", content: [{ type: "text", text: "So?" }] },
          { type: "thought", signature: "sig" },
          { type: "model_output", content: [{ type: "text", text: "So." }] }
        ],
        usage: { total_input_tokens: 2, total_output_tokens: 3, total_thought_tokens: 4 }
      }
      const http = stub(() => Effect.succeed(new Response(JSON.stringify(whole))))
      const provider = yield* Effect.provide(vendor("google-interactions")({}), http.layer)
      const { parts, text } = yield* read(provider.stream(request()))
      assert.strictEqual(text, "So.")
      assert.strictEqual(finishOf(parts)?.usage.outputTokens.total, 7)
    })
  )
})
