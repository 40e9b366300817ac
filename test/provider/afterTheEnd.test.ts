/** A reply is whole once the reason of its end has arrived, whatever its connection does afterwards. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import type { StreamPart } from "../../src/StreamPart.ts"
import { chunk, delta } from "../support/chatStream.ts"
import { request } from "../support/provider.ts"
import { answeringAs } from "../support/scriptedHttp.ts"

const events = (...values: ReadonlyArray<object>): string =>
  values.map((value) => `data: ${JSON.stringify(value)}\n\n`).join("")

const responsesText = { type: "response.output_text.delta", output_index: 0, delta: "Hello" }
const responsesEnd = {
  type: "response.completed",
  response: { status: "completed", usage: { input_tokens: 5, output_tokens: 2 } }
}

/** A whole reply of each wire, without what a vendor sends behind its end. The usage is 5 and 2 tokens. */
const replies: { readonly [name: string]: string } = {
  openai: events(delta({ content: "Hello" }), delta({}, "stop"), {
    choices: [],
    usage: { prompt_tokens: 5, completion_tokens: 2 }
  }),
  anthropic: events(
    { type: "message_start", message: { id: "m", model: "m", usage: { input_tokens: 5, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "Hello" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } }
  ),
  google: events({
    candidates: [{ content: { parts: [{ text: "Hello" }] }, finishReason: "STOP" }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2 }
  }),
  "google-interactions": events(
    { event_type: "step.start", index: 0, step: { type: "text", text: "Hello" } },
    {
      event_type: "interaction.completed",
      interaction: { status: "completed", usage: { total_input_tokens: 5, total_output_tokens: 2 } }
    }
  ),
  ollama: `${JSON.stringify({ message: { content: "Hello" } })}\n${JSON.stringify({ done: true, done_reason: "stop", prompt_eval_count: 5, eval_count: 2 })}\n`,
  "openai-responses": events(responsesText, responsesEnd)
}

type Fate = "is cut" | "stays open" | "stays open with comments"

/** A body that sends `pieces`, and then meets its fate. */
const body = (pieces: ReadonlyArray<string | Uint8Array>, fate: Fate) => {
  const rest = [...pieces]
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const piece = rest.shift()
      if (piece !== undefined) {
        return controller.enqueue(typeof piece === "string" ? new TextEncoder().encode(piece) : piece)
      }
      if (fate === "is cut") return controller.error(new Error("reset"))
      await new Promise((resolve) => setTimeout(resolve, 5))
      if (fate === "stays open with comments") controller.enqueue(new TextEncoder().encode(": ping\n\n"))
      else await new Promise(() => {})
    }
  })
}

/** Reads a reply, and returns its parts or its error, the number of requests, and the seconds it took. */
const readOf = (name: string, pieces: ReadonlyArray<string | Uint8Array>, fate: Fate) =>
  Effect.gen(function* () {
    const { asked, provider } = yield* answeringAs(name, () => new Response(body(pieces, fate)))
    const reading = Effect.result(Stream.runCollect(provider.stream(request())))
    const fiber = yield* Effect.forkChild(reading)
    let seconds = 0
    // The body is real, so its reads take turns of the event loop.
    const pause = Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 10)))
    yield* pause
    for (; seconds < 100 && fiber.pollUnsafe() === undefined; seconds++) {
      yield* TestClock.adjust("1 second")
      yield* pause
    }
    return { result: yield* Fiber.join(fiber), requests: asked.length, seconds }
  })

const wholeOf = (name: string, pieces: ReadonlyArray<string | Uint8Array>, fate: Fate) =>
  Effect.gen(function* () {
    const { requests, result, seconds } = yield* readOf(name, pieces, fate)
    const parts: ReadonlyArray<StreamPart> = yield* Effect.fromResult(result)
    const text = parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("")
    const finish = parts.find((part) => part.type === "finish")
    assert.strictEqual(text, "Hello")
    assert.strictEqual(finish?.reason, "stop")
    assert.strictEqual(requests, 1)
    return { usage: finish?.usage, seconds }
  })

describe("a reply whose end has arrived", () => {
  for (const [name, reply] of Object.entries(replies)) {
    for (const fate of ["is cut", "stays open", "stays open with comments"] as const) {
      it.effect(`is whole, with its usage, when the connection ${fate}: ${name}`, () =>
        Effect.gen(function* () {
          const { seconds, usage } = yield* wholeOf(name, [reply], fate)
          assert.strictEqual(usage?.inputTokens.total, 5)
          assert.strictEqual(usage?.outputTokens.total, 2)
          assert.isAtMost(seconds, 3)
        })
      )
    }
  }

  for (const [name, reply] of Object.entries(replies)) {
    it.effect(`is whole, with its usage, when its vendor sends an error or no JSON behind it: ${name}`, () =>
      Effect.gen(function* () {
        const isLines = name === "ollama"
        const error = JSON.stringify({ type: "error", error: { type: "api_error", message: "late" } })
        const late = isLines
          ? [`${error}\n`, "{rubbish\n"]
          : [`data: ${error}\n\n`, `event: error\n${error}\n\n`, "data: {x\n\n"]
        for (const behind of late) {
          const { usage } = yield* wholeOf(name, [reply, behind], "is cut")
          assert.strictEqual(usage?.outputTokens.total, 2)
          yield* wholeOf(name, [reply + behind], "is cut")
        }
      })
    )
  }

  it.effect("is whole when the connection is cut inside the event with its usage, or inside a character", () =>
    Effect.gen(function* () {
      const ended = events(delta({ content: "Hello" }), delta({}, "stop"))
      yield* wholeOf("openai", [ended, 'data: {"choices":[],"usa'], "is cut")
      yield* wholeOf("openai", [ended, new TextEncoder().encode(": ü").slice(0, -1)], "is cut")
    })
  )

  it.effect("is whole when the line end behind its last event is missing", () =>
    wholeOf("openai", [events(delta({ content: "Hello" }), delta({}, "stop")).trimEnd()], "is cut")
  )

  it.effect("continues as long as its vendor sends content, as Gemini does with a reason in every piece", () =>
    Effect.gen(function* () {
      const piece = (text: string) => events({ candidates: [{ content: { parts: [{ text }] }, finishReason: "STOP" }] })
      yield* wholeOf("google", [piece("He"), piece("l"), piece("lo")], "stays open")
    })
  )
})

describe("a reply whose end has not arrived", () => {
  it.effect("is cut when its connection is", () =>
    Effect.gen(function* () {
      const { result } = yield* readOf("openai", [chunk({ content: "He" })], "is cut")
      assert.strictEqual((yield* Effect.flip(Effect.fromResult(result))).reason, "disconnected")
    })
  )

  it.effect("waits for its next piece as long as before", () =>
    Effect.gen(function* () {
      const { result, seconds } = yield* readOf("openai", [chunk({ content: "He" })], "stays open")
      assert.strictEqual((yield* Effect.flip(Effect.fromResult(result))).reason, "timeout")
      assert.isAtLeast(seconds, 59)
    })
  )
})
