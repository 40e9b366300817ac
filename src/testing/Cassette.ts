/**
 * Records HTTP exchanges and plays them back.
 *
 * A cassette is data: requests and responses, byte for byte. It never identifies a person or an account: only a short
 * list of headers is kept, and credentials are replaced wherever they occur. Playback needs no network and can cut a
 * body anywhere.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Content from "../Content.ts"
import type { Json } from "../kit/json.ts"
import * as Read from "../kit/files.ts"
import { StoreError } from "../KernelError.ts"
import * as Limits from "../Limits.ts"
import * as CassetteFile from "./internal/cassetteFile.ts"
import { notRecorded } from "./internal/cassetteFile.ts"
import * as Cuts from "./internal/chunks.ts"
import * as Redaction from "./internal/anonymize.ts"

const Headers = Schema.Record(Schema.String, Schema.String)

/**
 * The schema of one request and its response. `frames` is the body, split where its events or lines end.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Exchange = Schema.Struct({
  request: Schema.Struct({
    method: Schema.String,
    url: Schema.String,
    headers: Headers,
    body: Schema.Json
  }),
  response: Schema.Struct({
    status: Schema.Int,
    headers: Headers,
    format: Schema.Literals(["json", "sse", "ndjson", "text"]),
    body: Schema.String,
    frames: Schema.Array(Schema.String)
  }),
  recorded_at: Schema.optionalKey(Schema.String),
  /** The expected interpretation of the exchange, in recordings made for tests. */
  expected: Schema.optionalKey(Schema.Json)
})
/**
 * A request and its response, as stored in a cassette.
 *
 * @category models
 * @since 0.1.0
 */
export type Exchange = typeof Exchange.Type

/**
 * The schema of a recording.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Cassette = Schema.Struct({
  source: Schema.optionalKey(Schema.Json),
  vendor: Schema.String,
  name: Schema.String,
  model: Schema.String,
  interactions: Schema.Array(Exchange),
  expected_result: Schema.optionalKey(Schema.Json)
})
/**
 * The exchanges of one recording, in order, and the service they were recorded from.
 *
 * @category models
 * @since 0.1.0
 */
export type Cassette = typeof Cassette.Type

export type {
  /**
   * How a body is cut on playback: not at all, at its frames, into pieces of a number of bytes, into pieces of these
   * sizes in bytes, or at random places from a seed. Pieces of bytes may end inside a character.
   *
   * @category models
   * @since 0.1.0
   */
  Cut
} from "./internal/chunks.ts"

/**
 * Reads a cassette from its JSON text.
 *
 * @category constructors
 * @since 0.1.0
 */
export const parse = (text: string): Effect.Effect<Cassette, StoreError> => read(text, "it")

const read = (text: string, name: string) =>
  Effect.mapError(Effect.flatMap(json(text), decode), () =>
    broken("read a cassette", `${name} is not a recording in a known format`)
  )

// Fails for JSON that nests too deeply for a schema.
const json = (text: string) =>
  Effect.flatMap(Effect.try({ try: (): unknown => JSON.parse(text), catch: () => "no JSON" as const }), (value) =>
    Effect.fromResult(Content.json(value))
  )

const decode = Schema.decodeUnknownEffect(Cassette)

/**
 * Reads a cassette from a plain file of at most `Limits.fetchedBytes`. If recording stopped inside an exchange, that
 * exchange is left out and a warning is logged.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromFile = Effect.fnUntraced(function* (file: string) {
  const files = yield* FileSystem.FileSystem
  const { fetchedBytes } = yield* Limits.Limits
  const text = yield* Effect.mapError(Read.text(files, file, fetchedBytes), (refusal) =>
    unread(file, refusal, fetchedBytes)
  )
  return yield* Effect.catch(read(text, `'${file}'`), (error) =>
    text.endsWith(CassetteFile.tail)
      ? Effect.fail(error)
      : parse(CassetteFile.untilCut(text)).pipe(
          Effect.mapError(() => error),
          Effect.tap(() => Effect.logWarning(`'${file}' was cut off: its last exchange is left out`))
        )
  )
})

const unread = (file: string, refusal: Read.Refusal, maxBytes: number) =>
  new StoreError({
    operation: "read a cassette",
    reason: refusal === Read.tooLarge(maxBytes) ? "limit_exceeded" : "unavailable",
    detail: `'${file}' ${typeof refusal === "string" ? `is ${refusal}` : "cannot be read"}`
  })

/**
 * Options for playback.
 *
 * @category models
 * @since 0.1.0
 */
export interface PlayOptions {
  /** Default: at its frames. */
  readonly cut?: Cuts.Cut | undefined
  /** Checks each request before its response is played. A failure fails the request. */
  readonly check?: ((recorded: Exchange, asked: Json, index: number) => Effect.Effect<void, string>) | undefined
}

/**
 * Creates an HTTP client that responds from a recording and opens no connection.
 *
 * The exchanges are played in order, each once, for requests of the same method and path. A request that was not
 * recorded fails.
 *
 * @category constructors
 * @since 0.1.0
 */
export const player = (exchanges: ReadonlyArray<Exchange>, options?: PlayOptions): HttpClient.HttpClient => {
  const waiting = Map.groupBy(exchanges.entries(), ([, { request }]) =>
    keyOf(request.method, Redaction.pathOf(request.url))
  )
  return HttpClient.make((request, url) =>
    Effect.suspend(() => {
      const next = waiting.get(keyOf(request.method, url.pathname))?.shift()
      if (next === undefined) {
        return Effect.fail(refusal(request, `no exchange was recorded for ${request.method} ${url.pathname}`))
      }
      const [index, exchange] = next
      const checked = options?.check?.(exchange, Redaction.bodyOf(request), index) ?? Effect.void
      return checked.pipe(
        Effect.mapError((reason) => refusal(request, reason)),
        Effect.as(play(request, exchange, options?.cut ?? "frames"))
      )
    })
  )
}

/**
 * Provides a recording as the HTTP client.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerReplay = (cassette: Cassette, options?: PlayOptions): Layer.Layer<HttpClient.HttpClient> =>
  Layer.sync(HttpClient.HttpClient, () => player(cassette.interactions, options))

/**
 * Options of a cassette file.
 *
 * @category models
 * @since 0.1.0
 */
export interface FileOptions {
  readonly file: string
  /** `none` only plays, `new` plays recorded exchanges and records others, `all` records everything anew. */
  readonly mode: "none" | "new" | "all"
  /** Default: at its frames. */
  readonly cut?: Cuts.Cut | undefined
  /** The recorded service. Default: that of the file, or the host of the requests. */
  readonly vendor?: string | undefined
  /** The name of the recording. Default: that in the file, or the name of the file. */
  readonly name?: string | undefined
}

/**
 * Provides an HTTP client that plays a file and, depending on the mode, records into it.
 *
 * Each complete exchange is written into the file when it ends. An exchange that was not read to its end is not
 * recorded, nor is one that would make the file larger than `Limits.fetchedBytes`, the limit for reading it back. Both
 * are logged.
 *
 * When it is released, the layer waits at most `Limits.cleanUpTimeout` until everything is written. An exchange that
 * cannot be written is logged as an error, and the release of the layer dies with a `StoreError`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  options: FileOptions
): Layer.Layer<HttpClient.HttpClient, StoreError, FileSystem.FileSystem | HttpClient.HttpClient> =>
  Layer.effect(
    HttpClient.HttpClient,
    Effect.gen(function* () {
      const files = yield* FileSystem.FileSystem
      const outside = yield* HttpClient.HttpClient
      const isThere = yield* Effect.orElseSucceed(files.exists(options.file), () => false)
      const old =
        options.mode !== "all" && (isThere || options.mode === "none") ? yield* fromFile(options.file) : undefined
      const inside = player(old?.interactions ?? [], options.cut === undefined ? {} : { cut: options.cut })
      if (options.mode === "none") return inside

      const { file, name, vendor } = options
      const recording = recordingOf(outside, yield* CassetteFile.make(files, { file, name, old, vendor }))
      if (options.mode === "all") return recording
      return HttpClient.make((request) =>
        Effect.catchIf(
          inside.execute(request),
          (error) => error.reason._tag === "EncodeError",
          () => recording.execute(request)
        )
      )
    })
  )

/**
 * Wraps an HTTP client and passes each complete exchange to `save`.
 *
 * A body of more than `Limits.fetchedBytes`, one that is not read to its end, and a redirect are passed on but not
 * recorded, which is logged.
 *
 * @category constructors
 * @since 0.1.0
 */
export const recorder = (
  client: HttpClient.HttpClient,
  save: (exchange: Exchange) => Effect.Effect<void>
): HttpClient.HttpClient =>
  recordingOf(client, (exchange) =>
    // A reader that has everything it needs may stop before the end.
    Effect.onInterrupt(save(exchange), () => notRecorded("its reader did not wait until it was written"))
  )

const recordingOf = (
  client: HttpClient.HttpClient,
  save: (exchange: Exchange) => Effect.Effect<void>
): HttpClient.HttpClient =>
  HttpClient.make(
    Effect.fnUntraced(function* (request) {
      const { fetchedBytes } = yield* Limits.Limits
      const response = yield* client.execute(request)
      if (response.status >= 300 && response.status < 400) {
        // Most clients read only the target of a redirect, which is not recorded.
        yield* notRecorded("it is a redirect")
        return response
      }
      const utf8 = new TextDecoder()
      let body = ""
      let size = 0
      let isRead = false
      const done = Effect.suspend(() => {
        isRead = true
        return size > fetchedBytes
          ? notRecorded(`its body is ${Read.tooLarge(fetchedBytes)}`)
          : save(Redaction.exchange(request, response, body))
      })
      const stream = response.stream.pipe(
        // Treats an empty body as an empty text.
        Stream.catchIf(
          (error) => error.reason._tag === "EmptyBodyError",
          () => Stream.empty
        ),
        Stream.mapArray((chunks) => {
          for (const chunk of chunks) {
            size += chunk.length
            body = size > fetchedBytes ? "" : body + utf8.decode(chunk, { stream: true })
          }
          return chunks
        }),
        Stream.concat(Stream.drain(Stream.fromEffect(done))),
        Stream.ensuring(Effect.suspend(() => (isRead ? Effect.void : notRecorded("its end was not read"))))
      )
      return withStream(response, stream)
    })
  )

const keyOf = (method: string, path: string): string => `${method} ${path}`

const play = (
  request: HttpClientRequest.HttpClientRequest,
  exchange: Exchange,
  cut: Cuts.Cut
): HttpClientResponse.HttpClientResponse => {
  const { body, frames, headers, status } = exchange.response
  const response = HttpClientResponse.fromWeb(request, new Response(null, { status, headers }))
  return withStream(response, Stream.rechunk(Stream.fromArray(Cuts.pieces(body, frames, cut)), 1))
}

const withStream = (
  response: HttpClientResponse.HttpClientResponse,
  stream: Stream.Stream<Uint8Array, HttpClientError.HttpClientError>
): HttpClientResponse.HttpClientResponse => {
  // Read once and cached.
  const bytes = Effect.runSync(Effect.cached(Stream.mkUint8Array(stream)))
  const text = Effect.map(bytes, (bytes) => new TextDecoder().decode(bytes))
  return Object.create(response, {
    stream: { get: () => stream },
    arrayBuffer: { get: () => Effect.map(bytes, ({ buffer }) => buffer) },
    text: { get: () => text },
    json: { get: () => Effect.flatMap(text, (text) => jsonOf(response, text)) }
  })
}

const jsonOf = (response: HttpClientResponse.HttpClientResponse, text: string) =>
  Effect.fromResult(
    Result.try({
      try: (): unknown => (text === "" ? null : JSON.parse(text)),
      catch: () =>
        new HttpClientError.HttpClientError({
          reason: new HttpClientError.DecodeError({ request: response.request, response, description: "no JSON" })
        })
    })
  )

const refusal = (request: HttpClientRequest.HttpClientRequest, description: string) =>
  new HttpClientError.HttpClientError({ reason: new HttpClientError.EncodeError({ request, description }) })

const broken = (operation: string, detail: string) => new StoreError({ operation, reason: "corrupt", detail })
