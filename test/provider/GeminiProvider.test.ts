import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Content from "../../src/Content.ts"
import * as Model from "../../src/Model.ts"
import { GeminiProvider } from "../../src/provider/index.ts"
import {
  attachments,
  bodyOf,
  finishOf,
  key,
  message,
  read,
  readingOf,
  request,
  serverSent,
  stub,
  tool,
  vendor
} from "../support/provider.ts"

const reading = (...list: ReadonlyArray<object>) => readingOf("google", list, "\r\n")

const all = Model.gemini25Pro

describe("GeminiProvider", () => {
  it.effect("writes contents, instructions and settings its own way", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf(
        "google",
        request({
          model: all,
          tools: [tool],
          messages: [message("system", "A"), message("system", "B"), attachments, message("assistant", "b")],
          generation: { temperature: 0, topP: 1, maxTokens: 5, seed: 2, stopSequences: ["x"], thinking: { budget: 8 } }
        })
      )
      assert.deepStrictEqual(body, {
        systemInstruction: { parts: [{ text: "A" }, { text: "B" }] },
        contents: [
          {
            role: "user",
            parts: [
              { inlineData: { mimeType: "image/png", data: "AQID" } },
              { fileData: { mimeType: "application/pdf", fileUri: "https://x.test/a.pdf" } }
            ]
          },
          { role: "model", parts: [{ text: "b" }] },
          { role: "user", parts: [{ text: "Continue." }] }
        ],
        generationConfig: {
          temperature: 0,
          topP: 1,
          maxOutputTokens: 5,
          stopSequences: ["x"],
          seed: 2,
          thinkingConfig: { includeThoughts: true, thinkingBudget: 8 }
        },
        tools: [
          { functionDeclarations: [{ name: "add", description: "Adds", parametersJsonSchema: { type: "object" } }] }
        ]
      })
    })
  )

  it.effect("prefers each of its own settings over the common one", () =>
    Effect.gen(function* () {
      const extra = {
        google: { generationConfig: { topK: 5, seed: 2 } },
        "google-interactions": { generation_config: { top_k: 5, seed: 2 } }
      }
      const ask = request({ generation: { maxTokens: 9, seed: 1, extra } })
      assert.deepInclude(yield* bodyOf("google", ask), {
        generationConfig: { maxOutputTokens: 9, topK: 5, seed: 2 }
      })
      assert.deepInclude(yield* bodyOf("google-interactions", ask), {
        generation_config: { max_output_tokens: 9, top_k: 5, seed: 2 }
      })
    })
  )

  it.effect(
    "prefers its own thinking settings over the common ones, of which a model accepts a budget or a level",
    () =>
      Effect.gen(function* () {
        const thinking = (own: Content.Json) =>
          Effect.map(
            bodyOf("google", request({ generation: { thinking: { budget: 8 }, extra: extraOf(own) } })),
            (body) => (body as { generationConfig: { thinkingConfig: unknown } }).generationConfig.thinkingConfig
          )
        const extraOf = (thinkingConfig: Content.Json) => ({ google: { generationConfig: { thinkingConfig } } })
        assert.deepStrictEqual(yield* thinking({ includeThoughts: false }), {
          includeThoughts: false,
          thinkingBudget: 8
        })
        assert.deepStrictEqual(yield* thinking({ thinkingLevel: "low" }), {
          includeThoughts: true,
          thinkingLevel: "low"
        })
      })
  )

  it.effect("marks a call of another model as unsigned, from Gemini 3 on", () =>
    Effect.gen(function* () {
      const origin = { provider: "google", model: "gemini-3-pro-preview" }
      const signature = { signature: "sig", callId: "b1" }
      const signed = (model: string) =>
        Effect.map(
          bodyOf(
            "google",
            request({
              model: Model.make(model),
              tools: [tool],
              messages: [
                message("user", "hi"),
                message("assistant", Content.toolUse("a1", "add", {}), Content.toolUse("a2", "add", {})),
                message("tool", Content.toolResult("a1", "1"), Content.toolResult("a2", "2")),
                message("assistant", Content.thinking("", { origin, signature }), Content.toolUse("b1", "add", {})),
                message("tool", Content.toolResult("b1", "3"))
              ]
            })
          ),
          (body) =>
            [
              ...JSON.stringify(body).matchAll(
                /"id":"(\w+)","name":"add","args":\{\}\}(?:,"thoughtSignature":"(\w+)")?/g
              )
            ].map(([, id, signature]) => [id, signature])
        )
      const none = "skip_thought_signature_validator"
      assert.deepStrictEqual(yield* signed(origin.model), [
        ["a1", none],
        ["a2", undefined],
        ["b1", "sig"]
      ])
      // What one model signed is nothing to another.
      for (const other of ["gemini-3.1-pro", "gemini-flash-latest", "gemini-4-argon"]) {
        assert.deepStrictEqual(yield* signed(other), [
          ["a1", none],
          ["a2", undefined],
          ["b1", none]
        ])
      }
      for (const other of ["gemini-2.5-flash", "gemini-1.5-pro", "gemma-3-27b-it"]) {
        assert.deepStrictEqual(yield* signed(other), [
          ["a1", undefined],
          ["a2", undefined],
          ["b1", undefined]
        ])
      }
    })
  )

  it.effect("sends the signature of a call back with that call", () =>
    Effect.gen(function* () {
      const call = { functionCall: { name: "add", args: { x: 1 } }, thoughtSignature: "sig" }
      const { asked, parts } = yield* reading({
        candidates: [{ content: { parts: [call] }, finishReason: "STOP" }]
      })
      assert.strictEqual(
        asked?.url,
        "https://generativelanguage.googleapis.com/v1beta/models/m-text:streamGenerateContent?alt=sse"
      )
      assert.strictEqual(asked?.headers["x-goog-api-key"], "sk-SECRET-0123456789abcdef")
      const signed = parts.find((part) => part.type === "reasoning-end")?.metadata?.["google"]
      assert.deepStrictEqual(signed, { signature: "sig", callId: "call_0" })

      const origin = { provider: "google", model: "m-text" }
      const body = yield* bodyOf(
        "google",
        request({
          tools: [tool],
          messages: [
            message("user", "add"),
            message(
              "assistant",
              Content.thinking("", { origin, signature: signed ?? null }),
              Content.toolUse("call_0", "add", { x: 1 }),
              Content.toolUse("call_9", "add", { x: 2 })
            ),
            message("tool", Content.toolResult("call_0", "2")),
            message("tool", Content.toolResult("call_9", "boom", { isError: true }))
          ]
        })
      )
      assert.deepStrictEqual((body as { contents: unknown }).contents, [
        { role: "user", parts: [{ text: "add" }] },
        {
          role: "model",
          parts: [
            { functionCall: { id: "call_0", name: "add", args: { x: 1 } }, thoughtSignature: "sig" },
            { functionCall: { id: "call_9", name: "add", args: { x: 2 } } }
          ]
        },
        {
          role: "user",
          parts: [
            { functionResponse: { id: "call_0", name: "add", response: { output: "2" } } },
            { functionResponse: { id: "call_9", name: "add", response: { error: "boom" } } }
          ]
        }
      ])
    })
  )

  for (const [given, expected] of [
    ["STOP", "stop"],
    ["MAX_TOKENS", "length"],
    ["SAFETY", "content-filter"],
    ["RECITATION", "content-filter"],
    ["BLOCKLIST", "content-filter"],
    ["PROHIBITED_CONTENT", "content-filter"],
    ["SPII", "content-filter"],
    ["LANGUAGE", "content-filter"],
    ["IMAGE_SAFETY", "content-filter"],
    ["IMAGE_PROHIBITED_CONTENT", "content-filter"],
    ["IMAGE_RECITATION", "content-filter"],
    ["MALFORMED_FUNCTION_CALL", "error"],
    ["UNEXPECTED_TOOL_CALL", "error"],
    ["TOO_MANY_TOOL_CALLS", "error"],
    ["OTHER", "other"]
  ] as const) {
    it.effect(`${given} is ${expected} (AC-4)`, () =>
      Effect.map(reading({ candidates: [{ content: { parts: [{ text: "x" }] }, finishReason: given }] }), ({ parts }) =>
        assert.strictEqual(finishOf(parts)?.reason, expected)
      )
    )
  }

  it.effect("keeps the ids of its calls, and emits each call before its signature", () =>
    Effect.gen(function* () {
      const { parts } = yield* reading({
        candidates: [
          {
            content: {
              parts: [
                { functionCall: { id: "fc_1", name: "add", args: { x: 1 } }, thoughtSignature: "sig" },
                { functionCall: { id: "fc_2", name: null, args: null } }
              ]
            },
            finishReason: "STOP"
          }
        ]
      })
      assert.deepStrictEqual(
        parts.filter((part) => part.type === "tool-call" || part.type === "reasoning-end"),
        [
          { type: "tool-call", id: "fc_1", name: "add", params: { x: 1 } },
          { type: "reasoning-end", id: "0", metadata: { google: { signature: "sig", callId: "fc_1" } } },
          { type: "tool-call", id: "fc_2", name: "", params: {} }
        ]
      )
      assert.strictEqual(parts.filter((part) => part.type === "tool-params-start").length, 2)
    })
  )

  it.effect("emits an image that the model made, but no image of its thinking", () =>
    Effect.gen(function* () {
      const inlineData = { mimeType: "image/png", data: "AQID" }
      const parts = [{ text: "Here: " }, { inlineData, thought: true }, { inlineData }]
      const { parts: read, text } = yield* reading({ candidates: [{ content: { parts }, finishReason: "STOP" }] })
      assert.strictEqual(text, "Here: ")
      const file = { type: "file", mediaType: "image/png", data: "AQID" } as const
      assert.deepStrictEqual(
        read.filter(({ type }) => type === "file"),
        [file]
      )
    })
  )

  it.effect("ignores an error that is null", () =>
    Effect.map(
      reading({ error: null, candidates: [{ content: { parts: [{ text: "x" }] }, finishReason: "STOP" }] }),
      ({ text }) => assert.strictEqual(text, "x")
    )
  )

  it.effect("reports a body without a finish reason as truncated", () =>
    Effect.map(Effect.flip(reading({ candidates: [{ content: { parts: [{ text: "x" }] } }] })), (error) =>
      assert.strictEqual(error.reason, "incomplete")
    )
  )

  it.effect("reads an error outside the events of a stream, wherever the network cuts it (BP-110)", () =>
    Effect.gen(function* () {
      const said = `data: ${JSON.stringify({ candidates: [{ content: { parts: [{ text: "x" }] } }] })}\n\n`
      const error = { code: 429, status: "RESOURCE_EXHAUSTED" }
      for (const end of [JSON.stringify({ error }, undefined, 1), JSON.stringify([{ error }])]) {
        const bytes = new TextEncoder().encode(said + end)
        for (let cut = 1; cut < bytes.length; cut++) {
          const body = () =>
            new ReadableStream({
              start: (controller) => {
                controller.enqueue(bytes.slice(0, cut))
                controller.enqueue(bytes.slice(cut))
                controller.close()
              }
            })
          const http = stub(() => Effect.sync(() => new Response(body())))
          const provider = yield* Effect.provide(vendor("google")({}), http.layer)
          const failed = yield* Effect.flip(read(provider.stream(request())))
          assert.strictEqual(failed.reason, "rate_limited")
        }
      }
    })
  )

  it.effect("ignores a line that is neither an event nor an error", () =>
    Effect.gen(function* () {
      const said = JSON.stringify({ candidates: [{ content: { parts: [{ text: "x" }] }, finishReason: "STOP" }] })
      const http = stub(() => Effect.succeed(new Response(`: hi\n\n{"queued":1}\n\ndata: ${said}\n\n{"took":1}`)))
      const provider = yield* Effect.provide(vendor("google")({}), http.layer)
      assert.strictEqual((yield* read(provider.stream(request()))).text, "x")
    })
  )

  it.effect("separates thinking from text", () =>
    Effect.gen(function* () {
      const content = { parts: [{ text: "Hm.", thought: true }, { text: "So." }] }
      const { parts, text } = yield* reading({ candidates: [{ content, finishReason: "STOP" }] })
      assert.strictEqual(text, "So.")
      assert.deepInclude(parts, { type: "reasoning-delta", id: "0", delta: "Hm." })
    })
  )

  it.effect("sends its own headers in addition to its key", () =>
    Effect.gen(function* () {
      const http = stub(() => Effect.succeed(serverSent([{ candidates: [{ finishReason: "STOP" }] }], "\r\n")))
      const headers = { "x-team": "a", "x-goog-api-key": "other" }
      const provider = yield* Effect.provide(GeminiProvider.make({ apiKey: key, headers }), http.layer)
      yield* read(provider.stream(request()))
      assert.deepInclude(http.asked[0]?.headers, { "x-team": "a", "x-goog-api-key": "sk-SECRET-0123456789abcdef" })
    })
  )

  for (const [status, reason] of [
    ["UNAUTHENTICATED", "authentication"],
    ["PERMISSION_DENIED", "permission"],
    ["NOT_FOUND", "not_found"],
    ["INVALID_ARGUMENT", "invalid_request"],
    ["FAILED_PRECONDITION", "invalid_request"],
    ["RESOURCE_EXHAUSTED", "rate_limited"],
    ["UNAVAILABLE", "overloaded"],
    ["INTERNAL", "server_error"],
    ["DEADLINE_EXCEEDED", "timeout"],
    ["CANCELLED", "server_error"]
  ] as const) {
    it.effect(`${status} in the stream is ${reason} (BP-110)`, () =>
      Effect.gen(function* () {
        const said = { candidates: [{ content: { parts: [{ text: "x" }] } }] }
        const error = yield* Effect.flip(reading(said, { error: { status, message: "x" } }))
        assert.strictEqual(error.reason, reason)
      })
    )
  }

  it.effect("recognizes a bad key by its detail, whatever the status", () =>
    Effect.gen(function* () {
      const error = { code: 400, status: "INVALID_ARGUMENT", details: [{ reason: "API_KEY_INVALID" }] }
      const http = stub(() => Effect.succeed(new Response(JSON.stringify([{ error }]), { status: 400 })))
      const provider = yield* Effect.provide(vendor("google")({}), http.layer)
      const failed = yield* Effect.flip(read(provider.stream(request())))
      assert.strictEqual(failed.reason, "authentication")
    })
  )
})

describe("Google's refusals", () => {
  for (const name of ["google", "google-interactions"]) {
    it.effect(`${name}: recognizes a prompt that is too long by its message`, () =>
      Effect.gen(function* () {
        const message = "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."
        const error = { code: 400, status: "INVALID_ARGUMENT", message }
        const http = stub(() => Effect.succeed(new Response(JSON.stringify({ error }), { status: 400 })))
        const provider = yield* Effect.provide(vendor(name)({}), http.layer)
        const failed = yield* Effect.flip(read(provider.stream(request())))
        assert.strictEqual(failed.reason, "context_length")
        assert.notInclude(failed.message, "1048576")
      })
    )
  }
})
