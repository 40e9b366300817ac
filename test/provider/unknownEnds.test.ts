/** Reasons of an end that are new, fields of a router that report an error, and words of a refusal. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Agent, Kernel, KernelError, Model, StreamPart } from "kernai"
import { AiSdkProvider } from "kernai/provider"
import { delta } from "../support/chatStream.ts"
import { kernel, of } from "../support/kernel.ts"
import { finishOf, read, readingOf, request } from "../support/provider.ts"

describe("a reason of the end that is unknown", () => {
  const ends: ReadonlyArray<readonly [vendor: string, events: ReadonlyArray<object>]> = [
    ["compatible", [delta({ content: "x" }), delta({}, "tired")]],
    ["google", [{ candidates: [{ content: { parts: [{ text: "x" }] }, finishReason: "tired" }] }]],
    [
      "openai-responses",
      [{ type: "response.incomplete", response: { status: "incomplete", incomplete_details: { reason: "tired" } } }]
    ]
  ]
  it.effect.each(ends)("is other, with the word of the vendor (%s)", ([vendor, events]) =>
    Effect.gen(function* () {
      const finish = finishOf((yield* readingOf(vendor, events)).parts)
      assert.strictEqual(finish?.reason, "other")
      assert.deepStrictEqual(Object.values(finish?.metadata ?? {}), [{ finishReason: "tired" }])
    })
  )
})

describe("the word of the vendor for an unknown end", () => {
  it.effect("is in the journal and in the events", () =>
    Effect.gen(function* () {
      let calls = 0
      const ends: ReadonlyArray<StreamPart.Finish> = [
        { ...StreamPart.finish("other"), metadata: { house: { finishReason: "tired" } } },
        StreamPart.finish("stop")
      ]
      const provider = {
        name: "house",
        stream: () => Stream.fromArray([StreamPart.text("x"), ends[calls++] ?? StreamPart.finish()])
      }
      const agent = Agent.make({ instructions: "You test.", model: Model.textOnly })
      const events = yield* Stream.runCollect(Kernel.stream(agent, "go", { provider }))
      const words = (type: "model_completed" | "llm_response") => of(events, type).map((event) => event.vendorReason)
      assert.deepStrictEqual(words("model_completed"), ["tired", undefined])
      assert.deepStrictEqual(words("llm_response"), ["tired", undefined])
    }).pipe(Effect.provide(kernel()))
  )
})

describe("a reply of the AI SDK that was interrupted", () => {
  it.effect.each([
    ["interrupted", "interrupted"],
    [{ unified: "other", raw: "interrupted" }, "interrupted"]
  ] as const)("is other, with its word (%o)", ([finishReason, told]) =>
    Effect.gen(function* () {
      const stream = new ReadableStream({
        start(controller) {
          controller.enqueue({ type: "text-delta", id: "0", delta: "Half" })
          controller.enqueue({ type: "finish", finishReason, usage: {} })
          controller.close()
        }
      })
      const model = { specificationVersion: "v3", provider: "p", modelId: "m", doStream: async () => ({ stream }) }
      const { parts } = yield* read(AiSdkProvider.fromModel(model as never).stream(request()))
      const finish = finishOf(parts)
      assert.strictEqual(finish?.reason, "other")
      assert.deepStrictEqual(Object.values(finish?.metadata ?? {}), [{ finishReason: told }])
    })
  )
})

describe("a router", () => {
  it.effect("that reports a failed connection to the vendor fails the reply, and another attempt may help", () =>
    Effect.gen(function* () {
      const [chosen] = delta({}, "stop").choices
      for (const choice of [
        { ...chosen, native_finish_reason: "network_error" },
        { ...chosen, finish_reason: "network_error" },
        { ...chosen, finish_reason: "error", error: { code: 502, message: "Upstream failed" } }
      ]) {
        const error = yield* Effect.flip(readingOf("compatible", [delta({ content: "Hel" }), { choices: [choice] }]))
        assert.strictEqual(error.reason, "server_error")
        assert.isTrue(KernelError.isRecoverable(error))
      }
    })
  )
})

describe("a refusal", () => {
  it.effect("leaves the words of the model in the error of the run", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "You test.", model: Model.textOnly })
      const words = "I cannot help."
      const provider = {
        name: "refusing",
        stream: () => Stream.make(StreamPart.text(words), StreamPart.finish("content-filter"))
      }
      const error = yield* Effect.flip(Kernel.run(agent, "go", { provider }))
      assert.deepInclude(error, { _tag: "ProviderError", reason: "content_filter", vendor: { message: words } })
    }).pipe(Effect.provide(kernel()))
  )
})
