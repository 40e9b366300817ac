/**
 * The two-endpoint transport of the first revision: one stream of events from
 * the server, and an address, given by its first event, that messages are
 * posted to. That address must be on the server's own origin.
 */

import { HttpError, type McpClientError, McpClientError as Failure, TimeoutError } from "effect/ai/McpClientError"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import type * as Scope from "effect/Scope"
import * as Bounds from "../../internal/base/bounds.ts"
import { Limits } from "../../Limits.ts"
import type { HttpServer } from "../McpConfig.ts"
import * as Exchange from "./jsonRpc.ts"
import * as Http from "./http.ts"

/** Connects to a server for the time of the scope. */
export const open = Effect.fnUntraced(function* (
  server: HttpServer,
  client: HttpClient.HttpClient,
  listener: Exchange.Listener
): Effect.fn.Return<Exchange.Exchange, McpClientError, Scope.Scope> {
  const limits = yield* Limits
  const endpoint = yield* Deferred.make<string, McpClientError>()
  const ended = yield* Deferred.make<never, McpClientError>()

  const post = Effect.fnUntraced(function* (text: string) {
    const url = yield* Deferred.await(endpoint)
    const request = HttpClientRequest.post(url).pipe(HttpClientRequest.bodyText(text, "application/json"))
    yield* Effect.scoped(execute(client, request))
  })
  // What the server takes its time to accept is not waited for once nobody can hear the answer.
  const send = (text: string) => Effect.raceFirst(post(text), Deferred.await(ended))
  const line = Exchange.make({ send, listener, limits })

  const ask = HttpClientRequest.get(server.url).pipe(HttpClientRequest.setHeader("accept", "text/event-stream"))
  const response = yield* Effect.timeoutOrElse(execute(client, ask), {
    duration: server.connectTimeout,
    orElse: () => Effect.fail(new Failure({ reason: new TimeoutError({ operation: "initialize" }) }))
  })
  if (!Http.isEventStream(response)) return yield* Exchange.broken("the server answered with no event stream")

  yield* Http.forEachEvent(response, Bounds.frameLength, (event) => {
    if (event.event === "endpoint") return Deferred.complete(endpoint, resolve(server.url, event.data))
    return event.event === "message" && event.data !== "" ? line.receive(event.data) : Effect.void
  }).pipe(
    Effect.andThen(Effect.fail(Exchange.lost("the server closed the event stream"))),
    Effect.catch((error) =>
      Effect.all([Deferred.fail(endpoint, error), Deferred.fail(ended, error), line.close(error)], { discard: true })
    ),
    Effect.forkScoped
  )
  yield* Effect.addFinalizer(() => line.close(Exchange.lost("the connection was closed")))
  yield* Effect.timeoutOrElse(Deferred.await(endpoint), {
    duration: limits.connectTimeout,
    orElse: () => Effect.fail(Exchange.broken("the server named no endpoint to post to"))
  })
  return line
})

const execute = Effect.fnUntraced(function* (
  client: HttpClient.HttpClient,
  request: HttpClientRequest.HttpClientRequest
): Effect.fn.Return<HttpClientResponse, McpClientError, Scope.Scope> {
  const response = yield* Effect.mapError(HttpClient.withScope(client).execute(request), (cause) =>
    Exchange.lost("the request failed", cause)
  )
  if (response.status >= 200 && response.status < 300) return response
  return yield* new Failure({
    reason: new HttpError({
      status: response.status,
      description: Http.movedTo(response, request.url),
      wwwAuthenticate: response.headers["www-authenticate"],
      retryAfter: response.headers["retry-after"]
    })
  })
})

// Messages carry the token, so they go nowhere but to the origin the config names.
const resolve = (base: string, path: string): Effect.Effect<string, McpClientError> => {
  const url = URL.parse(path, base)
  return url !== null && url.origin === new URL(base).origin
    ? Effect.succeed(url.href)
    : Effect.fail(Exchange.broken("the server named an endpoint on another origin"))
}
