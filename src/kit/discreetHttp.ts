/**
 * HTTP requests to untrusted servers. Redirects are not followed, so that headers never reach another origin, and
 * requests have no spans, whose attributes would hold addresses.
 */

import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Redacted from "effect/Redacted"
import * as Tracer from "effect/Tracer"
import { traceparent } from "./traceparent.ts"

/** Returns a client that follows no redirects and makes no spans. */
export const discreet = (base: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.transform(base, (response) =>
    response.pipe(
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true)
    )
  )

/** Returns a client that sends the `traceparent` of the current span, for servers that take part in a trace. */
export const traced = (client: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.mapRequestEffect(client, (request) =>
    Effect.map(Effect.serviceOption(Tracer.ParentSpan), (span) =>
      span._tag === "None" ? request : HttpClientRequest.setHeader(request, "traceparent", traceparent(span.value))
    )
  )

/** Returns whether a text is an http or https URL without a user name or password. */
export const isHttpAddress = (text: string): boolean => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === ""
}

/**
 * Returns the name of the first header that HTTP does not allow, because its value may come from an environment
 * variable.
 */
export const badHeader = (headers: { readonly [name: string]: Redacted.Redacted }): string | undefined =>
  Object.entries(headers).find(
    ([name, value]) =>
      !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || /[^\t\x20-\x7e\x80-\xff]/.test(Redacted.value(value))
  )?.[0]

/** Returns whether a response holds server-sent events. */
export const isEventStream = (response: HttpClientResponse): boolean =>
  response.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase() === "text/event-stream"

/** Returns the target of a redirect, without query and fragment, which may hold a secret. */
export const movedTo = (response: HttpClientResponse, base: string): string | undefined => {
  const { location } = response.headers
  const url = location === undefined || Math.floor(response.status / 100) !== 3 ? null : URL.parse(location, base)
  return url === null ? undefined : `it moved to ${url.protocol}//${url.host}${url.pathname}`
}
