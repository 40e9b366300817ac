/**
 * HTTP clients for MCP and authorization servers. Headers and the token are added right before a request is sent, so no
 * error, span or log holds them. Redirects are not followed, so they reach no other origin.
 */

import type { McpClientError } from "effect/ai/McpClientError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Bounds from "../../kit/bounds.ts"
import * as Discreet from "../../kit/discreetHttp.ts"
import type { HttpServer } from "../McpConfig.ts"
import type { Credentials } from "../McpConnection.ts"
import * as JsonRpc from "./jsonRpc.ts"

export { discreet, isEventStream, movedTo } from "../../kit/discreetHttp.ts"

/** Creates the client of one server, which adds its headers and the current access token. */
export const client = (
  base: HttpClient.HttpClient,
  server: HttpServer,
  accessToken: Credentials["accessToken"]
): HttpClient.HttpClient =>
  HttpClient.mapRequestEffect(Discreet.discreet(base), (request) =>
    Effect.map(accessToken, (token) => {
      const headers = Record.map(server.headers, (value) => Redacted.value(value))
      const sent = HttpClientRequest.setHeaders(request, headers)
      return Option.isSome(token) ? HttpClientRequest.bearerToken(sent, token.value) : sent
    })
  )

/** Returns the first header of a server that is not valid in HTTP. */
export const badHeader = ({ headers }: HttpServer): string | undefined => Discreet.badHeader(headers)

/**
 * Runs an effect for every event until the stream ends. `onRetry` receives the reconnection pause that the server
 * requests.
 */
export const forEachEvent = <E>(
  response: HttpClientResponse,
  onEvent: (event: Sse.Event) => Effect.Effect<void, E>,
  onRetry: (pause: Duration.Duration) => void = () => {}
): Effect.Effect<void, E | McpClientError> => {
  const events: Array<Sse.Event> = []
  const parser = Sse.makeParser((event) => (event._tag === "Event" ? events.push(event) : onRetry(event.duration)), {
    maxEventSize: Bounds.frameLength
  })
  return response.stream.pipe(
    Stream.mapError(() => JsonRpc.lost("the event stream broke")),
    Stream.decodeText(),
    Stream.runForEach((chunk) => {
      const tooLarge = parser.feed(chunk) !== undefined
      return Effect.andThen(
        Effect.forEach(events.splice(0), onEvent, { discard: true }),
        tooLarge ? Effect.fail(JsonRpc.frameTooLong) : Effect.void
      )
    })
  )
}
