/** PDF files and requests stay within what a vendor accepts: the oldest media become texts that say why. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Content, Model, type Provider } from "kernai"
import { RequestRules } from "kernai/testing"
import { pdf } from "../support/images.ts"
import { bodyOf, message, request } from "../support/provider.ts"

const reads = ["text", "document_in"] as const
const file = (pages: number, bytes?: number) =>
  Content.document({ data: pdf(pages, bytes), mediaType: "application/pdf", filename: "a.pdf" })

const send = (
  name: string,
  messages: ReadonlyArray<ReturnType<typeof message>>,
  model: Partial<Model.Model> = {},
  noteLeftOut?: Provider.Request["noteLeftOut"]
) =>
  bodyOf(
    name,
    request({
      model: { ...Model.make("m", { capabilities: [...reads] }), ...model },
      messages,
      ...(noteLeftOut && { noteLeftOut })
    })
  )

const filesIn = (body: unknown): number => JSON.stringify(body).split("JVBERi0").length - 1

describe("PDF files for Anthropic", () => {
  it.effect("have 600 pages together, and the oldest are left out beyond", () =>
    Effect.gen(function* () {
      const fits = yield* send("anthropic", [message("user", file(300)), message("user", file(300))])
      assert.strictEqual(filesIn(fits), 2)
      const body = yield* send("anthropic", [message("user", file(300)), message("user", file(301))])
      assert.strictEqual(filesIn(body), 1)
      assert.include(
        JSON.stringify(body),
        "[document unavailable: application/pdf, the request has more than 600 pages]"
      )
      assert.deepStrictEqual(RequestRules.check("anthropic", body), [])
    })
  )

  it.effect("have 100 pages together for a model with a window of 200,000 tokens", () =>
    Effect.gen(function* () {
      const messages = [message("user", file(60)), message("user", file(50), file(50))]
      const small = yield* send("anthropic", messages, { contextWindow: 200_000 })
      assert.strictEqual(filesIn(small), 2)
      assert.strictEqual(filesIn(yield* send("anthropic", messages, { contextWindow: 1_000_000 })), 3)
    })
  )

  it.effect("come back when newer ones are gone", () =>
    Effect.gen(function* () {
      const old = message("user", file(400))
      const model = Model.make("m", { capabilities: [...reads] })
      const asked = (...messages: ReadonlyArray<ReturnType<typeof message>>) =>
        bodyOf("anthropic", request({ model, messages }))
      assert.strictEqual(filesIn(yield* asked(old, message("user", file(400)))), 1)
      assert.strictEqual(filesIn(yield* asked(old)), 1)
    })
  )
})

describe("a PDF file for Gemini", () => {
  it.effect("has at most 1,000 pages and 52,428,800 bytes", () =>
    Effect.gen(function* () {
      const body = yield* send("google", [message("user", file(1_000), file(1_001), file(1, 52_428_801))])
      assert.strictEqual(filesIn(body), 1)
      assert.include(JSON.stringify(body), "1001 pages, 1000 are allowed")
      assert.include(JSON.stringify(body), "larger than 52428800 bytes")
      assert.deepStrictEqual(RequestRules.check("gemini", body), [])
    })
  )
})

describe("PDF files for OpenAI", () => {
  for (const [name, wire] of [
    ["openai", "chat"],
    ["openai-responses", "responses"]
  ] as const) {
    it.effect(`over ${name} have 50,000,000 bytes together`, () =>
      Effect.gen(function* () {
        const body = yield* send(name, [message("user", file(1, 30_000_000)), message("user", file(1, 30_000_000))])
        assert.strictEqual(filesIn(body), 1)
        assert.include(JSON.stringify(body), "the files of the request are larger than 50000000 bytes")
        assert.deepStrictEqual(RequestRules.check(wire, body), [])
      })
    )
  }
})

describe("a request to Anthropic", () => {
  it.effect("has 32,000,000 bytes, and loses its oldest media and no text", () =>
    Effect.gen(function* () {
      const left: Array<ReadonlyArray<Provider.LeftOutMedium>> = []
      const body = yield* send(
        "anthropic",
        [message("user", "old", file(1, 12_000_000)), message("user", "n".repeat(1_000_000), file(1, 12_000_000))],
        {},
        (media) => left.push(media)
      )
      assert.strictEqual(filesIn(body), 1)
      assert.include(JSON.stringify(body), "the request is larger than 32000000 bytes")
      assert.include(JSON.stringify(body), "n".repeat(1_000_000))
      assert.deepStrictEqual(RequestRules.check("anthropic", body), [])
      assert.deepStrictEqual(left.at(-1), [
        { type: "document", mediaType: "application/pdf", reason: "the request is larger than 32000000 bytes" }
      ])
    })
  )
})
