import type { LanguageModelV2, LanguageModelV3, LanguageModelV4 } from "@ai-sdk/provider"
import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Deferred, Effect, Fiber, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Content, Limits, Model, ModelRegistry, Skill } from "kernai"
import { AiSdkProvider, HttpModelRegistry } from "kernai/provider"
import { installed } from "../support/modules.ts"
import { message, read, request, stub } from "../support/provider.ts"
import { kernel, of } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"

type Parts = ReadonlyArray<{ readonly type: string; readonly [key: string]: unknown }>

const streamed = (parts: Parts) => ({
  stream: new ReadableStream<never>({
    start(controller) {
      for (const part of parts) controller.enqueue(part as never)
      controller.close()
    }
  })
})

interface Asked {
  readonly [option: string]: unknown
  readonly prompt: ReadonlyArray<{
    readonly role: string
    readonly content: ReadonlyArray<{ readonly output: unknown }>
  }>
}

/** A model of one version that says these parts, one reply for each call, and keeps what it was asked. */
const scripted = (version: "v2" | "v3" | "v4", ...replies: ReadonlyArray<Parts | Error>) => {
  const asked: Array<Asked> = []
  const model = {
    specificationVersion: version,
    provider: "acme",
    modelId: "m",
    supportedUrls: { "image/*": [/^https:\/\/images\.example\//] },
    doGenerate: () => Promise.reject(new Error("only streamed")),
    doStream: async (options: object) => {
      asked.push({ prompt: [], ...options })
      const reply = replies[asked.length - 1]
      if (reply instanceof Error) throw reply
      return streamed(reply ?? [])
    }
  }
  return { model, asked }
}

const endings = {
  v2: {
    type: "finish",
    finishReason: "stop",
    usage: { inputTokens: 10, outputTokens: 4, totalTokens: 14, reasoningTokens: 2, cachedInputTokens: 3 }
  },
  v3: finishOf({ total: 10, noCache: 7, cacheRead: 3, cacheWrite: 0 }),
  v4: finishOf({ total: 10, noCache: 7, cacheRead: 3, cacheWrite: 0 })
} as const

function finishOf(inputTokens: object) {
  return {
    type: "finish",
    finishReason: { unified: "stop", raw: "end_turn" },
    usage: { inputTokens, outputTokens: { total: 4, text: 2, reasoning: 2 } }
  }
}

const say = (delta: string) => ({ type: "text-delta", id: "0", delta })

const add = Skill.make("add", {
  description: "Adds two numbers",
  input: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
  effects: "read",
  execute: ({ a, b }) => Effect.succeed(a + b)
})

/** What an API of the AI SDK throws. */
const apiError = (statusCode: number, more: object = {}) =>
  Object.assign(new Error("Bearer sk-SECRET-0123456789"), { name: "AI_APICallError", statusCode, ...more })

describe("AiSdkProvider", () => {
  it("takes the models of every version of the specification", () => {
    const providers: ReadonlyArray<(model: LanguageModelV2 | LanguageModelV3 | LanguageModelV4) => unknown> = [
      (model) => AiSdkProvider.fromModel(model)
    ]
    assert.lengthOf(providers, 1)
  })

  for (const version of ["v2", "v3", "v4"] as const) {
    it.effect(`runs an agent in blocks on a model of ${version}, with its usage`, () =>
      Effect.gen(function* () {
        const { asked, model } = scripted(
          version,
          [
            { type: "stream-start", warnings: [] },
            { type: "response-metadata", id: "r", modelId: "m-1" },
            { type: "text-start", id: "0" },
            say('<block type="command" name="add">{"a":1,"b":2}</block>'),
            { type: "text-end", id: "0" },
            endings[version]
          ],
          [say('<block type="final">3</block>'), endings[version]]
        )
        const agent = Agent.make({
          instructions: "Add.",
          model: "m",
          skills: "all",
          generation: { temperature: 0, maxTokens: 99, stopSequences: ["!"], extra: { acme: { acme: { deep: true } } } }
        })
        const run = yield* told(agent, "1 + 2", { provider: AiSdkProvider.fromModel(model) })
        assert.strictEqual(run.text, "3")
        const { abortSignal: _, prompt, ...options } = asked[1] ?? { prompt: [] }
        assert.deepStrictEqual(
          prompt.map((message) => message.role),
          ["system", "user", "assistant", "user"]
        )
        assert.deepStrictEqual(options, {
          temperature: 0,
          maxOutputTokens: 99,
          stopSequences: ["!"],
          providerOptions: { acme: { deep: true } }
        })
        assert.deepStrictEqual(of(run.events, "model_completed")[0]?.usage, {
          inputTokens: 10,
          cachedTokens: 3,
          outputTokens: 4,
          reasoningTokens: 2
        })
      }).pipe(Effect.provide(kernel(add)))
    )

    it.effect(`runs an agent in native calls on a model of ${version}, parallel ones too`, () =>
      Effect.gen(function* () {
        const { asked, model } = scripted(
          version,
          [
            { type: "reasoning-start", id: "r", providerMetadata: { acme: { item: "i" }, seen: { a: 1 } } },
            { type: "reasoning-delta", id: "r", delta: "hm" },
            { type: "reasoning-end", id: "r", providerMetadata: { acme: { signature: "s" }, seen: "b" } },
            { type: "tool-input-start", id: "a", toolName: "add" },
            { type: "tool-input-delta", id: "a", delta: '{"a":1,' },
            { type: "tool-input-delta", id: "a", delta: '"b":1}' },
            { type: "tool-input-end", id: "a" },
            {
              type: "tool-call",
              toolCallId: "a",
              toolName: "add",
              input: '{"a":1,"b":1}',
              providerMetadata: { acme: { signed: true } }
            },
            { type: "tool-call", toolCallId: "b", toolName: "add", input: '{"a":2,"b":2}' },
            endings[version]
          ],
          [say("2 and 4"), endings[version]]
        )
        const agent = Agent.make({ instructions: "Add.", model: "m", skills: "all", dialect: "tools", concurrency: 2 })
        const run = yield* told(agent, "add", { provider: AiSdkProvider.fromModel(model) })
        assert.strictEqual(run.text, "2 and 4")
        assert.deepStrictEqual(asked[0]?.["tools"], [
          { type: "function", name: "add", description: "Adds two numbers", inputSchema: add.inputSchema }
        ])
        assert.deepStrictEqual<unknown>(asked[1]?.prompt.slice(2), [
          {
            role: "assistant",
            content: [
              {
                type: "reasoning",
                text: "hm",
                providerOptions: { acme: { item: "i", signature: "s" }, seen: "b" }
              },
              {
                type: "tool-call",
                toolCallId: "a",
                toolName: "add",
                input: { a: 1, b: 1 },
                providerOptions: { acme: { signed: true } }
              },
              { type: "tool-call", toolCallId: "b", toolName: "add", input: { a: 2, b: 2 } }
            ]
          },
          {
            role: "tool",
            content: [
              { type: "tool-result", toolCallId: "a", toolName: "add", output: { type: "text", value: "2" } },
              { type: "tool-result", toolCallId: "b", toolName: "add", output: { type: "text", value: "4" } }
            ]
          }
        ])
      }).pipe(Effect.provide(kernel(add)))
    )

    it.effect(`sends a model of ${version} media in the form of that version`, () =>
      Effect.gen(function* () {
        const { asked, model } = scripted(version, [say("ok"), endings[version]])
        const provider = AiSdkProvider.fromModel(model)
        const image = Content.image({ data: new Uint8Array([1, 2, 3]), mediaType: "image/png" })
        const sheet = Content.document({ data: new Uint8Array([1, 2, 3]), mediaType: "application/pdf" })
        yield* read(
          provider.stream(
            request({
              model: Model.make("m", { capabilities: ["text", "vision", "document_in"] }),
              messages: [
                message(
                  "user",
                  image,
                  Content.image({ url: "https://images.example/a.png", mediaType: "image/png" }),
                  Content.image({ url: "http://elsewhere.example/b.png", mediaType: "image/png" })
                ),
                message("assistant", Content.toolUse("c", "look", {})),
                message("tool", Content.toolResult("c", [Content.text("seen"), image, sheet])),
                message("assistant", ""),
                message("assistant", Content.toolUse("d", "look", {})),
                message("tool", Content.toolResult("d", [Content.text("gone")], { isError: true }))
              ],
              tools: [{ name: "look", description: "", inputSchema: { type: "object" } }]
            })
          )
        )
        const url = new URL("https://images.example/a.png")
        const data = { type: "data", data: "AQID" }
        assert.deepStrictEqual<unknown>(asked[0]?.prompt[0]?.content, [
          { type: "file", mediaType: "image/png", data: version === "v4" ? data : "AQID" },
          { type: "file", mediaType: "image/png", data: version === "v4" ? { type: "url", url } : url },
          { type: "text", text: "[image unavailable: image/png]" }
        ])
        assert.deepStrictEqual(asked[0]?.prompt[2]?.content[0]?.output, {
          type: "content",
          value: [
            { type: "text", text: "seen" },
            version === "v4"
              ? { type: "file", mediaType: "image/png", data }
              : { type: version === "v2" ? "media" : "image-data", mediaType: "image/png", data: "AQID" },
            version === "v4"
              ? { type: "file", mediaType: "application/pdf", data }
              : { type: version === "v2" ? "media" : "file-data", mediaType: "application/pdf", data: "AQID" }
          ]
        })
        // A model that said nothing is left out.
        assert.lengthOf(asked[0]?.prompt ?? [], 5)
        assert.deepStrictEqual(asked[0]?.prompt[4]?.content[0]?.output, { type: "error-text", value: "gone" })
      })
    )
  }

  it.effect("emits an image that the model made, and a text in place of one that cannot be read", () =>
    Effect.gen(function* () {
      const file = { type: "file", mediaType: "image/png" }
      const address = { type: "url", url: new URL("https://x.test/a.png") }
      const { model } = scripted("v4", [
        say("Here: "),
        { ...file, data: "AQID" },
        { ...file, data: new Uint8Array([1, 2, 3]) },
        { ...file, data: { type: "data", data: "AQID" } },
        { ...file, data: address },
        endings.v4
      ])
      const { parts, text } = yield* read(AiSdkProvider.fromModel(model).stream(request()))
      const files = parts.filter((part) => part.type === "file")
      assert.deepStrictEqual(files, Array(3).fill({ ...file, data: "AQID" }))
      assert.strictEqual(text, "Here: [image unavailable: image/png]")
    })
  )

  it.effect("distinguishes calls that share an id, and skips calls that the vendor ran itself (R-24)", () =>
    Effect.gen(function* () {
      const { model } = scripted("v4", [
        { type: "tool-call", toolCallId: "x", toolName: "add", input: "{}" },
        { type: "tool-call", toolCallId: "x", toolName: "add", input: "no json" },
        { type: "tool-input-start", id: "w", toolName: "search", providerExecuted: true },
        { type: "tool-input-delta", id: "w", delta: "{}" },
        { type: "tool-call", toolCallId: "w", toolName: "search", input: "{}", providerExecuted: true },
        endings.v4
      ])
      const parts = yield* read(AiSdkProvider.fromModel(model).stream(request()))
      assert.deepStrictEqual(
        parts.parts.flatMap((part) => (part.type === "tool-call" ? [[part.id, part.name, part.params]] : [])),
        [
          ["x", "add", {}],
          ["x#2", "add", "no json"]
        ]
      )
    })
  )

  it.effect(
    "fails with a typed error without secrets when refused, rate limited, truncated or broken (S-7, AC-4)",
    () =>
      Effect.gen(function* () {
        const agent = Agent.make({ instructions: "", model: "m" })
        const seen = []
        for (const reply of [
          apiError(401),
          apiError(429, { responseHeaders: { "Retry-After": "90" } }),
          apiError(400),
          Object.assign(new Error("no key"), { name: "AI_LoadAPIKeyError" }),
          [say("half")],
          [say("half"), { type: "error", error: apiError(529, { isRetryable: false }) }],
          [say("half"), { type: "error", error: "Bearer sk-SECRET-0123456789" }]
        ]) {
          const { asked, model } = scripted("v4", reply)
          const run = yield* told(agent, "hi", { provider: AiSdkProvider.fromModel(model) })
          if (run.failure?._tag !== "ProviderError") throw new Error(`no ProviderError but ${run.text}`)
          seen.push([run.failure.reason, run.failure.retryAt, asked.length])
          assert.notInclude(JSON.stringify(run), "SECRET")
        }
        assert.deepStrictEqual(seen, [
          ["authentication", undefined, 1],
          ["rate_limited", 90_000, 1],
          ["invalid_request", undefined, 1],
          ["not_configured", undefined, 1],
          ["incomplete", undefined, 1],
          ["overloaded", undefined, 1],
          ["server_error", undefined, 1]
        ])
      }).pipe(Effect.provide(kernel()))
  )

  it.effect(
    "classifies a vendor's response by its status and document, and passes on none of its text (R-13, S-7)",
    () =>
      Effect.gen(function* () {
        const tooLong = {
          type: "error",
          error: { type: "invalid_request_error", message: "prompt is too long: 9 > 8" }
        }
        for (const [status, more, reason] of [
          [400, { data: tooLong }, "context_length"],
          [400, { responseBody: JSON.stringify(tooLong) }, "context_length"],
          [400, { data: { error: { message: "'x' is required" } } }, "invalid_request"],
          [400, { responseBody: "<html>" }, "invalid_request"],
          [429, { data: { error: { code: "insufficient_quota" } } }, "quota_exhausted"]
        ] as const) {
          const { asked, model } = scripted("v4", apiError(status, more))
          const error = yield* Effect.flip(read(AiSdkProvider.fromModel(model).stream(request())))
          assert.deepStrictEqual([error.reason, asked.length], [reason, 1])
          assert.notMatch(error.message, /too long:|required|html/)
        }
      })
  )

  it.effect("reads finish reasons in either form, and maps unknown ones to other (AC-4)", () =>
    Effect.gen(function* () {
      for (const [given, expected] of [
        ["length", "length"],
        ["unknown", "unknown"],
        ["tired", "other"],
        [undefined, "other"]
      ]) {
        for (const finishReason of [given, { unified: given }]) {
          const { model } = scripted("v2", [say("x"), { type: "finish", finishReason, usage: {} }])
          const { parts } = yield* read(AiSdkProvider.fromModel(model).stream(request()))
          assert.strictEqual(parts.find((part) => part.type === "finish")?.reason, expected)
        }
      }
    })
  )

  it.effect("classifies errors without a status by their names", () =>
    Effect.gen(function* () {
      for (const [name, reason] of [
        ["AI_LoadSettingError", "not_configured"],
        ["AI_NoSuchModelError", "not_found"],
        ["AI_APICallError", "disconnected"],
        ["TypeError", "disconnected"],
        ["AI_JSONParseError", "invalid_response"],
        ["AI_TypeValidationError", "invalid_response"],
        ["AI_InvalidResponseDataError", "invalid_response"],
        ["AI_EmptyResponseBodyError", "incomplete"],
        ["AI_UnsupportedFunctionalityError", "invalid_request"],
        ["AI_InvalidPromptError", "invalid_request"],
        ["Error", "unknown"]
      ] as const) {
        const { model } = scripted("v4", Object.assign(new Error("no"), { name }))
        const error = yield* Effect.flip(read(AiSdkProvider.fromModel(model).stream(request())))
        assert.strictEqual(error.reason, reason)
      }
    }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, modelAttempts: 1 }))
  )

  it.effect("reads the time to retry from an error in the reply, and does not retry earlier (R-13)", () =>
    Effect.gen(function* () {
      yield* TestClock.adjust("1 hour")
      const error = apiError(429, { responseHeaders: { "retry-after": "3600" } })
      const { asked, model } = scripted("v4", [
        { type: "stream-start", warnings: [] },
        { type: "error", error }
      ])
      const agent = Agent.make({ instructions: "", model: "m" })
      const run = yield* told(agent, "hi", { provider: AiSdkProvider.fromModel(model) })
      assert.deepInclude(run.failure, { reason: "rate_limited", retryAt: 7_200_000 })
      assert.lengthOf(asked, 1)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("skips metadata of the vendor that JSON cannot represent (R-22)", () =>
    Effect.gen(function* () {
      const throwing = {
        get s() {
          throw new Error("no")
        }
      }
      const notes = [{ n: 1n }, throwing, {}, undefined].map((providerMetadata, id) => ({
        type: "reasoning-end",
        id: `${id}`,
        providerMetadata
      }))
      const kept = { type: "reasoning-end", id: "last", providerMetadata: { acme: { s: "x", none: undefined } } }
      const { model } = scripted("v4", [...notes, kept, say("hi"), endings.v4])
      const { parts, text } = yield* read(AiSdkProvider.fromModel(model).stream(request()))
      assert.strictEqual(text, "hi")
      assert.deepStrictEqual(
        parts.filter((part) => part.type === "reasoning-end"),
        [{ type: "reasoning-end", id: "0", metadata: { acme: { options: { acme: { s: "x" } } } } }]
      )
    })
  )

  it.effect("limits the wait for the first part of a reply, wherever the model hangs (F4)", () =>
    Effect.gen(function* () {
      const never = new Promise<never>(() => {})
      const { model } = scripted("v4", [say("hi"), endings.v4])
      for (const hanging of [
        { ...model, supportedUrls: never },
        { ...model, doStream: () => never }
      ]) {
        const fiber = yield* Effect.forkChild(Effect.flip(read(AiSdkProvider.fromModel(hanging).stream(request()))))
        yield* TestClock.adjust("60 seconds")
        assert.deepInclude(yield* Fiber.join(fiber), { reason: "timeout" })
      }
    }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, modelAttempts: 1 }))
  )

  it.effect("cancels a stream, even in the middle of a read, and does not wait for it (F6)", () =>
    Effect.gen(function* () {
      const told: Array<string> = []
      const { model } = scripted("v4")
      const saying = (...parts: Parts) => ({
        ...model,
        doStream: () => {
          const stream = new ReadableStream<never>({
            start: (controller) => parts.forEach((part) => controller.enqueue(part as never)),
            cancel: () => {
              told.push("stop")
              return new Promise(() => {})
            }
          })
          return Promise.resolve({ stream })
        }
      })
      const { text } = yield* read(AiSdkProvider.fromModel(saying(say("hi"), endings.v4)).stream(request()))
      assert.strictEqual(text, "hi")
      const begun = yield* Deferred.make<void>()
      const fiber = yield* AiSdkProvider.fromModel(saying(say("h")))
        .stream(request())
        .pipe(
          Stream.runForEach(() => Deferred.succeed(begun, undefined)),
          Effect.forkChild
        )
      yield* Deferred.await(begun)
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual(told, ["stop", "stop"])
    })
  )

  it.effect("limits metadata of the vendor to the size of a reply (R-20)", () =>
    Effect.gen(function* () {
      const note = (id: number) => ({
        type: "reasoning-start",
        id: `${id}`,
        providerMetadata: { acme: { s: "x".repeat(90) } }
      })
      const { model } = scripted("v4", [...Array.from({ length: 9 }, (_, id) => note(id)), say("hi"), endings.v4])
      const error = yield* Effect.flip(read(AiSdkProvider.fromModel(model).stream(request())))
      assert.strictEqual(error.reason, "limit_exceeded")
    }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, replyLength: 800 }))
  )

  it.effect("emits nothing of a read that exceeds the limit of a reply (R-20)", () =>
    Effect.gen(function* () {
      const { model } = scripted("v4", [say("far too long"), endings.v4])
      const said: Array<string> = []
      const error = yield* AiSdkProvider.fromModel(model)
        .stream(request())
        .pipe(
          Stream.runForEach((part) => Effect.sync(() => said.push(part.type))),
          Effect.flip
        )
      assert.strictEqual(error.reason, "limit_exceeded")
      assert.deepStrictEqual(said, [])
    }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, replyLength: 5 }))
  )

  it.effect("asks again while the reply has no content (R-13)", () =>
    Effect.gen(function* () {
      const { asked, model } = scripted("v4", apiError(529), apiError(500), [say("at last"), endings.v4])
      const agent = Agent.make({ instructions: "", model: "m" })
      const fiber = yield* Effect.forkChild(told(agent, "hi", { provider: AiSdkProvider.fromModel(model) }))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(fiber)).text, "at last")
      assert.lengthOf(asked, 3)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("stops the model when the run is interrupted (R-15)", () =>
    Effect.gen(function* () {
      const begun = yield* Deferred.make<AbortSignal>()
      let cancelled = false
      const model = {
        ...scripted("v4").model,
        doStream: async ({ abortSignal }: { readonly abortSignal: AbortSignal }) => {
          Deferred.doneUnsafe(begun, Effect.succeed(abortSignal))
          return {
            stream: new ReadableStream({
              cancel() {
                cancelled = true
              }
            })
          }
        }
      }
      const agent = Agent.make({ instructions: "", model: "m" })
      const fiber = yield* Effect.forkChild(told(agent, "hi", { provider: AiSdkProvider.fromModel(model) }))
      const signal = yield* Deferred.await(begun)
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.isTrue(signal.aborted)
      assert.isTrue(cancelled)
    }).pipe(Effect.provide(kernel()))
  )
})

describe("AiSdkProvider.adapters", () => {
  const withEnv = (env: object) => ConfigProvider.layer(ConfigProvider.fromUnknown(env))

  it.effect("names the package and the variable of every key of the model strings (DR-25)", () =>
    Effect.gen(function* () {
      const keys = Object.keys(AiSdkProvider.adapters)
      assert.lengthOf(keys, 18)
      for (const key of keys) {
        const error = yield* Effect.flip(AiSdkProvider.fromPackage(key))
        assert.strictEqual(error._tag, "ProviderUnavailable")
        assert.match(error.package ?? "", /^@ai-sdk\//)
        assert.match(error.variable ?? "", /^[A-Z_]+$/)
      }
    }).pipe(Effect.provide(withEnv({})))
  )

  it.effect("names only the package when the key is set", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(AiSdkProvider.fromPackage("cohere"))
      assert.deepInclude(error, { package: "@ai-sdk/cohere", provider: "cohere" })
      assert.isUndefined(error.variable)
    }).pipe(Effect.provide(withEnv({ COHERE_API_KEY: "k" })))
  )

  it.effect("names the key where no package is known for it", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(AiSdkProvider.fromPackage("nobody"))
      assert.deepInclude(error, { _tag: "ProviderUnavailable", provider: "nobody" })
      assert.isUndefined(error.package)
    }).pipe(Effect.provide(withEnv({})))
  )

  const incomplete: ReadonlyArray<readonly [key: string, set: string, variable: string | undefined]> = [
    ["bedrock", "AWS_REGION", "AWS_BEARER_TOKEN_BEDROCK"],
    ["bedrock", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"],
    ["bedrock", "AWS_ACCESS_KEY_ID AWS_REGION", "AWS_SECRET_ACCESS_KEY"],
    ["bedrock", "AWS_SECRET_ACCESS_KEY AWS_REGION", "AWS_ACCESS_KEY_ID"],
    ["bedrock", "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY", "AWS_REGION"],
    ["bedrock", "AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_DEFAULT_REGION", undefined],
    ["vertex", "", "GOOGLE_VERTEX_PROJECT"],
    ["vertex", "GOOGLE_VERTEX_PROJECT", "GOOGLE_VERTEX_LOCATION"],
    ["vertex", "GOOGLE_VERTEX_API_KEY", undefined]
  ]
  for (const [key, set, variable] of incomplete) {
    it.effect(`names ${variable ?? "only the package"} for ${key} when the environment has ${set || "nothing"}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(AiSdkProvider.fromPackage(key))
        assert.strictEqual(error.variable, variable)
      }).pipe(Effect.provide(withEnv(Object.fromEntries(set.split(" ").map((name) => [name, "x"])))))
    )
  }

  it.effect("resolves a model string with an installed package and its key", () => {
    const made: Array<unknown> = []
    const bedrock = {
      VERSION: () => "1",
      createdAt: "2026-01-01",
      createAmazonBedrock: (settings: unknown) => {
        made.push(settings)
        return (id: string) => {
          made.push(id)
          return scripted("v3", [say("hello"), endings.v3]).model
        }
      }
    }
    return Effect.gen(function* () {
      yield* installed("@ai-sdk/amazon-bedrock", bedrock)
      const registry = yield* ModelRegistry.ModelRegistry
      const { model, provider } = yield* registry.resolve("amazon-bedrock/anthropic.claude")
      assert.strictEqual(provider.name, "bedrock")
      const { text } = yield* read(provider.stream(request({ model })))
      assert.strictEqual(text, "hello")
      assert.deepStrictEqual(made, [{ apiKey: "k", region: "eu-north-1" }, "anthropic.claude"])

      const pair = { AWS_ACCESS_KEY_ID: "i", AWS_SECRET_ACCESS_KEY: "s", AWS_SESSION_TOKEN: "t", AWS_REGION: "r" }
      yield* Effect.provide(AiSdkProvider.fromPackage("bedrock"), withEnv(pair))
      assert.deepStrictEqual(made[2], { accessKeyId: "i", secretAccessKey: "s", sessionToken: "t", region: "r" })
    }).pipe(
      Effect.provide(
        HttpModelRegistry.layer.pipe(
          Layer.provide(stub(() => Effect.die("no HTTP")).layer),
          Layer.provideMerge(withEnv({ AWS_BEARER_TOKEN_BEDROCK: "k", AWS_REGION: "eu-north-1" }))
        )
      )
    )
  })
})
