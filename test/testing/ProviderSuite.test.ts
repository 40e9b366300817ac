/** The suite for providers passes each adapter, and finds what is wrong with one of its own. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { Message, Provider, StreamPart } from "kernai"
import { MessageEncoder } from "kernai/provider"
import { Cassette, ProviderSuite, type RequestRules } from "kernai/testing"
import { cassettes, key, vendor } from "../support/provider.ts"

const secret = Redacted.value(key)

const recorded = [...cassettes("cassettes"), ...cassettes("synthetic")]

/** The first exchange of a vendor that says something. */
const replyOf = Effect.fnUntraced(function* (name: string) {
  for (const { text } of recorded) {
    const cassette = yield* Cassette.parse(text)
    const exchange = cassette.interactions[0]
    const said = exchange?.expected as { readonly content?: string } | undefined
    if (cassette.vendor !== name || exchange === undefined || (said?.content ?? "") === "") continue
    return {
      body: exchange.response.body,
      text: said?.content ?? "",
      contentType: exchange.response.headers["content-type"]
    }
  }
  return assert.fail(`no reply of ${name}`)
})

const wires: { readonly [name: string]: RequestRules.Wire } = {
  anthropic: "anthropic",
  openai: "chat",
  "openai-responses": "responses",
  ollama: "ollama",
  google: "gemini",
  "google-interactions": "gemini-interactions"
}

for (const [name, wire] of Object.entries(wires)) {
  describe(name, () => {
    const names = ProviderSuite.checks({ open: vendor(name)({}), reply: { body: "", text: "" }, secret, wire })
    names.forEach((check, index) => {
      it.effect(check.name, () =>
        Effect.gen(function* () {
          const reply = yield* replyOf(name)
          yield* ProviderSuite.checks({ open: vendor(name)({}), reply, secret, wire })[index]?.run ?? Effect.void
        })
      )
    })
  })
}

// ---------------------------------------------------------------- a provider of one's own, and its mistakes

const failed = (reason: Provider.ProviderError["reason"], detail: string, status?: number) =>
  new Provider.ProviderError({ provider: "house", reason, detail, ...(status === undefined ? {} : { status }) })

const reasonOf = (status: number) =>
  status === 401 ? "authentication" : status === 429 ? "rate_limited" : status >= 500 ? "server_error" : "unknown"

interface Mistake {
  readonly text?: (message: Message.Message, said: string) => string
  readonly isNumbered?: boolean
  readonly reason?: (status: number) => Provider.ProviderError["reason"]
  readonly detail?: (body: string) => string
  readonly parts?: (parts: Stream.Stream<StreamPart.StreamPart, Provider.ProviderError>) => typeof parts
}

const house = ({
  detail,
  isNumbered = false,
  parts: changed = (parts) => parts,
  reason = reasonOf,
  text
}: Mistake = {}) =>
  Effect.map(HttpClient.HttpClient, (client): Provider.ProviderShape => {
    const encode = MessageEncoder.make({ provider: "house", media: {} }, (message, pieces) => {
      const said = pieces.flatMap((piece) => (piece.kind === "text" ? [piece.text] : [])).join(" ")
      return text?.(message, said) ?? said
    })
    let asked = 0
    const ask = Effect.fnUntraced(function* (request: Provider.Request) {
      const response = yield* HttpClientRequest.post("http://localhost/talk").pipe(
        HttpClientRequest.bodyJsonUnsafe({ talk: yield* encode(request), ...(isNumbered ? { number: asked++ } : {}) }),
        client.execute,
        Effect.mapError(() => failed("disconnected", "no answer"))
      )
      if (response.status !== 200) {
        const body = yield* Effect.orElseSucceed(response.text, () => "")
        return Stream.fail(failed(reason(response.status), detail?.(body) ?? "refused", response.status))
      }
      let isFinished = false
      const lines = response.stream.pipe(
        Stream.mapError(() => failed("disconnected", "lost")),
        Stream.decodeText(),
        Stream.splitLines,
        Stream.map((line): StreamPart.StreamPart => {
          isFinished ||= line === "."
          return line === "." ? StreamPart.finish() : StreamPart.text(line)
        })
      )
      const end = Stream.suspend(() => (isFinished ? Stream.empty : Stream.fail(failed("incomplete", "cut"))))
      return changed(Stream.concat(lines, end))
    })
    return { name: "house", stream: (request) => Stream.unwrap(ask(request)) }
  })

const failing = (mistake: Mistake) =>
  Effect.gen(function* () {
    const reply = { body: "Good \nevening, everyone\n.\n", text: "Good evening, everyone" }
    const found: Array<string> = []
    for (const { name, run } of ProviderSuite.checks({ open: house(mistake), reply, secret })) {
      if ((yield* Effect.exit(run))._tag === "Failure") found.push(name)
    }
    return found
  })

describe("a provider of one's own", () => {
  it.effect("passes every check when it does everything right", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* failing({}), [])
    })
  )

  const incomplete = "fails as incomplete when its reply is cut"
  const mistakes: { readonly [mistake: string]: readonly [Mistake, string] } = {
    "says its text twice": [
      { parts: Stream.map((part) => (part.type === "text-delta" ? { ...part, delta: part.delta.repeat(2) } : part)) },
      "reads its reply the same, however the network cuts it"
    ],
    "finishes twice": [
      { parts: (parts) => Stream.concat(parts, Stream.succeed(StreamPart.finish())) },
      "ends a reply with its only finish part"
    ],
    "takes a cut reply for a whole one": [{ parts: Stream.catch(() => Stream.empty) }, incomplete],
    "takes each refusal for the same": [{ reason: () => "unknown" }, "names the reason and the status of a refusal"],
    "repeats what the vendor said": [{ detail: (body) => body }, "does not show its key in errors"],
    "forgets what results say": [
      { text: (message, said) => (message.role === "tool" ? "" : said) },
      "sends every text of a conversation, and a placeholder for media its model does not take"
    ],
    "numbers its requests": [
      { isNumbered: true },
      "sends a message the same way each time, so that a vendor can cache the prefix"
    ],
    "reads on when nobody listens": [
      {
        parts: (parts) =>
          Stream.unwrap(Effect.map(Effect.forkDetach(Stream.runDrain(parts)), () => Stream.make(StreamPart.finish())))
      },
      "ends its request when its reader stops"
    ]
  }
  for (const [mistake, [change, check]] of Object.entries(mistakes)) {
    it.effect(`fails a check when it ${mistake}`, () =>
      Effect.gen(function* () {
        assert.include(yield* failing(change), check)
      })
    )
  }
})

describe("a provider that says which format it speaks", () => {
  it.effect("fails a check for each kind of conversation that it sends as it is", () =>
    Effect.gen(function* () {
      const plain = Effect.map(HttpClient.HttpClient, (client): Provider.ProviderShape => ({
        name: "plain",
        stream: ({ messages }) =>
          Stream.unwrap(
            HttpClientRequest.post("http://localhost/v1/chat/completions").pipe(
              HttpClientRequest.bodyJsonUnsafe({
                messages: messages.map(({ content, role }) => ({ role, content: JSON.stringify(content) }))
              }),
              client.execute,
              Effect.mapError(() => failed("disconnected", "no answer")),
              Effect.as(Stream.make(StreamPart.finish()))
            )
          )
      }))
      const reply = { body: "", text: "" }
      const checks = ProviderSuite.checks({ open: plain, reply, secret, wire: "chat" })
      const found: Array<string> = []
      for (const { name, run } of checks.filter(({ name }) => name.includes("its vendor accepts"))) {
        if ((yield* Effect.exit(run))._tag === "Failure") found.push(name)
      }
      assert.isAbove(found.length, 5)
    })
  )
})
