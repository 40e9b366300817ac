/** Sources that replies name: pages that a vendor's search found, and passages that a reply cites. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Agent, Content, Kernel, Message, Model, type Provider, RunStore, StreamPart } from "kernai"
import { AiSdkProvider } from "kernai/provider"
import { AnswerView } from "../../src/cli/chat/answerView.ts"
import { follow } from "../../src/cli/followRun.ts"
import { A2aFold } from "../../src/http/internal/a2aFold.ts"
import { artifactOf } from "../../src/http/internal/a2aTask.ts"
import { UiFold } from "../../src/http/internal/uiFold.ts"
import { memoryScreen } from "../cli/support.ts"
import { delta } from "../support/chatStream.ts"
import { kernel } from "../support/kernel.ts"
import { bodyOf, message, read, readingOf, request, vendors } from "../support/provider.ts"
import { told } from "../support/toolbox.ts"

const page = { url: "https://x.test/fjords", title: "Fjords" }

type Sent = readonly [vendor: string, found: object, events: ReadonlyArray<object>]

const anthropic = (citation: object) => [
  { type: "message_start", message: { id: "m" } },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "Deep" } },
  { type: "content_block_delta", index: 0, delta: { type: "citations_delta", citation } },
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn" } },
  { type: "message_stop" }
]

const responses = (annotation: object) => [
  { type: "response.output_text.delta", output_index: 0, content_index: 0, delta: "Deep" },
  { type: "response.output_text.annotation.added", output_index: 0, content_index: 0, annotation },
  {
    type: "response.completed",
    response: {
      status: "completed",
      output: [{ type: "message", content: [{ type: "output_text", text: "Deep", annotations: [annotation] }] }]
    }
  }
]

const grounded = (chunk: object) => [
  {
    candidates: [
      {
        content: { parts: [{ text: "Deep" }] },
        finishReason: "STOP",
        groundingMetadata: { groundingChunks: [chunk] }
      }
    ]
  }
]

const sent: ReadonlyArray<Sent> = [
  [
    "anthropic",
    { ...page, quote: "Very deep." },
    anthropic({ type: "web_search_result_location", ...page, cited_text: "Very deep." })
  ],
  [
    "anthropic",
    { title: "a.pdf", quote: "Very deep." },
    anthropic({ type: "page_location", document_title: "a.pdf", cited_text: "Very deep." })
  ],
  ["openai-responses", page, responses({ type: "url_citation", ...page, start_index: 0, end_index: 4 })],
  ["openai-responses", { title: "a.pdf" }, responses({ type: "file_citation", file_id: "f", filename: "a.pdf" })],
  [
    "compatible",
    page,
    [delta({ content: "Deep", annotations: [{ type: "url_citation", url_citation: page }] }), delta({}, "stop")]
  ],
  ["google", page, grounded({ web: { uri: page.url, title: page.title } })],
  ["google", page, grounded({ retrievedContext: { uri: page.url, title: page.title } })]
]

const factsOf = (part: StreamPart.Source) => ({
  ...(part.sourceType === "url" ? { url: part.url } : {}),
  title: part.title,
  ...(part.quote === undefined ? {} : { quote: part.quote })
})

const sourcesIn = (parts: ReadonlyArray<StreamPart.StreamPart>) =>
  parts.flatMap((part) => (part.type === "source" ? [factsOf(part)] : []))

const scripted = (...parts: ReadonlyArray<StreamPart.StreamPart>): Provider.ProviderShape => ({
  name: "cites",
  stream: () => Stream.fromIterable([StreamPart.text("Deep"), ...parts, StreamPart.finish()])
})

const cited = (id: string, given: object): StreamPart.StreamPart => ({
  type: "source",
  sourceType: "url",
  id,
  ...page,
  ...given
})

const agent = Agent.make({ instructions: "", model: Model.make("m"), dialect: "tools" })

const keptOf = (provider: Provider.ProviderShape) =>
  Effect.map(Kernel.run(agent, "?", { provider, runId: "run" }), ({ messages }) => Message.sources(messages))

describe("a source that a reply names", () => {
  it.effect.each(sent)("is a part of the reply, once (%s %o)", ([vendor, found, events]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual(sourcesIn((yield* readingOf(vendor, events)).parts), [found])
    })
  )

  it.effect("arrives from models of the AI SDK", () =>
    Effect.gen(function* () {
      const stream = new ReadableStream({
        start(controller) {
          controller.enqueue({ type: "text-delta", id: "0", delta: "Deep" })
          controller.enqueue({ type: "source", sourceType: "url", id: "1", ...page })
          controller.enqueue({
            type: "source",
            sourceType: "document",
            id: "2",
            mediaType: "text/plain",
            title: "a.txt"
          })
          controller.enqueue({
            type: "finish",
            finishReason: { unified: "stop", raw: "stop" },
            usage: { inputTokens: {}, outputTokens: {} }
          })
          controller.close()
        }
      })
      const model = {
        specificationVersion: "v3",
        provider: "p",
        modelId: "m",
        supportedUrls: {},
        doStream: async () => ({ stream })
      }
      const provider = AiSdkProvider.fromModel(model as never)
      const { parts } = yield* read(provider.stream(request()))
      assert.deepStrictEqual(sourcesIn(parts), [page, { title: "a.txt" }])
    })
  )

  it.effect("is stored with the message and reaches the result, behind its text", () =>
    Effect.gen(function* () {
      const provider = scripted(cited("1", { quote: "Very deep." }))
      const result = yield* Kernel.run(agent, "?", { provider, runId: "run" })
      assert.strictEqual(result.text, "Deep")
      const content = [Content.text("Deep"), Content.source({ ...page, quote: "Very deep." })]
      assert.deepStrictEqual(result.finalMessage?.content, content)
      const state = yield* RunStore.RunStore.use((store) => store.load("run")).pipe(Effect.flatMap(Effect.fromOption))
      assert.deepStrictEqual(state.turns[0]?.message?.content, content)
      assert.strictEqual(Message.text({ role: "assistant", content }), "Deep")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("that a search found is kept with it, and once if it is cited later", () =>
    Effect.gen(function* () {
      const search: ReadonlyArray<StreamPart.StreamPart> = [
        { type: "tool-call", id: "s", name: "web_search", params: {}, providerExecuted: true },
        {
          type: "tool-result",
          id: "s",
          name: "web_search",
          result: { sources: [page, { url: "https://x.test/b" }] },
          isFailure: false,
          providerExecuted: true
        }
      ]
      const sources = yield* keptOf(scripted(...search, cited("1", { quote: "Very deep." })))
      assert.deepStrictEqual(sources, [
        Content.source({ url: "https://x.test/b" }),
        Content.source({ ...page, quote: "Very deep." })
      ])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is bounded, and its address is one of the web", () =>
    Effect.gen(function* () {
      const many = Array.from({ length: 1_000 }, (_, index) => cited(`${index}`, { url: `https://x.test/${index}` }))
      const hostile = [
        cited("a", { url: "javascript:alert(1)", title: "" }),
        cited("b", { url: "javascript:alert(1)", title: "t".repeat(10_000), quote: "q".repeat(10_000) })
      ]
      const sources = yield* keptOf(scripted(...hostile, ...many))
      assert.strictEqual(sources.length, 200)
      assert.isUndefined(sources[0]?.url)
      assert.isAtMost(sources[0]?.title?.length ?? 0, 501)
      assert.isAtMost(sources[0]?.quote?.length ?? 0, 2_001)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect.each(Object.keys(vendors))("is not part of a later request (%s)", (name) =>
    Effect.gen(function* () {
      const sentWith = (...content: ReadonlyArray<string | Content.Content>) =>
        bodyOf(
          name,
          request({ messages: [message("user", "?"), message("assistant", ...content), message("user", "and?")] })
        )
      assert.deepStrictEqual(yield* sentWith("Deep", Content.source(page)), yield* sentWith("Deep"))
    })
  )

  it.effect("is a link or a document of the message in `useChat`", () =>
    Effect.gen(function* () {
      const found: StreamPart.StreamPart = {
        type: "source",
        sourceType: "document",
        id: "2",
        mediaType: "text/plain",
        title: "a.pdf"
      }
      const { events } = yield* told(agent, "?", { provider: scripted(cited("1", {}), found), runId: "run" })
      const fold = new UiFold({ urlOf: (id) => id })
      const chunks = events.flatMap((event) => fold.push(event)).filter(({ type }) => type.startsWith("source-"))
      assert.deepStrictEqual(chunks, [
        { type: "source-url", sourceId: `${page.url}#1`, ...page },
        { type: "source-document", sourceId: "a.pdf#2", mediaType: "application/octet-stream", title: "a.pdf" }
      ])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is data of the artifact of an A2A task, once, behind the answer", () =>
    Effect.gen(function* () {
      const ids = { taskId: "run", contextId: "c" }
      const { events } = yield* told(agent, "?", { provider: scripted(cited("1", {})), runId: "run" })
      const fold = new A2aFold(ids, 0, (id) => id)
      const last = events.flatMap((event) => fold.push(event)).findLast((update) => "artifactUpdate" in update)
      const parts = [{ text: "Deep" }, { data: { sources: [page] } }]
      assert.containsSubset(last, { artifactUpdate: { artifact: { parts }, lastChunk: true } })
      const source = Content.source(page)
      assert.deepStrictEqual(artifactOf("Deep", [source, source])["parts"], parts)
      assert.deepStrictEqual(artifactOf("Deep")["parts"], [{ text: "Deep" }])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is listed below the answer on the command line, also in a chat, as text", () =>
    Effect.gen(function* () {
      const hostile = cited("2", { url: "https://x.test/b", title: "B\u001b[2J" })
      const provider = scripted(cited("1", {}), cited("3", {}), hostile)
      const isListed = (shown: string) => {
        assert.match(shown, /\nsources\n {2}Fjords, https:\/\/x\.test\/fjords\n {2}B.*, https:\/\/x\.test\/b\n$/)
        assert.notInclude(shown, "\u001b[2J")
      }
      const screen = memoryScreen()
      const events = Kernel.stream(agent, "?", { provider })
      yield* Effect.provide(follow(events, { form: "text", title: "a title" }), screen.layer)
      isListed(screen.progress())
      const quiet = memoryScreen()
      yield* Effect.provide(follow(events, { form: "quiet", title: "a title" }), quiet.layer)
      assert.notInclude(quiet.progress() + quiet.out(), "x.test")
      let seen = ""
      const write = (text: string) => {
        seen += text
      }
      const look = { columns: 60, colors: false }
      const view = new AnswerView(
        { out: write, progress: write, error: write, answers: { ...look, isTerminal: false }, ...look },
        look
      )
      for (const event of (yield* told(agent, "?", { provider })).events) view.show(event)
      isListed(seen)
    }).pipe(Effect.provide(kernel()))
  )

  it("survives its wire form, and needs an address or a title", () => {
    const source = Content.source({ ...page, quote: "Very deep." })
    assert.deepStrictEqual(Content.decode(Content.encode(source)), Content.decode(source))
    assert.strictEqual(Content.decode({ type: "source", quote: "x" })._tag, "Failure")
  })
})
