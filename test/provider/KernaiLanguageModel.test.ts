import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Redacted, Ref, Schedule, Schema, Stream } from "effect"
import { Chat, LanguageModel, Prompt, Tool, Toolkit } from "effect/ai"
import { Content, KernelError, Limits, Model, Provider, StreamPart } from "kernai"
import { AnthropicProvider, KernaiLanguageModel } from "kernai/provider"
import { Cassette, MockProvider, ReplayProvider } from "kernai/testing"
import * as fs from "node:fs"

const usage = { inputTokens: { total: 7 }, outputTokens: { total: 3 } }

const over = (mock: MockProvider.Mock, model: Model.Model | string = "m") =>
  KernaiLanguageModel.layer({ model }).pipe(Layer.provide(Layer.succeed(Provider.Provider, mock)))

const weather = Tool.make("weather", {
  description: "The weather of a city",
  parameters: Schema.Struct({ city: Schema.String }),
  success: Schema.String
})
const toolkit = Toolkit.make(weather)

describe("KernaiLanguageModel", () => {
  it.effect("returns text, thinking and usage from generateText", () => {
    const mock = MockProvider.make({ thinking: "hm", text: "Hello", usage })
    return Effect.gen(function* () {
      const response = yield* LanguageModel.generateText({ prompt: "hi" })
      assert.strictEqual(response.text, "Hello")
      assert.strictEqual(response.reasoningText, "hm")
      assert.strictEqual(response.finishReason, "stop")
      assert.strictEqual(response.usage.inputTokens.total, 7)
    }).pipe(Effect.provide(over(mock)))
  })

  it.effect("returns thinking that its provider never ends", () => {
    const mock = MockProvider.make([
      { type: "reasoning-delta", id: "t", delta: "hm" },
      StreamPart.text("Hello"),
      StreamPart.finish()
    ])
    return Effect.gen(function* () {
      const response = yield* LanguageModel.generateText({ prompt: "hi" })
      assert.strictEqual(response.reasoningText, "hm")
      assert.strictEqual(response.text, "Hello")
    }).pipe(Effect.provide(over(mock)))
  })

  it.effect("emits each thought in its place, with or without its start and end", () => {
    const mock = MockProvider.make([
      { type: "reasoning-start", id: "a" },
      { type: "reasoning-delta", id: "a", delta: "one" },
      StreamPart.text("Hello"),
      { type: "reasoning-start", id: "b" },
      { type: "reasoning-delta", id: "b", delta: "two" },
      { type: "tool-call", id: "c", name: "weather", params: { city: "Rome" } },
      StreamPart.text("Then"),
      { type: "reasoning-delta", id: "d", delta: "three" },
      StreamPart.finish("tool-calls")
    ])
    return Effect.gen(function* () {
      const { content } = yield* LanguageModel.generateText({ prompt: "hi", toolkit, disableToolCallResolution: true })
      assert.deepStrictEqual(
        content.map((part) => (part.type === "reasoning" || part.type === "text" ? part.text : part.type)),
        ["one", "Hello", "two", "tool-call", "Then", "three", "finish"]
      )
    }).pipe(Effect.provide(over(mock)))
  })

  it.effect("streams the same parts it is given", () => {
    const mock = MockProvider.make("Hello").withChunking(2)
    return Effect.gen(function* () {
      const parts = yield* Stream.runCollect(LanguageModel.streamText({ prompt: "hi" }))
      assert.deepStrictEqual(
        parts.map((part) => (part.type === "text-delta" ? part.delta : part.type)),
        ["text-start", "He", "ll", "o", "text-end", "finish"]
      )
    }).pipe(Effect.provide(over(mock)))
  })

  it.effect("streams parts that a chat of effect/ai accepts, although its provider sends no start and no end", () => {
    const signed = { mock: { signature: "s" } }
    const mock = MockProvider.make([
      { type: "reasoning-delta", id: "0", delta: "h" },
      { type: "reasoning-delta", id: "0", delta: "m" },
      { type: "reasoning-end", id: "b", metadata: signed },
      StreamPart.text("Hel"),
      StreamPart.text("lo"),
      StreamPart.finish()
    ])
    return Effect.gen(function* () {
      const chat = yield* Chat.empty
      const parts = yield* Stream.runCollect(chat.streamText({ prompt: "hi" }))
      assert.strictEqual(parts.at(-1)?.type, "finish")
      const [, answer] = (yield* Ref.get(chat.history)).content
      const kept = answer?.role === "assistant" ? answer.content : []
      assert.deepStrictEqual(
        kept.map((part) => [part.type, "text" in part ? part.text : undefined, part.options]),
        [
          ["reasoning", "hm", {}],
          ["reasoning", "", signed],
          ["text", "Hello", {}]
        ]
      )
    }).pipe(Effect.provide(over(mock)))
  })

  it.effect("fails when a custom provider ends its stream without a finish part (AC-4)", () => {
    const mock = MockProvider.make([StreamPart.text("half")])
    return Effect.gen(function* () {
      const streamed = Stream.runDrain(LanguageModel.streamText({ prompt: "hi" }))
      for (const asked of [streamed, LanguageModel.generateText({ prompt: "hi" })]) {
        const { reason } = yield* Effect.flip(Effect.asVoid(asked))
        assert.strictEqual(reason._tag, "InvalidResponseError")
        assert.include(reason.message, "the reply ended before it was finished")
      }
    }).pipe(Effect.provide(over(mock)))
  })

  it.effect("lets effect/ai run a toolkit and hands tool definitions and results to the provider", () => {
    const mock = MockProvider.make({ calls: [{ id: "c1", name: "weather", input: { city: "Rome" } }] }, "Sunny.")
    return Effect.gen(function* () {
      const first = yield* LanguageModel.generateText({ prompt: "Weather in Rome?", toolkit })
      assert.deepStrictEqual(
        first.toolResults.map((result) => result.result),
        ["sunny in Rome"]
      )
      const history = Prompt.concat(Prompt.make("Weather in Rome?"), Prompt.fromResponseParts(first.content))
      yield* LanguageModel.generateText({ prompt: history, toolkit })
      const [asked, again] = mock.calls
      assert.deepStrictEqual(asked?.tools[0]?.name, "weather")
      assert.deepStrictEqual(asked?.tools[0]?.inputSchema["required"], ["city"])
      assert.deepStrictEqual(
        again?.messages.map((message) => [message.role, message.content.map((part) => part.type)]),
        [
          ["user", ["text"]],
          ["assistant", ["tool_use"]],
          ["tool", ["tool_result"]]
        ]
      )
    }).pipe(
      Effect.provide(
        Layer.merge(over(mock), toolkit.toLayer({ weather: ({ city }) => Effect.succeed(`sunny in ${city}`) }))
      )
    )
  })

  it.effect("decodes an object by its schema, without its code fence", () => {
    const mock = MockProvider.make('```json\n{"city":"Rome","degrees":21}\n```')
    return Effect.gen(function* () {
      const response = yield* LanguageModel.generateObject({
        prompt: "Weather?",
        schema: Schema.Struct({ city: Schema.String, degrees: Schema.Number })
      })
      assert.deepStrictEqual(response.value, { city: "Rome", degrees: 21 })
      assert.strictEqual(mock.lastCall?.grammar?._tag, "Json")
      assert.include(JSON.stringify(mock.lastCall?.messages), "degrees")
    }).pipe(Effect.provide(over(mock)))
  })

  it.effect("looks for a code fence once, however long the reply is (R-21)", () => {
    // One look from each line takes longer than a test is given.
    const mock = MockProvider.make(`\`\`\`json\n${"\n".repeat(200_000)}x`)
    return Effect.gen(function* () {
      yield* Effect.flip(LanguageModel.generateObject({ prompt: "?", schema: Schema.Struct({ a: Schema.String }) }))
    }).pipe(Effect.provide(over(mock)))
  })

  it.effect("fails when the reply of a custom provider exceeds the limit", () => {
    const endless = (part: StreamPart.StreamPart): Provider.ProviderShape => ({
      name: "endless",
      stream: () => Stream.repeat(Stream.succeed(part), Schedule.forever)
    })
    const part = (delta: string): StreamPart.StreamPart => ({ type: "text-delta", id: "0", delta })
    return Effect.gen(function* () {
      for (const delta of ["x".repeat(100), ""]) {
        const model = yield* KernaiLanguageModel.fromProvider(endless(part(delta)), { model: "m" })
        const error = yield* Effect.flip(model.generateText({ prompt: "hi" }))
        assert.include(error.message, "replyLength is 1000")
      }
    }).pipe(Effect.provideService(Limits.Limits, { ...Limits.defaults, replyLength: 1000 }))
  })

  it.effect("sends files by the kind of their MIME type, and by their name if they are documents (BP-117)", () => {
    const mock = MockProvider.make("seen")
    const data = new Uint8Array([1, 2, 3])
    const types = ["image/png", "audio/wav", "video/mp4", "application/pdf", "Image/png", "image"]
    const content = types.map((mediaType) => Prompt.filePart({ mediaType, fileName: "a", data }))
    return Effect.gen(function* () {
      yield* LanguageModel.generateText({ prompt: [{ role: "user", content }] })
      const source = (mediaType: string) => ({ data, mediaType })
      assert.deepStrictEqual(mock.lastCall?.messages[0]?.content, [
        Content.image(source("image/png")),
        Content.audio(source("audio/wav")),
        Content.video(source("video/mp4")),
        ...["application/pdf", "Image/png", "image"].map((mediaType) =>
          Content.document({ ...source(mediaType), filename: "a" })
        )
      ])
    }).pipe(Effect.provide(over(mock, { id: "m", capabilities: ["text", "vision", "audio_in", "video_in"] })))
  })

  it.effect("marks a file whose text is not base64 as unavailable, instead of sending an empty one", () => {
    const mock = MockProvider.make("seen")
    const content = ["iVBORw0K", "no base64!"].map((data) => Prompt.filePart({ mediaType: "image/png", data }))
    return Effect.gen(function* () {
      yield* LanguageModel.generateText({ prompt: [{ role: "user", content }] })
      assert.deepStrictEqual(mock.lastCall?.messages[0]?.content, [
        Content.image({ data: new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a]), mediaType: "image/png" }),
        Content.text("[image unavailable: image/png]")
      ])
    }).pipe(Effect.provide(over(mock, { id: "m", capabilities: ["text", "vision"] })))
  })

  it.effect("sends thinking back only to the provider that signed it (CP-9)", () => {
    const signed: ReadonlyArray<StreamPart.StreamPart> = [
      { type: "reasoning-start", id: "t" },
      { type: "reasoning-delta", id: "t", delta: "hm" },
      { type: "reasoning-end", id: "t", metadata: { mock: "signature" } },
      StreamPart.text("a"),
      StreamPart.finish()
    ]
    const mock = MockProvider.make(signed)
    const other = MockProvider.named("other", "b")
    return Effect.gen(function* () {
      const first = yield* LanguageModel.generateText({ prompt: "hi" })
      const history = Prompt.fromResponseParts(first.content)
      yield* LanguageModel.generateText({ prompt: history })
      assert.deepStrictEqual(mock.lastCall?.messages[0]?.content[0], {
        type: "thinking",
        content: "hm",
        redacted: false,
        origin: { provider: "mock", model: "m" },
        signature: "signature"
      })
      yield* LanguageModel.generateText({ prompt: history }).pipe(Effect.provide(over(other)))
      assert.deepStrictEqual(
        other.lastCall?.messages[0]?.content.map((part) => part.type),
        ["text"]
      )
    }).pipe(Effect.provide(over(mock)))
  })

  it.effect("keeps the reason of a failure: a rate limit is retryable, a refused key is not", () => {
    const mock = MockProvider.make().onCall((_, call) =>
      Effect.fail(
        new KernelError.ProviderError({
          provider: "mock",
          reason: call === 0 ? "rate_limited" : "authentication",
          detail: "no",
          retryAt: 5_000
        })
      )
    )
    return Effect.gen(function* () {
      const limited = yield* Effect.flip(LanguageModel.generateText({ prompt: "hi" }))
      assert.strictEqual(limited.reason._tag, "RateLimitError")
      assert.isTrue(limited.isRetryable)
      assert.isDefined(limited.retryAfter)
      const refused = yield* Effect.flip(LanguageModel.generateText({ prompt: "hi" }))
      assert.strictEqual(refused.reason._tag, "AuthenticationError")
      assert.isFalse(refused.isRetryable)
    }).pipe(Effect.provide(over(mock)))
  })

  it.effect("offers the tools that may be chosen: none, one, or all", () => {
    const mock = MockProvider.make("fine")
    const wind = Tool.make("wind", { description: "The wind", success: Schema.String })
    return Effect.gen(function* () {
      const options = { prompt: "hi", toolkit: Toolkit.make(weather, wind), disableToolCallResolution: true } as const
      yield* LanguageModel.generateText({ ...options, toolChoice: "none" })
      yield* Effect.flip(LanguageModel.generateText({ ...options, toolChoice: { tool: "wind" } }))
      yield* LanguageModel.generateText(options)
      assert.deepStrictEqual(
        mock.calls.map(({ tools }) => tools.map(({ name }) => name)),
        [[], ["wind"], ["weather", "wind"]]
      )
    }).pipe(Effect.provide(over(mock)))
  })

  it.effect("fails when a required call is not made", () => {
    const mock = MockProvider.make("I would rather talk.")
    const options = { prompt: "hi", toolkit, toolChoice: "required", disableToolCallResolution: true } as const
    return Effect.gen(function* () {
      const error = yield* Effect.flip(LanguageModel.generateText(options))
      assert.strictEqual(error.reason._tag, "InvalidOutputError")
      assert.strictEqual(error.method, "generateText")
      const streamed = yield* Effect.flip(Stream.runDrain(LanguageModel.streamText(options)))
      assert.strictEqual(streamed._tag === "AiError" && streamed.method, "streamText")
    }).pipe(Effect.provide(over(mock)))
  })

  it.effect("answers effect/ai from a recorded exchange of a vendor", () =>
    Effect.gen(function* () {
      const cassette = yield* Cassette.parse(
        fs.readFileSync(new URL("../fixtures/cassettes/anthropic_final_block.json", import.meta.url), "utf8")
      )
      const provider = yield* ReplayProvider.make(
        cassette,
        AnthropicProvider.make({ apiKey: Redacted.make("sk-none") }),
        { compare: false }
      )
      const model = yield* KernaiLanguageModel.fromProvider(provider, { model: cassette.model })
      const response = yield* LanguageModel.generateText({ prompt: "hi" }).pipe(
        Effect.provideService(LanguageModel.LanguageModel, model)
      )
      assert.include(response.text, '<block type="final">')
      assert.strictEqual(response.finishReason, "stop")
    })
  )
})
