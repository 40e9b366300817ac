/** What provider tests share: requests, stubbed HTTP clients, and how a stream is read. */
import { Effect, Layer, Redacted, Stream } from "effect"
import { HttpClient, HttpClientError, HttpClientResponse } from "effect/http"
import type { HttpClientRequest } from "effect/http"
import * as fs from "node:fs"
import * as path from "node:path"
import * as Content from "../../src/Content.ts"
import type { ProviderError } from "../../src/KernelError.ts"
import type { Message, Role } from "../../src/Message.ts"
import * as Model from "../../src/Model.ts"
import type { MediaLookup, ProviderShape, Request } from "../../src/Provider.ts"
import {
  AnthropicProvider,
  GeminiInteractionsProvider,
  GeminiProvider,
  OllamaProvider,
  OpenAiCompatibleProvider,
  OpenAiProvider
} from "../../src/provider/index.ts"
import type { StreamPart } from "../../src/StreamPart.ts"

export const key = Redacted.make("sk-SECRET-0123456789abcdef")

type Make = (options: { readonly baseUrl?: string }) => Effect.Effect<ProviderShape, never, HttpClient.HttpClient>

/** The adapters by vendor, each with the same key. */
export const vendors: { readonly [vendor: string]: Make } = {
  anthropic: (options) => AnthropicProvider.make({ ...options, apiKey: key }),
  openai: (options) => OpenAiProvider.make({ ...options, apiKey: key }),
  "openai-responses": (options) => OpenAiProvider.make({ ...options, api: "responses", apiKey: key }),
  compatible: (options) =>
    OpenAiCompatibleProvider.make({ name: "local", baseUrl: "http://localhost:8080/v1", ...options, apiKey: key }),
  ollama: (options) => OllamaProvider.make({ ...options, apiKey: key }),
  google: (options) => GeminiProvider.make({ ...options, apiKey: key }),
  "google-interactions": (options) => GeminiInteractionsProvider.make({ ...options, apiKey: key })
}

export const vendor = (name: string): Make => {
  const make = vendors[name]
  if (make === undefined) throw new Error(`no adapter '${name}'`)
  return make
}

export const noMedia: MediaLookup = {
  get: () => Effect.succeedNone,
  bytes: (id) => Effect.die(`no media ${id}`)
}

export const message = (role: Role, ...content: ReadonlyArray<string | Content.Content>): Message => ({
  role,
  content: content.map((part) => (typeof part === "string" ? Content.text(part) : part))
})

export const request = (options: Partial<Request> & { readonly messages?: ReadonlyArray<Message> } = {}): Request => ({
  model: Model.make("m-text"),
  messages: [message("user", "hi")],
  tools: [],
  generation: {},
  media: noMedia,
  ...options
})

/** An HTTP client that answers with `respond` and keeps what it was asked. */
export const stub = (
  respond: (request: HttpClientRequest.HttpClientRequest, call: number) => Effect.Effect<Response, "refused">
) => {
  const asked: Array<{
    readonly url: string
    readonly headers: { readonly [name: string]: string }
    readonly body: unknown
  }> = []
  const client = HttpClient.make((request, url) =>
    Effect.suspend(() => {
      const body = request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : "null"
      asked.push({ url: url.href, headers: request.headers, body: JSON.parse(body) })
      return respond(request, asked.length - 1)
    }).pipe(
      Effect.map((response) => HttpClientResponse.fromWeb(request, response)),
      Effect.mapError(
        () => new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request }) })
      )
    )
  )
  return { client, asked, layer: Layer.succeed(HttpClient.HttpClient, client) }
}

/** The body a vendor would be sent for a request. */
export const bodyOf = (name: string, ask: Request): Effect.Effect<unknown> =>
  Effect.gen(function* () {
    const http = stub(() => Effect.fail("refused"))
    const provider = yield* Effect.provide(vendor(name)({}), http.layer)
    yield* Effect.ignore(Effect.timeout(Stream.runDrain(provider.stream(ask)), 0))
    return http.asked[0]?.body
  })

export interface Read {
  readonly parts: ReadonlyArray<StreamPart>
  readonly text: string
  readonly deltas: ReadonlyArray<string>
}

/** Everything a stream gave. */
export const read = (stream: Stream.Stream<StreamPart, ProviderError>): Effect.Effect<Read, ProviderError> =>
  Effect.map(Stream.runCollect(stream), (parts) => {
    const deltas = parts.flatMap((part) => (part.type === "text-delta" ? [part.delta] : []))
    return { parts, deltas, text: deltas.join("") }
  })

export const finishOf = (parts: ReadonlyArray<StreamPart>) => parts.find((part) => part.type === "finish")

const fixtures = path.join(import.meta.dirname, "../fixtures")

/** Every cassette of a folder of fixtures, as text. */
export const cassettes = (folder: string): ReadonlyArray<{ readonly name: string; readonly text: string }> =>
  fs
    .readdirSync(path.join(fixtures, folder))
    .filter((file) => file.endsWith(".json"))
    .map((file) => ({
      name: file.replace(/\.json$/, ""),
      text: fs.readFileSync(path.join(fixtures, folder, file), "utf8")
    }))

/** Server-sent events, each an object or a text of its own. */
export const serverSent = (list: ReadonlyArray<object | string>, newline = "\n"): Response =>
  new Response(
    list.map((item) => `data: ${typeof item === "string" ? item : JSON.stringify(item)}${newline}${newline}`).join("")
  )

/** How an adapter reads one response of these events, and what it asked. */
export const readingOf = (name: string, list: ReadonlyArray<object | string>, newline?: string) =>
  Effect.gen(function* () {
    const http = stub(() => Effect.succeed(serverSent(list, newline)))
    const provider = yield* Effect.provide(vendor(name)({}), http.layer)
    return { ...(yield* read(provider.stream(request()))), asked: http.asked[0] }
  })

export const tool = { name: "add", description: "Adds", inputSchema: { type: "object" } } as const

export const picture = Content.image({ data: new Uint8Array([1, 2, 3]), mediaType: "image/png" })

export const vision = Model.make("m", { capabilities: ["text", "vision"] })

/** What a model that takes every kind of media is shown. */
export const attachments = message(
  "user",
  picture,
  Content.document({ url: "https://x.test/a.pdf", mediaType: "application/pdf" })
)
