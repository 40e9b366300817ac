/** Later events of a reply over Responses complete what arrived before. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { finishOf, readingOf } from "../support/provider.ts"

const reading = (...events: ReadonlyArray<object>) => readingOf("openai-responses", events)

const place = { output_index: 0, content_index: 0 }
const delta = (delta: string) => ({ type: "response.output_text.delta", ...place, delta })
const textDone = (text: string) => ({ type: "response.output_text.done", ...place, text })
const message = (text: string) => ({ type: "message", content: [{ type: "output_text", text }] })
const itemDone = (item: object) => ({ type: "response.output_item.done", output_index: 0, item })
const completed = (...output: ReadonlyArray<object>) => ({
  type: "response.completed",
  response: { status: "completed", output, usage: { input_tokens: 5, output_tokens: 2 } }
})
const call = { type: "function_call", call_id: "a", name: "add", arguments: '{"x":1}' }

describe("a reply over Responses", () => {
  const texts: ReadonlyArray<readonly [what: string, events: ReadonlyArray<object>]> = [
    ["only in the end of the text", [textDone("Hello"), completed()]],
    ["only in the end of the item", [itemDone(message("Hello")), completed()]],
    ["only in the whole response", [completed(message("Hello"))]],
    [
      "in all four places",
      [delta("Hello"), textDone("Hello"), itemDone(message("Hello")), completed(message("Hello"))]
    ],
    ["partly in pieces, whole in the end of the text", [delta("He"), textDone("Hello"), completed()]],
    ["partly in pieces, whole in the end of the item", [delta("He"), itemDone(message("Hello")), completed()]],
    ["partly in pieces, whole in the response", [delta("He"), delta("l"), completed(message("Hello"))]]
  ]
  it.effect.each(texts)("has its text once when it arrives %s", ([, events]) =>
    Effect.gen(function* () {
      const { parts, text } = yield* reading(...events)
      assert.strictEqual(text, "Hello")
      assert.strictEqual(finishOf(parts)?.reason, "stop")
    })
  )

  it.effect("has its call once, from the whole response or from the end of its arguments", () =>
    Effect.gen(function* () {
      const added = { type: "response.output_item.added", output_index: 0, item: { ...call, arguments: "" } }
      const ended = { type: "response.function_call_arguments.done", output_index: 0, arguments: call.arguments }
      for (const events of [[], [added], [added, ended], [added, ended, itemDone(call)]]) {
        const { parts } = yield* reading(...events, completed(call))
        const calls = parts.filter((part) => part.type === "tool-call")
        assert.deepStrictEqual(calls, [{ type: "tool-call", id: "a", name: "add", params: { x: 1 } }])
        assert.strictEqual(finishOf(parts)?.reason, "tool-calls")
      }
    })
  )

  it.effect("keeps the words of a refusal that arrives only at the end", () =>
    Effect.gen(function* () {
      const { parts, text } = yield* reading(
        { type: "response.refusal.done", ...place, refusal: "I cannot help." },
        completed()
      )
      assert.strictEqual(text, "I cannot help.")
      assert.strictEqual(finishOf(parts)?.reason, "content-filter")
    })
  )
})
