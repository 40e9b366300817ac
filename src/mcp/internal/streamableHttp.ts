/** The transport of one endpoint: effect's transport, plus the stream on which a server announces changes. */

import * as McpClient from "effect/ai/McpClient"
import * as McpProtocol from "effect/ai/McpProtocol"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Bounds from "../../kit/bounds.ts"
import { leavable } from "../../kit/foreignCode.ts"
import { isDeeper, parseJson } from "../../kit/json.ts"
import { wellFormedJson } from "../../kit/soundText.ts"
import { Limits } from "../../Limits.ts"
import type { HttpServer } from "../McpConfig.ts"
import * as Handshake from "./handshake.ts"
import * as Http from "./http.ts"
import * as JsonRpc from "./jsonRpc.ts"
import { resumable } from "./resumedStream.ts"
import type * as ServerProgress from "./serverProgress.ts"
import type * as ServerRequests from "./serverRequests.ts"
import { sifted } from "./siftedStream.ts"

/** Creates the transport. `listen` follows the server's own stream until it is interrupted or the server has none. */
export const open = Effect.fnUntraced(function* (
  server: HttpServer,
  base: HttpClient.HttpClient,
  receivers: JsonRpc.Receivers,
  handshake: Handshake.Handshake,
  calls: Pick<ServerProgress.Calls, "hasListener" | "receive">,
  requests: Pick<ServerRequests.Requests, "ofCall">
) {
  const limits = yield* Limits
  const modern = handshake.offer === "2026-07-28"
  let session: string | undefined
  const client = base.pipe(
    HttpClient.mapRequest((request) => (modern ? request : withVersion(request, handshake))),
    HttpClient.transformResponse(
      Effect.map((response) => {
        session ??= response.headers["mcp-session-id"]
        return explained(response, server.url)
      })
    )
  )
  const inSession = HttpClient.mapRequest(client, (request) =>
    session === undefined ? request : HttpClientRequest.setHeader(request, "mcp-session-id", session)
  )
  const after = (lastEventId: string) =>
    HttpClient.withScope(inSession).execute(
      HttpClientRequest.setHeader(askFor(server, handshake), "last-event-id", lastEventId)
    )
  const post = (response: McpSchema.JsonRpcResponse) => {
    const sent = Effect.scoped(HttpClient.withScope(inSession).execute(responding(server.url, response)))
    return Effect.ignore(Effect.timeoutOption(sent, limits.connectTimeout))
  }
  // In the revision without a handshake, a closed stream cancels its request, and servers send no requests.
  const exchanged = HttpClient.transformResponse(
    client,
    Effect.flatMap((response) => {
      const onNotification = calls.receive
      if (modern) return Effect.succeed(calls.hasListener() ? sifted(response, { onNotification }) : response)
      return Effect.map(requests.ofCall(post), (onRequest) =>
        sifted(resumable(response, after), { onRequest, onNotification })
      )
    })
  )
  const inner = yield* McpClient.http({
    url: server.url,
    protocol: modern ? McpProtocol.v2026_07_28 : McpProtocol.v2025_11_25,
    maxMessageBytes: Bounds.frameLength
  }).pipe(Effect.provideService(HttpClient.HttpClient, exchanged))
  const transport: McpClient.Transport = {
    ...inner,
    // A cancelled request is announced to the server without waiting, since it may have stopped responding.
    request: (message, tool) =>
      Effect.filterOrFail(
        leavable(inner.request(message, tool)),
        (response) => !isDeeper(response, Bounds.jsonDepth),
        () => JsonRpc.broken(`the server sent JSON that nests deeper than ${Bounds.jsonDepth} levels`)
      )
  }
  const listen = follow({ client: inSession, receivers, post }, askFor(server, handshake))
  return { transport, listen }
})

/** Returns the request that carries a response to the server. */
const responding = (url: string, response: McpSchema.JsonRpcResponse) =>
  HttpClientRequest.post(url).pipe(
    HttpClientRequest.setHeader("accept", "application/json, text/event-stream"),
    HttpClientRequest.bodyText(wellFormedJson(JSON.stringify(response)), "application/json")
  )

// A server that rejects a revision by this header is offered the next one, as if it had declined.
const withVersion = (request: HttpClientRequest.HttpClientRequest, handshake: Handshake.Handshake) =>
  HttpClientRequest.setHeader(request, "mcp-protocol-version", handshake.version ?? handshake.offer)

/** Replaces a redirect by an error with its target, since effect's transport passes on only the message. */
const explained = (response: HttpClientResponse.HttpClientResponse, base: string) => {
  const message = Http.movedTo(response, base)
  if (message === undefined) return response
  const { status } = response
  const body = { jsonrpc: "2.0", id: null, error: { code: 0, message } }
  return HttpClientResponse.fromWeb(response.request, Response.json(body, { status }))
}

interface Listening {
  readonly client: HttpClient.HttpClient
  readonly receivers: JsonRpc.Receivers
  /** Sends a reply. */
  readonly post: (response: McpSchema.JsonRpcResponse) => Effect.Effect<void>
}

const askFor = (server: HttpServer, handshake: Handshake.Handshake): HttpClientRequest.HttpClientRequest =>
  handshake.offer === "2026-07-28"
    ? HttpClientRequest.post(server.url).pipe(
        HttpClientRequest.setHeaders({
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": handshake.offer,
          "mcp-method": Handshake.subscription.method
        }),
        HttpClientRequest.bodyJsonUnsafe(Handshake.subscription)
      )
    : HttpClientRequest.get(server.url).pipe(HttpClientRequest.setHeader("accept", "text/event-stream"))

/** Reopens the stream whenever it ends, at growing intervals while the server is unavailable or ends it at once. */
const follow = Effect.fnUntraced(function* (listening: Listening, ask: HttpClientRequest.HttpClientRequest) {
  const { client, receivers } = listening
  let wasOpen = false
  let wait = 0
  // Changes were not announced while no stream was open.
  const missed = Effect.forEach(["tools", "resources", "prompts"], (list) =>
    receivers.onNotification(`notifications/${list}/list_changed`)
  )
  /** Reads one stream to its end. Returns false if it must not be reopened. */
  const read = Effect.fnUntraced(
    function* (attempt: number) {
      wait = 0
      const response = yield* HttpClient.withScope(client).execute(ask)
      const { status } = response
      if (status !== 200 || !Http.isEventStream(response)) {
        if (isTransient(status) || (wasOpen && status < 400)) return true
        // A server that had a stream may have been restarted: the next request starts another session.
        if (wasOpen) yield* missed
        return false
      }
      if (attempt > 1) yield* missed
      wasOpen = true
      const onRetry = (asked: Duration.Duration) => {
        wait = Duration.toMillis(asked)
      }
      yield* Http.forEachEvent(response, ({ data }) => receive(listening, data), onRetry)
      return true
    },
    Effect.scoped,
    Effect.orElseSucceed(() => true)
  )

  let pause = shortest
  for (let attempt = 1; ; attempt++) {
    const [lasted, mayReturn] = yield* Effect.timed(read(attempt))
    if (!mayReturn || (!wasOpen && pause === longest)) return
    if (Duration.toMillis(lasted) >= longest) pause = shortest
    yield* Effect.sleep(Math.max(pause, wait))
    pause = Math.min(pause * 2, longest)
  }
})

const receive = ({ post, receivers }: Listening, text: string): Effect.Effect<void> => {
  const message = Option.flatMap(Result.getSuccess(parseJson(text, Bounds.jsonDepth)), JsonRpc.decodeMessage)
  if (Option.isNone(message) || !("method" in message.value)) return Effect.void
  return JsonRpc.isRequest(message.value)
    ? receivers.onRequest(message.value, post)
    : receivers.onNotification(message.value.method, message.value.params)
}

const shortest = 1_000
const longest = 60_000

// Returns true for a status of a proxy or gateway, or of a server that may have a stream later. For 401, the next
// request renews the token.
const isTransient = (status: number): boolean =>
  status === 401 || status === 408 || status === 429 || (status >= 500 && status !== 501)
