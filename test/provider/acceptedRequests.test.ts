/**
 * Whatever a model, a skill, a person or an older history wrote, every adapter writes a request that its vendor accepts.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Content, type Message, Provider } from "kernai"
import { vendorRules, type Wire } from "../../src/kit/vendorRules.ts"
import { bodyOf, message, picture, readingOf, request, stub, tool, vendor, vendors } from "../support/provider.ts"
import { faults } from "../support/wireHistory.ts"

const half = "\u{1f3af}".slice(0, 1)
const names = Object.keys(vendors)

const wireOf = (name: string): Wire => {
  if (name === "openai-responses") return "responses"
  if (name === "google") return "gemini"
  if (name === "google-interactions") return "gemini-interactions"
  return name === "anthropic" || name === "ollama" ? name : "chat"
}

const send = (name: string, messages: ReadonlyArray<Message.Message>, more: Partial<Provider.Request> = {}) =>
  Effect.map(bodyOf(name, request({ tools: [tool], messages, ...more })), (body) => JSON.stringify(body))

/** Every value of a key anywhere in a body. */
const valuesOf = (value: unknown, key: string): ReadonlyArray<unknown> =>
  typeof value !== "object" || value === null
    ? []
    : Object.entries(value).flatMap(([name, inner]) => [...(name === key ? [inner] : []), ...valuesOf(inner, key)])

const invented = [
  "browser.tabs.open",
  "look<|channel|>commentary",
  "",
  "x".repeat(200),
  "été",
  "3d",
  "browser/tabs/open"
]

const callsAndResults = (names: ReadonlyArray<string>): ReadonlyArray<Message.Message> => [
  message("user", "go"),
  message("assistant", ...names.map((name, at) => Content.toolUse(`c${at}`, name, {}))),
  ...names.map((_, at) => message("tool", Content.toolResult(`c${at}`, "done")))
]

for (const name of names) {
  describe(`a request of ${name}`, () => {
    it.effect("has no half of a surrogate pair and no NUL, in messages, calls, results and tools", () =>
      Effect.gen(function* () {
        const bad = `cut ${half}\0`
        const json = yield* send(
          name,
          [
            message("system", bad),
            message("user", bad),
            message("assistant", bad, Content.toolUse("c", "add", { [bad]: [bad] })),
            message("tool", Content.toolResult("c", bad)),
            message("user", "and now?")
          ],
          { tools: [{ ...tool, description: bad, inputSchema: { type: "object", description: bad } }] }
        )
        assert.notMatch(json, /\\u(?:d[89a-f]|0000)/)
        // Arguments may be JSON text inside of the body.
        assert.notMatch(json, /\\\\u(?:d[89a-f]|0000)/)
        assert.include(json, "cut \ufffd\ufffd")
      })
    )

    it.effect("has calls by names that the vendor accepts, each with its own, the same for its result", () =>
      Effect.gen(function* () {
        const json = yield* send(name, callsAndResults([...invented, "add"]))
        const body: unknown = JSON.parse(json)
        const sent = valuesOf(body, "name").filter((value) => typeof value === "string")
        for (const value of sent) assert.match(value, vendorRules[wireOf(name)].name)
        assert.isAtLeast(new Set(sent).size, invented.length + 1)
        assert.deepStrictEqual(faults(name, body), [])
      })
    )

    it.effect("keeps an invented name apart from a tool that has the name sent for it", () =>
      Effect.gen(function* () {
        const first: unknown = JSON.parse(yield* send(name, callsAndResults(["a.b.c d"])))
        const sent = valuesOf(first, "name").find((value) => typeof value === "string" && value.startsWith("a_b"))
        const taken = { ...tool, name: String(sent) }
        const second: unknown = JSON.parse(yield* send(name, callsAndResults(["a.b.c d"]), { tools: [taken] }))
        const again = valuesOf(second, "name").filter((value) => typeof value === "string" && value.startsWith("a_b"))
        assert.isAbove(new Set(again).size, 1)
      })
    )

    it.effect("has no blank text: of a person, of a skill, or before a call", () =>
      Effect.gen(function* () {
        for (const blank of ["", "\n", " \u0085"]) {
          const json = yield* send(name, [
            message("system", blank),
            message("user", blank),
            message("assistant", blank, Content.toolUse("c", "add", {})),
            message("tool", Content.toolResult("c", blank)),
            message("assistant", blank),
            message("user", "so?")
          ])
          const body: unknown = JSON.parse(json)
          const texts = valuesOf(body, "text")
          assert.isTrue(
            texts.every((value) => typeof value !== "string" || /\S/.test(value)),
            json
          )
          assert.deepStrictEqual(faults(name, body), [])
        }
      })
    )

    it.effect("repairs calls without results, results without calls, late results and repeated ids", () =>
      Effect.gen(function* () {
        const call = message("assistant", Content.toolUse("c", "add", {}))
        const result = message("tool", Content.toolResult("c", "r"))
        const histories = [
          [message("user", "a"), call, message("user", "b")],
          [message("user", "a"), result, message("user", "b")],
          [message("user", "a"), call, message("user", "b"), result],
          [message("user", "a"), call, result, call, result, result],
          [message("user", "a"), call, call, result]
        ]
        for (const messages of histories) {
          assert.deepStrictEqual(faults(name, JSON.parse(yield* send(name, messages))), [])
        }
      })
    )
  })
}

describe("the results of one reply", () => {
  for (const name of ["openai", "compatible"]) {
    it.effect(`stand together in a request of ${name}, and one user message behind them has all media`, () =>
      Effect.gen(function* () {
        const body = yield* bodyOf(
          name,
          request({
            model: { id: "m", capabilities: ["text", "vision"] },
            tools: [tool],
            messages: [
              message("user", "go"),
              message("assistant", Content.toolUse("a", "add", {}), Content.toolUse("b", "add", {})),
              message("tool", Content.toolResult("a", [picture])),
              message("tool", Content.toolResult("b", [picture]))
            ]
          })
        )
        const { messages } = body as { messages: ReadonlyArray<{ role: string; content: unknown }> }
        assert.deepStrictEqual(
          messages.map(({ role }) => role),
          ["user", "assistant", "tool", "tool", "user"]
        )
        assert.lengthOf(messages[4]?.content as ReadonlyArray<unknown>, 2)
      })
    )
  }
})

describe("reasoning that nothing follows", () => {
  const origin = (provider: string) => ({ provider, model: "m-text" })
  for (const [name, thought] of [
    ["anthropic", Content.thinking("hm", { origin: origin("anthropic"), signature: { signature: "s" } })],
    ["openai-responses", Content.thinking("hm", { origin: origin("openai"), signature: { id: "r", encrypted: "e" } })]
  ] as const) {
    it.effect(`is not sent back to ${name}, alone, with an empty text, or after a text`, () =>
      Effect.gen(function* () {
        for (const reply of [[thought], [thought, Content.text("")], [Content.text("x"), thought]]) {
          const json = yield* send(name, [message("user", "a"), message("assistant", ...reply), message("user", "b")])
          assert.notMatch(json, /"(?:thinking|reasoning)"/)
        }
        const json = yield* send(name, [message("user", "a"), message("assistant", thought, "x"), message("user", "b")])
        assert.match(json, /"(?:thinking|reasoning)"/)
      })
    )
  }
})

describe("a tool whose name a vendor refuses", () => {
  it.effect("is called by its own name again", () =>
    Effect.gen(function* () {
      const tools = [{ ...tool, name: "3d.view" }]
      const sent = valuesOf(yield* bodyOf("google", request({ tools })), "name").find(
        (value) => typeof value === "string"
      )
      assert.match(String(sent), vendorRules.gemini.name)
      const reply = {
        candidates: [{ content: { parts: [{ functionCall: { name: sent, args: {} } }] }, finishReason: "STOP" }]
      }
      const http = stub(() =>
        Effect.succeed(
          new Response(`data: ${JSON.stringify(reply)}\n\n`, { headers: { "content-type": "text/event-stream" } })
        )
      )
      const provider = yield* Effect.provide(vendor("google")({}), http.layer)
      const parts = yield* Stream.runCollect(provider.stream(request({ tools })))
      const called = parts.flatMap((part) => (part.type === "tool-call" ? [part.name] : []))
      assert.deepStrictEqual(called, ["3d.view"])
    })
  )
})

describe("texts of one reply", () => {
  it.effect("stay apart when the vendor sent them apart", () =>
    Effect.gen(function* () {
      const block = (index: number, text: string) => [
        { type: "content_block_start", index, content_block: { type: "text", text: "" } },
        { type: "content_block_delta", index, delta: { type: "text_delta", text } },
        { type: "content_block_stop", index }
      ]
      const { parts } = yield* readingOf("anthropic", [
        ...block(0, "one"),
        ...block(1, "two"),
        { type: "message_delta", delta: { stop_reason: "end_turn" } },
        { type: "message_stop" }
      ])
      assert.lengthOf(new Set(parts.flatMap((part) => (part.type === "text-delta" ? [part.id] : []))), 2)
    })
  )
})
