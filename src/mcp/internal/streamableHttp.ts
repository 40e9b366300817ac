/**
 * The one-endpoint transport: effect's, and beside it the stream on which a
 * server tells that its lists changed.
 */

import * as McpClient from "effect/ai/McpClient"
import { HttpError, McpClientError } from "effect/ai/McpClientError"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Bounds from "../../internal/base/bounds.ts"
import { isDeeper, parseJson } from "../../internal/base/json.ts"
import { Limits } from "../../Limits.ts"
import type { HttpServer } from "../McpConfig.ts"
import * as Exchange from "./jsonRpc.ts"
import * as Handshake from "./handshake.ts"
import * as Http from "./http.ts"

/** A transport, and what follows the server's own stream until it is interrupted or the server has none. */
export interface StreamableHttp {
  readonly transport: McpClient.Transport
  readonly listen: Effect.Effect<void>
}

/** Prepares the transport for the time of the scope. */
export const open = Effect.fnUntraced(function* (
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
    maxMessageBytes: Bounds.frameLength
  }).pipe(Effect.provideService(HttpClient.HttpClient, client))
  const transport: McpClient.Transport = {
    ...inner,
    request: Effect.fnUntraced(function* (message, tool) {
      const answer: Noted = {}
      const asked = Effect.provideService(inner.request(message, tool), Answer, answer)
      const response = yield* Effect.mapError(asked, (error) => {
        const { reason } = error
        return reason._tag === "HttpError" && Math.floor(reason.status / 100) === 3
          ? new McpClientError({ reason: new HttpError({ status: reason.status, description: answer.movedTo }) })
          : error
      })
      // Whoever writes a value as text again goes as deep as it does.
      if (!isDeeper(response, Bounds.jsonDepth)) return response
      return yield* Exchange.broken(`the server sent JSON that nests deeper than ${Bounds.jsonDepth} levels`)
    })
  }

  const withSession = (request: HttpClientRequest.HttpClientRequest) =>
    session === undefined ? request : HttpClientRequest.setHeader(request, "mcp-session-id", session)

  const answer = (text: string) => {
    const message = Option.flatMap(Result.getSuccess(parseJson(text, Bounds.jsonDepth)), Exchange.decodeMessage)
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
    const told = Effect.scoped(HttpClient.withScope(client).execute(post))
    return Effect.ignore(Effect.timeoutOption(told, limits.connectTimeout))
  }

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
  // Nobody told what changed while no stream was open.
  const missed = Effect.sync(() => {
    for (const list of ["tools", "resources", "prompts"]) listener.onNotification(`notifications/${list}/list_changed`)
  })
  let asks = 0
  let wasOpen = false
  let wait = 0
  // Follows one stream to its end; false when there will be no other.
  const follow = Effect.gen(function* () {
    asks++
    wait = 0
    const response = yield* HttpClient.withScope(client).execute(withSession(ask))
    const { status } = response
    if (status !== 200 || !Http.isEventStream(response)) {
      if (passes(status) || (wasOpen && status < 400)) return true
      // A server that had one may have been restarted: then the next request gets another session.
      if (wasOpen) yield* missed
      return false
    }
    if (asks > 1) yield* missed
    wasOpen = true
    const onRetry = (asked: Duration.Duration) => {
      wait = Duration.toMillis(asked)
    }
    yield* Http.forEachEvent(response, Bounds.frameLength, (event) => answer(event.data), onRetry)
    return true
  }).pipe(
    Effect.scoped,
    Effect.orElseSucceed(() => true)
  )

  // A server that is away, or ends its streams as soon as they are open, is asked less and less often.
  const listen = Effect.gen(function* () {
    let pause = shortest
    for (;;) {
      const [lasted, goesOn] = yield* Effect.timed(follow)
      if (!goesOn || (!wasOpen && pause === longest)) return
      if (Duration.toMillis(lasted) >= longest) pause = shortest
      yield* Effect.sleep(Math.max(pause, wait))
      pause = Math.min(pause * 2, longest)
    }
  })

  return { transport, listen }
})

const shortest = 1_000
const longest = 60_000

// A server without a stream says so. Here something on the way to it does, or it will have one again; a token is
// renewed by the next request.
const passes = (status: number): boolean =>
  status === 401 || status === 408 || status === 429 || (status >= 500 && status !== 501)

/** What is noted of an answer, of which the transport tells the status only. */
interface Noted {
  movedTo?: string | undefined
}

/** The answer to the request that is under way. */
const Answer = Context.Reference<Noted>("kernai/mcp/Answer", { defaultValue: () => ({}) })

// A server that refuses a revision by its header is offered the next one, as if it had declined.
const withVersion = (request: HttpClientRequest.HttpClientRequest, handshake: Handshake.Handshake) =>
  HttpClientRequest.setHeader(request, "mcp-protocol-version", handshake.version ?? handshake.offer)
