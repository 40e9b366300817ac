/**
 * HTTP clients for MCP and authorization servers. Headers and the token are added as a request leaves, so no error,
 * span or log holds them; redirects are not followed, so they reach no other origin.
 */

import type { McpClientError } from "effect/ai/McpClientError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Bounds from "../../internal/base/bounds.ts"
import type { HttpServer } from "../McpConfig.ts"
import type { Credentials } from "../McpConnection.ts"
import * as JsonRpc from "./jsonRpc.ts"

/** A client that follows no redirect and sends no trace. */
export const discreet = (base: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.transform(base, (response) =>
    response.pipe(
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true)
    )
  )

/** The client of one server, which adds its headers and the current access token. */
export const client = (
  base: HttpClient.HttpClient,
  server: HttpServer,
  accessToken: Credentials["accessToken"]
): HttpClient.HttpClient =>
  HttpClient.mapRequestEffect(discreet(base), (request) =>
    Effect.map(accessToken, (token) => {
      const headers = Record.map(server.headers, (value) => Redacted.value(value))
      const sent = HttpClientRequest.setHeaders(request, headers)
      return Option.isSome(token) ? HttpClientRequest.bearerToken(sent, token.value) : sent
    })
  )

/** The first header that no HTTP request can carry: a variable may hold any character. */
export const badHeader = ({ headers }: HttpServer): string | undefined =>
  Object.entries(headers).find(
    ([name, value]) =>
      !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || /[^\t\x20-\x7e\x80-\xff]/.test(Redacted.value(value))
  )?.[0]

export const isEventStream = (response: HttpClientResponse): boolean =>
  response.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase() === "text/event-stream"

/** The target of a redirect, without what follows the path and may hold a secret. */
export const movedTo = (response: HttpClientResponse, base: string): string | undefined => {
  const { location } = response.headers
  const url = location === undefined || Math.floor(response.status / 100) !== 3 ? null : URL.parse(location, base)
  return url === null ? undefined : `it moved to ${url.protocol}//${url.host}${url.pathname}`
}

/** Runs an effect for every event until the stream ends. `onRetry` receives the pause the server asks for after that. */
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
