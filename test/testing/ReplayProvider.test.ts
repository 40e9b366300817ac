import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger } from "effect"
import * as Block from "../../src/Block.ts"
import { isJsonObject, type Json } from "../../src/kit/json.ts"
import type { Message, Role } from "../../src/Message.ts"
import { Provider } from "../../src/Provider.ts"
import { Cassette, ReplayProvider } from "../../src/testing/index.ts"
import { cassettes, message, read, request, vendor } from "../support/provider.ts"

/** The messages of a recorded request, as a run would hold them. */
const recorded = (body: Json): ReadonlyArray<Message> => {
  const list = isJsonObject(body) ? body["messages"] : []
  return (Array.isArray(list) ? list : []).map((item: Json) =>
    isJsonObject(item) ? message(item["role"] as Role, String(item["content"])) : message("user")
  )
}

const load = (name: string) =>
  Cassette.parse(cassettes("cassettes").find((cassette) => cassette.name === name)?.text ?? "")

describe("ReplayProvider", () => {
  for (const { name, text } of cassettes("cassettes")) {
    it.effect(`${name} plays to the conversation it was recorded with`, () =>
      Effect.gen(function* () {
        const cassette = yield* Cassette.parse(text)
        yield* Effect.gen(function* () {
          const provider = yield* Provider
          for (const exchange of cassette.interactions) {
            const messages = [message("system", "other instructions"), ...recorded(exchange.request.body)]
            const reply = yield* read(provider.stream(request({ messages })))
            assert.strictEqual(reply.text, (exchange.expected as { content: string }).content)
          }
          const error = yield* Effect.flip(read(provider.stream(request())))
          assert.include(error.message, "no further answer")
        }).pipe(Effect.provide(ReplayProvider.layer(cassette, vendor(cassette.vendor)({}))))
      })
    )
  }

  it.effect("says how many recorded replies were not played, and its layer warns of them", () =>
    Effect.gen(function* () {
      const cassette = yield* load("openai_scenario_weather")
      const messages = recorded(cassette.interactions[0]?.request.body ?? null)
      const warned: Array<string> = []
      const logger = Logger.make(({ message }) => warned.push(String(message)))
      const provider = yield* ReplayProvider.make(cassette, vendor("openai")({}))
      assert.strictEqual(yield* provider.left, cassette.interactions.length)
      yield* read(provider.stream(request({ messages })))
      assert.strictEqual(yield* provider.left, cassette.interactions.length - 1)
      yield* Effect.flatMap(Provider, (played) => read(played.stream(request({ messages })))).pipe(
        Effect.provide(Layer.provideMerge(ReplayProvider.layer(cassette, vendor("openai")({})), Logger.layer([logger])))
      )
      const count = cassette.interactions.length
      assert.deepStrictEqual(warned, [`${count - 1} of ${count} recorded replies were not played`])
    })
  )

  it.effect("fails at the first message that differs, and shows both", () =>
    Effect.gen(function* () {
      const cassette = yield* load("openai_scenario_weather")
      const messages = recorded(cassette.interactions[1]?.request.body ?? null)
      const last = messages.at(-1)
      assert.isDefined(last)
      const replay = (changed: ReadonlyArray<Message>) =>
        Effect.gen(function* () {
          const provider = yield* ReplayProvider.make(cassette, vendor("openai")({}))
          yield* read(provider.stream(request({ messages: recorded(cassette.interactions[0]?.request.body ?? null) })))
          return yield* Effect.flip(read(provider.stream(request({ messages: changed }))))
        })
      const error = yield* replay([
        ...messages.slice(0, -1),
        message("user", '<block type="result" name="weather">snow</block>')
      ])
      assert.strictEqual(error.reason, "invalid_request")
      assert.match(error.message, /request 1 differs from the recording: message \d+, result: expected .* got "snow"/)

      assert.match((yield* replay(messages.slice(0, -1))).message, /length: expected .*, got \d+ messages/)
      assert.match((yield* replay([...messages, message("user", "more")])).message, /length/)
    })
  )

  it.effect("reports the mismatch of each call, not that of an earlier one", () =>
    Effect.gen(function* () {
      const provider = yield* ReplayProvider.make(yield* load("openai_final_block"), vendor("openai")({}))
      const asked = Effect.flip(read(provider.stream(request())))
      assert.include((yield* asked).message, "request 0 differs from the recording")
      assert.include((yield* asked).message, "no further answer")
    })
  )

  it.effect("does not compare when comparison is disabled", () =>
    Effect.gen(function* () {
      const cassette = yield* load("openai_final_block")
      const provider = yield* ReplayProvider.make(cassette, vendor("openai")({}), { compare: false, cut: 3 })
      assert.include((yield* read(provider.stream(request()))).text, "2+2 equals 4.")
    })
  )
})

describe("ReplayProvider.firstDifference", () => {
  const turn = (role: string, text: string): ReplayProvider.Turn => ({ role, text })
  const result = (content: string, name = "search") => Block.render(Block.result(name, content))

  for (const [what, before, now, difference] of [
    ["equal conversations", [turn("user", "a")], [turn("user", "a")], undefined],
    ["roles", [turn("user", "a")], [turn("tool", "a")], "role"],
    ["plain text", [turn("user", "a")], [turn("user", "b")], "text"],
    ["a block's name", [turn("user", result("x"))], [turn("user", result("x", "other"))], "blocks"],
    ["a result", [turn("user", result("x"))], [turn("user", result("y"))], "result"],
    [
      "an escaped result",
      [turn("user", '<block type="result"><blockquote></block>')],
      [turn("user", '<block type="result">&lt;blockquote></block>')],
      undefined
    ],
    ["a corrective's wording", [turn("user", "<error>a</error>")], [turn("user", "<error>b</error>")], undefined],
    [
      "a note the recording has not",
      [turn("user", "a")],
      [turn("user", "a"), turn("user", "<error>passed over</error>")],
      undefined
    ],
    ["a message too few", [turn("user", "a"), turn("assistant", "b")], [turn("user", "a")], "length"],
    ["a message too many", [turn("user", "a")], [turn("user", "a"), turn("user", "b")], "length"]
  ] as const) {
    it(what, () => assert.strictEqual(ReplayProvider.firstDifference(before, now)?.what, difference))
  }

  it("reads conversation and instructions of every vendor: strings, lists, and whole bodies as text", () => {
    const expected = [turn("user", "hi"), turn("assistant", "ho")]
    const parts = (text: string) => [{ type: "text", text }]
    for (const body of [
      {
        messages: [
          { role: "system", content: "S" },
          { role: "user", content: "hi" },
          { role: "assistant", content: "ho" }
        ]
      },
      {
        system: "S",
        messages: [
          { role: "user", content: parts("hi") },
          { role: "assistant", content: parts("ho") }
        ]
      },
      {
        messages: [
          { role: "developer", content: parts("S") },
          { role: "user", content: parts("hi") },
          { role: "assistant", content: parts("ho") }
        ]
      },
      {
        system: parts("S"),
        messages: [
          { role: "user", content: "hi" },
          { role: "assistant", content: "ho" }
        ]
      },
      {
        systemInstruction: { parts: [{ text: "S" }] },
        contents: [
          { role: "user", parts: [{ text: "hi" }] },
          { role: "model", parts: [{ text: "ho" }] }
        ]
      },
      {
        system_instruction: "S",
        input: [
          { type: "user_input", content: parts("hi") },
          { type: "model_output", content: parts("ho") }
        ]
      }
    ]) {
      for (const kept of [body, JSON.stringify(body)]) {
        assert.deepStrictEqual(ReplayProvider.turns(kept), expected)
        assert.strictEqual(ReplayProvider.instructions(kept), "S")
      }
    }
    for (const nothing of [null, "no JSON", [], { messages: [{ role: "user", content: "S" }] }]) {
      assert.strictEqual(ReplayProvider.instructions(nothing), "")
    }
  })

  it("reads native calls of every vendor, and thinking as text of the model", () => {
    const asked = [turn("assistant", Block.render(Block.command("add", '{"x":1}')))]
    for (const body of [
      { messages: [{ role: "assistant", content: [{ type: "tool_use", id: "a", name: "add", input: { x: 1 } }] }] },
      {
        messages: [
          {
            role: "assistant",
            tool_calls: [{ id: "a", type: "function", function: { name: "add", arguments: '{"x":1}' } }]
          }
        ]
      },
      {
        messages: [{ role: "assistant", content: "", tool_calls: [{ function: { name: "add", arguments: { x: 1 } } }] }]
      },
      { contents: [{ role: "model", parts: [{ functionCall: { name: "add", args: { x: 1 } } }] }] },
      { input: [{ type: "function_call", id: "a", name: "add", arguments: { x: 1 } }] }
    ]) {
      assert.deepStrictEqual(ReplayProvider.turns(body), asked)
    }
    assert.deepStrictEqual(ReplayProvider.turns({ input: [{ type: "thought", signature: "s" }] }), [
      turn("assistant", "")
    ])
  })
})
