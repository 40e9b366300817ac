/** Media both ways: what each format is sent, and what becomes of media that a model makes. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option } from "effect"
import { Agent, Content, Kernel, Model, type Provider, RunEvent, RunStore } from "kernai"
import { MockProvider, Replay } from "kernai/testing"
import { kernel, of } from "../support/kernel.ts"
import { bodyOf, message, readingOf, request } from "../support/provider.ts"
import { told } from "../support/toolbox.ts"

const bytes = new Uint8Array([1, 2, 3])
const model = Model.make("m", { capabilities: ["text", "vision", "audio_in", "video_in", "document_in"] })
const textOnly = Model.make("m")

const pdf = Content.document({ data: bytes, mediaType: "application/pdf", filename: "a.pdf" })
const pdfUrl = Content.document({ url: "https://x.test/a.pdf", mediaType: "application/pdf" })
const note = Content.document({ data: new TextEncoder().encode("déjà"), mediaType: "text/plain" })
const wav = Content.audio({ data: bytes, mediaType: "audio/wav" })
const flac = Content.audio({ data: bytes, mediaType: "audio/flac" })

const contentOf = (name: string, part: Content.Content, of = model) =>
  Effect.map(bodyOf(name, request({ model: of, messages: [message("user", part)] })), (body) => {
    const { contents, input, messages } = body as {
      readonly messages?: ReadonlyArray<{ readonly content: unknown; readonly images?: unknown }>
      readonly contents?: ReadonlyArray<{ readonly parts: unknown }>
      readonly input?: ReadonlyArray<{ readonly content: unknown }>
    }
    return messages?.[0]?.content ?? contents?.[0]?.parts ?? input?.[0]?.content
  })

const base64 = "AQID"
const pdfData = `data:application/pdf;base64,${base64}`

describe("a medium is sent", () => {
  const cases: ReadonlyArray<readonly [name: string, what: string, part: Content.Content, expected: unknown]> = [
    [
      "anthropic",
      "a PDF file as a document with its name",
      pdf,
      [{ type: "document", source: { type: "base64", media_type: "application/pdf", data: base64 }, title: "a.pdf" }]
    ],
    [
      "anthropic",
      "a PDF file by its address",
      pdfUrl,
      [{ type: "document", source: { type: "url", url: "https://x.test/a.pdf" } }]
    ],
    [
      "anthropic",
      "a text as a document",
      note,
      [{ type: "document", source: { type: "text", media_type: "text/plain", data: "déjà" } }]
    ],
    ["anthropic", "no sound, which it cannot take", wav, [{ type: "text", text: Content.placeholder(wav) }]],
    ["openai", "a PDF file with its name", pdf, [{ type: "file", file: { filename: "a.pdf", file_data: pdfData } }]],
    ["openai", "no file by its address", pdfUrl, [{ type: "text", text: Content.placeholder(pdfUrl) }]],
    ["openai", "sound", wav, [{ type: "input_audio", input_audio: { data: base64, format: "wav" } }]],
    ["openai", "no sound in another format", flac, [{ type: "text", text: Content.placeholder(flac) }]],
    ["openai", "a text as text", note, [{ type: "text", text: "déjà" }]],
    ["compatible", "a PDF file", pdf, [{ type: "file", file: { filename: "a.pdf", file_data: pdfData } }]],
    ["google", "a PDF file", pdf, [{ inlineData: { mimeType: "application/pdf", data: base64 } }]],
    ["google", "sound in any format", flac, [{ inlineData: { mimeType: "audio/flac", data: base64 } }]],
    ["google-interactions", "sound", wav, [{ type: "audio", mime_type: "audio/wav", data: base64 }]],
    ["ollama", "no PDF file", pdf, Content.placeholder(pdf)]
  ]
  for (const [name, what, part, expected] of cases) {
    it.effect(`to ${name}: ${what}`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* contentOf(name, part), expected)
      })
    )
  }

  it.effect("only to a model that accepts its kind; a text document is sent to any as text", () =>
    Effect.gen(function* () {
      for (const name of ["anthropic", "openai", "google"]) {
        assert.include(JSON.stringify(yield* contentOf(name, pdf, textOnly)), Content.placeholder(pdf))
        assert.include(JSON.stringify(yield* contentOf(name, note, textOnly)), "déjà")
      }
    })
  )
})

const png = Content.image({ data: bytes, mediaType: "image/png" })
const made = { type: "file", mediaType: "image/png", data: base64 } as const
const agent = Agent.make({ instructions: "Draw.", model })

const drawing = () =>
  MockProvider.make([made, { type: "finish", reason: "stop", usage: { inputTokens: {}, outputTokens: {} } }])

describe("a medium that a model makes", () => {
  it.effect("is read from Gemini's formats as a file, in pieces too", () =>
    Effect.gen(function* () {
      const gemini = yield* readingOf("google", [
        {
          candidates: [
            { content: { parts: [{ text: "Here" }, { inlineData: { mimeType: "image/png", data: base64 } }] } }
          ]
        },
        { candidates: [{ finishReason: "STOP" }] }
      ])
      assert.deepStrictEqual(
        gemini.parts.filter(({ type }) => type === "file"),
        [made]
      )
      const interactions = yield* readingOf("google-interactions", [
        { event_type: "step.start", index: 0, step: { type: "model_output" } },
        { event_type: "step.delta", index: 0, delta: { type: "image", mime_type: "image/png", data: "AQ" } },
        { event_type: "step.delta", index: 0, delta: { type: "image", data: "ID" } },
        { event_type: "step.stop", index: 0 },
        { event_type: "interaction.completed", interaction: { status: "completed" } }
      ])
      assert.deepStrictEqual(
        interactions.parts.filter(({ type }) => type === "file"),
        [made]
      )
    })
  )

  it.effect("is stored, emitted as an event, and named by its message; a reply with nothing else is an answer", () =>
    Effect.gen(function* () {
      const run = yield* told(agent, "a dot", { provider: drawing(), runId: "run" })
      assert.strictEqual(run.text, "")
      const event = of(run.events, "model_completed")[0] ?? assert.fail("no event")
      const made = event.message.content[0] ?? assert.fail("no content")
      assert.deepInclude(made, { type: "image", mediaType: "image/png" })
      const state = yield* RunStore.RunStore.use((store) => store.load("run")).pipe(Effect.flatMap(Effect.fromOption))
      assert.deepStrictEqual(state.turns[0]?.message?.content, [made])
      assert.isString(made.type === "image" ? made.fileId : undefined)
      assert.notInclude(JSON.stringify(RunEvent.toJson(event)), base64)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is in the same place when the run is replayed", () =>
    Effect.gen(function* () {
      yield* told(agent, "a dot", { provider: drawing(), runId: "run" })
      const before = yield* RunStore.RunStore.use((store) => store.load("run")).pipe(Effect.flatMap(Effect.fromOption))
      const { state } = yield* Replay.run(agent, "run")
      assert.deepStrictEqual(state.turns[0]?.message, before.turns[0]?.message)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("goes back to the model on the next turn", () =>
    Effect.gen(function* () {
      const asked: Array<Provider.Request> = []
      let found: Option.Option<unknown> = Option.none()
      const provider = MockProvider.make().onCall((ask, call) => {
        asked.push(ask)
        if (call === 0) return [made, { type: "tool-call", id: "c", name: "look", params: {} }, finishing]
        const image = ask.messages.flatMap(({ content }) => content).find(Content.isMedia)
        return Effect.orDie(ask.media.get(image?.fileId ?? "")).pipe(
          Effect.map((medium) => {
            found = medium
            return "a dot"
          })
        )
      })
      yield* Kernel.run({ ...agent, dialect: "tools" }, "a dot", { provider })
      assert.lengthOf(asked, 2)
      assert.isTrue(Option.isSome(found))
    }).pipe(Effect.provide(kernel()))
  )

  const answered = (name: string, ...content: ReadonlyArray<Content.Content | string>) =>
    bodyOf(
      name,
      request({
        model,
        tools: [{ name: "add", description: "", inputSchema: { type: "object" } }],
        messages: [message("user", "a dot"), message("assistant", ...content), message("user", "bigger")]
      })
    )

  it.effect("is sent in the model's own message if the format allows it, else in a user message", () =>
    Effect.gen(function* () {
      const roles = (body: unknown) => {
        const { contents, messages } = body as { readonly [key: string]: ReadonlyArray<{ readonly role: string }> }
        return (messages ?? contents ?? []).map(({ role }) => role)
      }
      const gemini = yield* answered("google", "Here", png)
      assert.deepStrictEqual(roles(gemini), ["user", "model", "user"])
      assert.include(JSON.stringify(gemini), `{"inlineData":{"mimeType":"image/png","data":"${base64}"}}`)
      for (const name of ["anthropic", "openai"]) {
        const body = yield* answered(name, "Here", png)
        assert.deepStrictEqual(roles(body), ["user", "assistant", "user", "user"])
        assert.include(JSON.stringify(body), base64)
        assert.deepStrictEqual(roles(yield* answered(name, png)), ["user", "user", "user"])
      }
    })
  )

  it.effect("becomes a text in a message with calls, whose results must follow at once", () =>
    Effect.gen(function* () {
      const call = Content.toolUse("c", "add", {})
      for (const name of ["anthropic", "openai"]) {
        const body = JSON.stringify(yield* answered(name, png, call))
        assert.notInclude(body, base64)
        assert.include(body, "[image unavailable: image/png]")
      }
    })
  )
})

const finishing = {
  type: "finish",
  reason: "tool-calls",
  usage: { inputTokens: {}, outputTokens: {} }
} as const
