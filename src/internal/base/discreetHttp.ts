/**
 * HTTP requests to servers that are not trusted: no redirect is followed, so that headers reach no other origin, and no
 * trace is sent.
 */

import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Redacted from "effect/Redacted"

/** A client that follows no redirect and sends no trace. */
export const discreet = (base: HttpClient.HttpClient): HttpClient.HttpClient =>
  HttpClient.transform(base, (response) =>
    response.pipe(
      Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
      Effect.provideService(HttpClient.TracerDisabledWhen, () => true)
    )
  )

/** Is this an http or https address without a user name or password? */
export const isHttpAddress = (text: string): boolean => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === ""
}

/** The first header that no HTTP request can carry: a variable may hold any character. */
export const badHeader = (headers: { readonly [name: string]: Redacted.Redacted }): string | undefined =>
  Object.entries(headers).find(
    ([name, value]) =>
      !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || /[^\t\x20-\x7e\x80-\xff]/.test(Redacted.value(value))
  )?.[0]

/** Does a response hold server-sent events? */
export const isEventStream = (response: HttpClientResponse): boolean =>
  response.headers["content-type"]?.split(";", 1)[0]?.trim().toLowerCase() === "text/event-stream"

/** The target of a redirect, without what follows the path and may hold a secret. */
export const movedTo = (response: HttpClientResponse, base: string): string | undefined => {
  const { location } = response.headers
  const url = location === undefined || Math.floor(response.status / 100) !== 3 ? null : URL.parse(location, base)
  return url === null ? undefined : `it moved to ${url.protocol}//${url.host}${url.pathname}`
}
