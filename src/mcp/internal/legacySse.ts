/**
 * The transport of the first revision: one stream of events from the server, whose first event names the address to
 * which messages are posted. Messages carry the token, so that address must have the server's own origin.
 */

import { HttpError, McpClientError } from "effect/ai/McpClientError"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import type * as Scope from "effect/Scope"
import { Limits } from "../../Limits.ts"
import type { HttpServer } from "../McpConfig.ts"
import * as Http from "./http.ts"
import * as JsonRpc from "./jsonRpc.ts"

/** Connects to a server until the scope closes. */
export const open = Effect.fnUntraced(function* (
  server: HttpServer,
  client: HttpClient.HttpClient,
  receivers: JsonRpc.Receivers
): Effect.fn.Return<JsonRpc.Line, McpClientError, Scope.Scope> {
  const limits = yield* Limits
  const endpoint = yield* Deferred.make<string, McpClientError>()
  const ended = yield* Deferred.make<never, McpClientError>()

  const post = Effect.fnUntraced(function* (text: string) {
    const url = yield* Deferred.await(endpoint)
    const request = HttpClientRequest.post(url).pipe(HttpClientRequest.bodyText(text, "application/json"))
    yield* execute(client, request)
  }, Effect.scoped)
  // Stops waiting for a post once the stream, which brings the response, has ended.
  const send = (text: string) => Effect.raceFirst(post(text), Deferred.await(ended))
  const line = JsonRpc.make({ send, receivers, limits })

  const end = (error: McpClientError) =>
    Effect.all([Deferred.fail(endpoint, error), Deferred.fail(ended, error), line.close(error)], { discard: true })

  const get = HttpClientRequest.get(server.url).pipe(HttpClientRequest.setHeader("accept", "text/event-stream"))
  const response = yield* execute(client, get)
  if (!Http.isEventStream(response)) return yield* JsonRpc.broken("the server answered with no event stream")

  yield* Http.forEachEvent(response, (event) => {
    if (event.event === "endpoint") return Deferred.complete(endpoint, resolve(server.url, event.data))
    return event.event === "message" && event.data !== "" ? line.receive(event.data) : Effect.void
  }).pipe(
    Effect.andThen(Effect.fail(JsonRpc.lost("the server closed the event stream"))),
    Effect.catch(end),
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() => end(JsonRpc.lost("the connection was closed")))
  yield* Deferred.await(endpoint)
  return line
})

const execute = Effect.fnUntraced(function* (
  client: HttpClient.HttpClient,
  request: HttpClientRequest.HttpClientRequest
): Effect.fn.Return<HttpClientResponse, McpClientError, Scope.Scope> {
  const response = yield* Effect.mapError(HttpClient.withScope(client).execute(request), (cause) =>
    JsonRpc.lost("the request failed", cause)
  )
  const { headers, status } = response
  if (status >= 200 && status < 300) return response
  const reason = new HttpError({
    status,
    description: Http.movedTo(response, request.url),
    wwwAuthenticate: headers["www-authenticate"],
    retryAfter: headers["retry-after"]
  })
  return yield* new McpClientError({ reason })
})

const resolve = (base: string, path: string): Effect.Effect<string, McpClientError> => {
  const url = URL.parse(path, base)
  return url !== null && url.origin === new URL(base).origin
    ? Effect.succeed(url.href)
    : Effect.fail(JsonRpc.broken("the server named an endpoint on another origin"))
}
