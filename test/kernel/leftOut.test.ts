/** Media and options that a request does not hold are named by events, live and in the journal. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { HttpClient } from "effect/http"
import { Agent, Content, KernelError, Middleware, Model, type Provider, RunStore, Skill } from "kernai"
import { AiSdkProvider, AnthropicProvider } from "kernai/provider"
import { chunk, ending } from "../support/chatStream.ts"
import { png } from "../support/images.ts"
import { kernel, of } from "../support/kernel.ts"
import { key, serverSent, stub, vendor } from "../support/provider.ts"
import { told } from "../support/toolbox.ts"

const look = Skill.make("look", {
  description: "Looks",
  input: Schema.Struct({}),
  effects: "read",
  execute: () => Effect.succeed("seen")
})

const said = (content: object, stop_reason: string) =>
  serverSent([
    { type: "message_start", message: { id: "msg", model: "m", content: [], usage: { input_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: content },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason }, usage: { output_tokens: 1 } },
    { type: "message_stop" }
  ])

const anthropic = Effect.suspend(() => {
  const http = stub((_, call) =>
    Effect.succeed(
      call === 0
        ? said({ type: "tool_use", id: "c", name: "look", input: {} }, "tool_use")
        : said({ type: "text", text: "done" }, "end_turn")
    )
  )
  return Effect.provide(AnthropicProvider.make({ apiKey: key }), http.layer)
})

const agentFor = (...capabilities: ReadonlyArray<"text" | "vision">) =>
  Agent.make({
    instructions: "Look.",
    model: Model.make("m", { capabilities: [...capabilities], dialect: "tools" }),
    skills: [look],
    dialect: "tools",
    prose: "final"
  })

const large = Content.image({ data: png(9_000, 10), mediaType: "image/png" })

describe("a picture that the vendor would refuse", () => {
  it.effect("is named once by the reply to the request without it, live and in the journal", () =>
    Effect.gen(function* () {
      const agent = agentFor("text", "vision")
      const { events } = yield* told(agent, ["What?", large], { provider: yield* anthropic, runId: "r" })
      const leftOut = [{ type: "image", mediaType: "image/png", reason: "9000 × 10 pixels, 8000 are allowed" }]
      assert.deepStrictEqual(
        of(events, "model_completed").map((event) => event.leftOut),
        [leftOut, undefined]
      )
      const records = yield* RunStore.recordsOf("r")
      const stored = records.flatMap(({ events }) => events).find(({ type }) => type === "model_completed")
      assert.deepInclude(stored, { leftOut })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is named where the model takes no pictures", () =>
    Effect.gen(function* () {
      const { events } = yield* told(agentFor("text"), ["What?", large], { provider: yield* anthropic })
      assert.deepStrictEqual(of(events, "model_completed")[0]?.leftOut, [
        { type: "image", mediaType: "image/png", reason: "the model takes no image" }
      ])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is named where its address is none", () =>
    Effect.gen(function* () {
      const lost = Content.image({ url: "no address", mediaType: "image/png" })
      const { events } = yield* told(agentFor("text", "vision"), ["What?", lost], { provider: yield* anthropic })
      assert.deepStrictEqual(of(events, "model_completed")[0]?.leftOut, [
        { type: "image", mediaType: "image/png", reason: "its address is no URL" }
      ])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is named where a model of another package cannot read its address", () =>
    Effect.gen(function* () {
      const parts = [
        { type: "text-start", id: "0" },
        { type: "text-delta", id: "0", delta: "done" },
        { type: "text-end", id: "0" },
        { type: "finish", finishReason: "stop", usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 } }
      ]
      const provider = AiSdkProvider.fromModel({
        specificationVersion: "v2",
        provider: "acme",
        modelId: "m",
        supportedUrls: {},
        doStream: () => Promise.resolve({ stream: ReadableStream.from(parts) })
      })
      const away = Content.image({ url: "https://x.test/a.png", mediaType: "image/png" })
      const { events } = yield* told(agentFor("text", "vision"), ["What?", away], { provider })
      assert.deepStrictEqual(of(events, "model_completed")[0]?.leftOut, [
        { type: "image", mediaType: "image/png", reason: "the model does not read its address" }
      ])
    }).pipe(Effect.provide(kernel()))
  )
})

describe("options that a model does not take", () => {
  const agent = Agent.make({ instructions: "Answer.", model: Model.make("gpt-5"), generation: { temperature: 0.5 } })
  const dropped = { provider: "openai", model: "gpt-5", options: ["temperature"] }

  it.effect("are named when the request fails, with a middleware and without", () =>
    Effect.gen(function* () {
      const through = Middleware.layer({ callModel: (call, next) => next(call) })
      const http = stub(() => Effect.succeed(new Response("{}", { status: 401 })))
      const provider = yield* Effect.provideService(vendor("openai")({}), HttpClient.HttpClient, http.client)
      const failed = Effect.gen(function* () {
        const { events } = yield* told(agent, "hi", { provider })
        return of(events, "model_call_failed").map((event) => event.dropped)
      })
      assert.deepStrictEqual(yield* failed, [dropped])
      assert.deepStrictEqual(yield* Effect.provide(failed, through), [dropped])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("are named once where a repaired request follows", () =>
    Effect.gen(function* () {
      const asked: Array<Provider.Request> = []
      const http = stub(() =>
        Effect.succeed(
          new Response(chunk({ content: "done" }) + ending, { headers: { "content-type": "text/event-stream" } })
        )
      )
      const openAi = yield* Effect.provideService(vendor("openai")({}), HttpClient.HttpClient, http.client)
      const provider: Provider.ProviderShape = {
        ...openAi,
        stream: (request) => {
          asked.push(request)
          const vendor = { message: "messages[1].content[1]: Could not process image" }
          return asked.length > 1
            ? openAi.stream(request)
            : Stream.fail(
                new KernelError.ProviderError({ provider: "openai", reason: "invalid_request", detail: "no", vendor })
              )
        }
      }
      const { events } = yield* told(agent, ["What?", Content.image({ url: "https://x.test/a.png" })], { provider })
      assert.lengthOf(asked, 2)
      assert.deepStrictEqual(of(events, "model_call_failed")[0]?.dropped, dropped)
      assert.isUndefined(of(events, "llm_response")[0]?.dropped)
    }).pipe(Effect.provide(kernel()))
  )
})
