/**
 * What every HTTP request to a server has in common.
 *
 * Headers of the config and the access token are put in as a request leaves,
 * so no error, span or log ever holds them; redirects are not followed, so they
 * reach no other origin; requests carry no trace.
 */

import type { McpClientError } from "effect/ai/McpClientError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import * as Sse from "effect/encoding/Sse"
import type { HttpServer } from "../McpConfig.ts"
import * as Exchange from "./jsonRpc.ts"

/** Gives the access token of the moment, if there is one. */
export type AccessToken = Effect.Effect<Option.Option<Redacted.Redacted<string>>>

/** A client that follows no redirect and leaves no trace. */
export const discreet = (base: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.transform(base, (response) =>
    response.pipe(
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true)
    )
  )

/** The client of one server. */
export const client = (
  base: HttpClient.HttpClient,
  server: HttpServer,
  accessToken: AccessToken
): HttpClient.HttpClient =>
  HttpClient.mapRequestEffect(discreet(base), (request) =>
    Effect.map(accessToken, (token) => {
      let sent = request
      for (const [name, value] of server.headers) sent = HttpClientRequest.setHeader(sent, name, Redacted.value(value))
      return Option.isSome(token) ? HttpClientRequest.bearerToken(sent, token.value) : sent
    })
  )

/** Is there a header no HTTP request could carry? A value from a variable may hold anything. */
export const badHeader = (server: HttpServer): string | undefined => {
  for (const [name, value] of server.headers) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || /[^\t\x20-\x7e\x80-\xff]/.test(Redacted.value(value)))
      return name
  }
  return undefined
}

/** Is the body a stream of events? */
export const isEventStream = (response: HttpClientResponse): boolean =>
  response.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase() === "text/event-stream"

/** Where a redirect leads, as far as it may be told: what follows the path may hold a secret. */
export const movedTo = (response: HttpClientResponse, base: string): string | undefined => {
  const { location } = response.headers
  const url = location === undefined || Math.floor(response.status / 100) !== 3 ? null : URL.parse(location, base)
  return url === null ? undefined : `it moved to ${url.protocol}//${url.host}${url.pathname}`
}

/** Hands every event of a response to a function until the stream ends, and to another how long to wait after that. */
export const forEachEvent = <E>(
  response: HttpClientResponse,
  limit: number,
  onEvent: (event: Sse.Event) => Effect.Effect<void, E>,
  onRetry: (wait: Duration.Duration) => void = () => {}
): Effect.Effect<void, E | McpClientError> => {
  const events: Array<Sse.Event> = []
  const parser = Sse.makeParser(
    (event) => {
      if (event._tag === "Event") events.push(event)
      else onRetry(event.duration)
    },
    { maxEventSize: limit }
  )
  return response.stream.pipe(
    Stream.mapError(() => Exchange.lost("the event stream broke")),
    Stream.decodeText(),
    Stream.runForEach((chunk) => {
      const overfull = parser.feed(chunk)
      return Effect.andThen(
        Effect.forEach(events.splice(0), onEvent, { discard: true }),
        overfull === undefined ? Effect.void : Effect.fail(Exchange.tooLarge(limit))
      )
    })
  )
}
