/**
 * The one-endpoint transport: effect's, and beside it the stream on which a
 * server tells that its lists changed.
 *
 * @since 0.1.0
 */
import * as McpClient from "effect/ai/McpClient"
import { HttpError, McpClientError } from "effect/ai/McpClientError"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import { parseJson } from "../../internal/untrusted.ts"
import { Limits } from "../../Limits.ts"
import type { HttpServer } from "../McpConfig.ts"
import * as Exchange from "./exchange.ts"
import * as Handshake from "./handshake.ts"
import * as Http from "./http.ts"

/** A transport, and what follows the server's own stream until it is interrupted or the server has none. */
export interface StreamableHttp {
  readonly transport: McpClient.Transport
  readonly listen: Effect.Effect<void>
}

/** Prepares the transport for the time of the scope. */
export const open = /*#__PURE__*/ Effect.fnUntraced(function* (
  server: HttpServer,
  base: HttpClient.HttpClient,
  listener: Exchange.Listener,
  handshake: Handshake.Handshake
): Effect.fn.Return<StreamableHttp, McpClientError, Scope.Scope> {
  const limits = yield* Limits
  const modern = handshake.offer === "2026-07-28"
  let session: string | undefined
  const client = base.pipe(
    HttpClient.mapRequest((request) => (modern ? request : withVersion(request, handshake))),
    HttpClient.tap((response) =>
      Effect.map(Answer, (answer) => {
        session ??= response.headers["mcp-session-id"]
        answer.movedTo = Http.movedTo(response, server.url)
      })
    )
  )
  const inner = yield* McpClient.http({
    url: server.url,
    protocol: modern ? McpProtocol.v2026_07_28 : McpProtocol.v2025_11_25,
    maxMessageBytes: limits.frameBytes
  }).pipe(Effect.provideService(HttpClient.HttpClient, client))
  const transport: McpClient.Transport = {
    ...inner,
    request: Effect.fnUntraced(function* (message, tool) {
      const answer: Noted = {}
      return yield* Effect.mapError(Effect.provideService(inner.request(message, tool), Answer, answer), (error) => {
        const { reason } = error
        return reason._tag === "HttpError" && Math.floor(reason.status / 100) === 3
          ? new McpClientError({ reason: new HttpError({ status: reason.status, description: answer.movedTo }) })
          : error
      })
    })
  }

  const withSession = (request: HttpClientRequest.HttpClientRequest) =>
    session === undefined ? request : HttpClientRequest.setHeader(request, "mcp-session-id", session)

  const answer = (text: string) => {
    const message = Option.flatMap(Result.getSuccess(parseJson(text, limits.jsonDepth)), Exchange.decodeMessage)
    if (Option.isNone(message)) return Effect.void
    if (Exchange.isNotification(message.value)) {
      listener.onNotification(message.value.method)
      return Effect.void
    }
    if (!Exchange.isRequest(message.value)) return Effect.void
    const post = HttpClientRequest.post(server.url).pipe(
      withSession,
      HttpClientRequest.setHeader("accept", "application/json, text/event-stream"),
      HttpClientRequest.bodyJsonUnsafe(Exchange.reply(message.value))
    )
    return Effect.ignore(Effect.scoped(HttpClient.withScope(client).execute(post)))
  }

  // A stream that ends or breaks is opened again; a server that refuses to open one has none.
  const ask = modern
    ? HttpClientRequest.post(server.url).pipe(
        HttpClientRequest.setHeaders({
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": handshake.offer,
          "mcp-method": Handshake.subscription.method
        }),
        HttpClientRequest.bodyJsonUnsafe(Handshake.subscription)
      )
    : HttpClientRequest.get(server.url).pipe(HttpClientRequest.setHeader("accept", "text/event-stream"))
  const follow = Effect.gen(function* () {
    const response = yield* HttpClient.withScope(client).execute(withSession(ask))
    if (response.status !== 200 || !Http.isEventStream(response)) return false
    yield* Effect.ignore(Http.forEachEvent(response, limits.frameBytes, (event) => answer(event.data)))
    return true
  }).pipe(
    Effect.scoped,
    Effect.orElseSucceed(() => false)
  )

  return {
    transport,
    listen: Effect.asVoid(Effect.repeat(follow, { while: (open) => open, schedule: Schedule.spaced("1 second") }))
  }
})

/** What is noted of an answer, of which the transport tells the status only. */
interface Noted {
  movedTo?: string | undefined
}

/** The answer to the request that is under way. */
const Answer = /*#__PURE__*/ Context.Reference<Noted>("kernai/mcp/Answer", { defaultValue: () => ({}) })

// A server that refuses a revision by its header is offered the next one, as if it had declined.
const withVersion = (request: HttpClientRequest.HttpClientRequest, handshake: Handshake.Handshake) =>
  HttpClientRequest.setHeader(request, "mcp-protocol-version", handshake.version ?? handshake.offer)
