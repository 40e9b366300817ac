/** A request that the vendor refuses for a content it names is repaired once. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Content, Kernel, KernelError, Limits, Message, Model, type Provider, RunStore } from "kernai"
import { AnthropicProvider } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import { final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { key, serverSent, stub } from "../support/provider.ts"
import { told } from "../support/toolbox.ts"

const model = Model.make("m", { capabilities: ["text", "vision"] })
const agent = Agent.make({ instructions: "Look.", model })
const png = (name: string) => Content.image({ url: `https://x.test/${name}.png`, mediaType: "image/png" })

type Vendor = KernelError.VendorWords

/** A model that refuses a request with these words while it holds what `refuses` finds. */
const refusing = (
  vendor: Vendor,
  refuses: (request: Provider.Request) => boolean,
  reason: "invalid_request" | "context_length" = "invalid_request"
) => {
  const mock = MockProvider.make(final("done"))
  const asked: Array<Provider.Request> = []
  const provider: Provider.ProviderShape = {
    name: "mock",
    stream: (request) => {
      asked.push(request)
      return refuses(request)
        ? Stream.fail(
            new KernelError.ProviderError({ provider: "mock", reason, detail: "refused", status: 400, vendor })
          )
        : mock.stream(request)
    }
  }
  return { asked, provider }
}

const holds = (text: string) => (request: Provider.Request) => JSON.stringify(request.messages).includes(text)
const refused = "[image left out: the model's service refused it]"

describe("a request that is refused", () => {
  it.effect("for a picture is asked again without it, and the event says so", () =>
    Effect.gen(function* () {
      const { asked, provider } = refusing(
        { message: "messages.0.content.1: Could not process image" },
        holds("bad.png")
      )
      const run = yield* told(agent, ["What?", png("bad")], { provider, runId: "r" })
      assert.strictEqual(run.text, "done")
      assert.lengthOf(asked, 2)
      const [event] = of(run.events, "model_restarted")
      assert.deepStrictEqual(event?.repair?.leftOut, [{ type: "image", message: 0, mediaType: "image/png" }])
      assert.strictEqual(event?.repair?.reason, "invalid_request")
      const state = yield* RunStore.RunStore.use((store) => store.load("r")).pipe(Effect.flatMap(Effect.fromOption))
      assert.deepStrictEqual(state.prompt[0]?.content, [Content.text("What?"), Content.text(refused)])
    }).pipe(Effect.provide(kernel()))
  )

  const history = [
    Message.make("user", [Content.text("One"), png("one")]),
    Message.assistant("Seen."),
    Message.make("user", [Content.text("Two"), png("two")]),
    Message.assistant("Seen, too.")
  ]
  const places: ReadonlyArray<readonly [string, Vendor]> = [
    ["as Anthropic does", { message: "messages.2.content.1.image.source: image dimensions exceed 8000 pixels" }],
    ["as OpenAI does", { message: "Invalid image.", parameter: "messages[3].content[1].image_url" }],
    ["as the Responses API does", { message: "The image is not valid.", parameter: "input[3].content[1]" }],
    ["as Gemini does", { message: "Unable to process input image", parameter: "contents[2].parts[1]" }]
  ]
  for (const [how, vendor] of places) {
    it.effect(`loses only the picture at the place that the vendor names, ${how}`, () =>
      Effect.gen(function* () {
        const { asked, provider } = refusing(vendor, holds("two.png"))
        const run = yield* told(agent, "Three", { provider, history })
        assert.strictEqual(run.text, "done")
        assert.isTrue(asked.length === 2 && asked.slice(1).every(holds("one.png")))
      }).pipe(Effect.provide(kernel()))
    )
  }

  it.effect("for a picture at no place, or a wrong one, loses every picture", () =>
    Effect.gen(function* () {
      for (const message of ["Could not process image", "messages.77: Could not process image"]) {
        const { asked, provider } = refusing({ message }, holds(".png"))
        const run = yield* told(agent, "Three", { provider, history })
        assert.strictEqual(run.text, "done")
        assert.lengthOf(asked, 2)
      }
    }).pipe(Effect.provide(kernel()))
  )

  for (const message of [
    "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
    "Invalid schema for response_format 'reply'",
    "Function calling with a response mime type: 'application/json' is unsupported"
  ]) {
    it.effect(`for the schema of its answer is asked again without it, for the rest of the run: ${message}`, () =>
      Effect.gen(function* () {
        const typed = Agent.make({
          instructions: "Count.",
          model: Model.gpt5,
          output: Schema.Struct({ count: Schema.Int }),
          dialect: "tools"
        })
        const asked: Array<boolean> = []
        const mock = MockProvider.make('{"count":"none"}', '{"count":3}')
        const provider: Provider.ProviderShape = {
          name: "mock",
          stream: (request) => {
            asked.push(request.grammar !== undefined)
            const refusal = { provider: "mock", reason: "invalid_request", detail: "", vendor: { message } } as const
            return request.grammar === undefined
              ? mock.stream(request)
              : Stream.fail(new KernelError.ProviderError(refusal))
          }
        }
        const run = yield* told(typed, ["Count it", png("seen")], { provider, runId: "r" })
        assert.strictEqual(run.text, '{"count":3}')
        assert.deepStrictEqual(asked, [true, false, false])
        assert.deepStrictEqual(of(run.events, "model_restarted")[0]?.repair?.leftOut, [{ type: "output" }])
        const state = yield* RunStore.RunStore.use((store) => store.load("r")).pipe(Effect.flatMap(Effect.fromOption))
        assert.isTrue(state.outputRefused)
        assert.lengthOf(state.prompt[0]?.content ?? [], 2)
      }).pipe(Effect.provide(kernel()))
    )
  }

  it.effect("for a signature loses the thinking that has one", () =>
    Effect.gen(function* () {
      const origin = { provider: "mock", model: "m" }
      const thought = Content.thinking("hm", { signature: { signature: "c2ln" }, origin })
      const before = [Message.user("One"), Message.make("assistant", [thought, Content.text("Yes.")])]
      const { asked, provider } = refusing(
        { message: "messages.1.content.0: Invalid `signature` in `thinking` block" },
        holds("c2ln")
      )
      const run = yield* told(agent, "Two", { provider, history: before })
      assert.strictEqual(run.text, "done")
      assert.lengthOf(asked, 2)
      assert.deepStrictEqual(of(run.events, "model_restarted")[0]?.repair?.leftOut, [{ type: "thinking", message: 1 }])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("for a message loses that message, with the results of its calls", () =>
    Effect.gen(function* () {
      const before = [
        Message.user("One"),
        Message.make("assistant", [Content.toolUse("c", "bad name", {})]),
        Message.make("tool", [Content.toolResult("c", [Content.text("result")])]),
        Message.assistant("Yes.")
      ]
      const vendor = { message: "Invalid name.", parameter: "messages[2].tool_calls[0].function.name" }
      const { asked, provider } = refusing(vendor, holds("bad name"))
      const run = yield* told(agent, "Two", { provider, history: before })
      assert.strictEqual(run.text, "done")
      assert.isFalse(holds("result")(asked[1] ?? assert.fail("not asked again")))
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("as too long is asked again with a conversation below what was refused", () =>
    Effect.gen(function* () {
      const long = Array.from({ length: 40 }, (_, index) =>
        index % 2 === 0 ? Message.user(`${index} ${"word ".repeat(200)}`) : Message.assistant("Yes.")
      )
      const size = ({ messages }: Provider.Request) => JSON.stringify(messages).length
      const { asked, provider } = refusing(
        { message: "prompt is too long: 12,000 tokens > 9000 maximum", code: "context_length_exceeded" },
        (request) => size(request) > 16_000,
        "context_length"
      )
      const run = yield* told(agent, "And now?", { provider, history: long })
      assert.strictEqual(run.text, "done")
      assert.lengthOf(asked, 2)
      const [first, second] = asked.map(size)
      assert.isBelow(second ?? Infinity, (first ?? 0) * 0.75)
      const repair = of(run.events, "model_restarted")[0]?.repair
      assert.strictEqual(repair?.reason, "context_length")
      assert.isAbove(repair?.leftOut.length ?? 0, 5)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("again fails the run with the refusal, and so does one that names nothing", () =>
    Effect.gen(function* () {
      const words: ReadonlyArray<readonly [Vendor, number]> = [
        [{ message: "Could not process image" }, 2],
        [{ message: "temperature must be at most 1", parameter: "temperature" }, 1],
        [{ message: "messages.0: the prompt is not allowed" }, 2]
      ]
      for (const [vendor, count] of words) {
        const { asked, provider } = refusing(vendor, () => true)
        const run = yield* told(agent, ["Three", png("three")], { provider, history })
        assert.strictEqual(run.failure?._tag, "ProviderError")
        assert.lengthOf(asked, count)
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is not repaired if the host turned it off", () =>
    Effect.gen(function* () {
      const { asked, provider } = refusing({ message: "Could not process image" }, holds("bad.png"))
      const run = yield* told(agent, ["What?", png("bad")], { provider })
      assert.strictEqual(run.failure?._tag, "ProviderError")
      assert.lengthOf(asked, 1)
    }).pipe(Effect.provide(Layer.provideMerge(kernel(), Limits.layer({ requestRepairs: 0 }))))
  )

  it.effect("is not met again by a run that is resumed or rewound", () =>
    Effect.gen(function* () {
      for (const rewind of [false, true]) {
        const runId = `r${rewind}`
        const broken = new KernelError.ProviderError({ provider: "mock", reason: "authentication", detail: "refused" })
        const first = refusing({ message: "messages.0.content.1: Could not process image" }, holds("bad.png"))
        const stream = first.provider.stream
        const provider: Provider.ProviderShape = {
          name: "mock",
          stream: (request) => (holds("bad.png")(request) ? stream(request) : Stream.fail(broken))
        }
        const run = yield* told(agent, ["What?", png("bad")], { provider, runId })
        assert.strictEqual(run.failure?._tag, "ProviderError")
        const later = refusing({ message: "Could not process image" }, holds("bad.png"))
        const done = yield* Kernel.resume(agent, runId, { provider: later.provider, rewind })
        assert.strictEqual(done.text, "done")
        assert.lengthOf(later.asked, 1)
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("by Anthropic is repaired from the words of its error", () =>
    Effect.gen(function* () {
      const http = stub(() =>
        Effect.sync(() =>
          http.asked.length === 1
            ? Response.json(
                {
                  type: "error",
                  error: {
                    type: "invalid_request_error",
                    message: "messages.0.content.1.image: Could not process image"
                  }
                },
                { status: 400 }
              )
            : serverSent([
                { type: "message_start", message: { usage: { input_tokens: 1, output_tokens: 1 } } },
                { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
                { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: final("done") } },
                { type: "content_block_stop", index: 0 },
                { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
                { type: "message_stop" }
              ])
        )
      )
      const provider = yield* Effect.provide(AnthropicProvider.make({ apiKey: key }), http.layer)
      const run = yield* told(agent, ["What?", png("bad")], { provider })
      assert.strictEqual(run.text, "done")
      assert.deepStrictEqual(
        http.asked.map(({ body }) => JSON.stringify(body).includes("bad.png")),
        [true, false]
      )
    }).pipe(Effect.provide(kernel()))
  )
})
