/** Turns live traffic into an anonymous exchange. */

import type * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Redacted from "effect/Redacted"
import { isJsonObject, type Json } from "../../kit/json.ts"
import type { Exchange } from "../Cassette.ts"

const keptOfRequest = /^(accept|content-type|anthropic-version|anthropic-beta)$/
const keptOfResponse =
  /^(content-type|content-length|transfer-encoding|date|retry-after|retry-after-ms|x-should-retry|openai-version|openai-processing-ms|(anthropic|x)-ratelimit-.*)$/
/**
 * Names of headers and parameters that may hold a credential. There is no complete list, so any similar name counts.
 */
const secretNames = /key|token(?!s)|secret|auth|cookie|credential|passw|signature|^sig$/i
/** Response headers that identify an account or a request. */
const identityNames = /request-id|organization|project/
/** Ids of accounts and requests in a text. */
const identities = /\b(?:org-|proj_|req_)[A-Za-z0-9]{16,}/g

/** Returns the exchange to record, with credentials and account ids removed from the address and the bodies. */
export const exchange = (
  request: HttpClientRequest.HttpClientRequest,
  response: HttpClientResponse.HttpClientResponse,
  body: string
): Exchange => {
  const secrets = secretsOf(request, response)
  const blot = (text: string) =>
    secrets.reduce((text, secret) => text.replaceAll(secret, "[redacted]"), text).replaceAll(identities, "[redacted]")
  const format = formatOf(response.headers["content-type"] ?? "", body)
  const clean = blot(body)
  const date = response.headers["date"]
  return {
    request: {
      method: request.method,
      url: blot(addressOf(response.url === "" ? request.url : response.url)),
      headers: kept(request.headers, keptOfRequest),
      body: parsed(blot(textOf(request)))
    },
    response: {
      status: response.status,
      headers: kept(response.headers, keptOfResponse),
      format,
      body: clean,
      frames: framesOf(clean, format)
    },
    ...(date === undefined ? {} : { recorded_at: date })
  }
}

/** Returns the JSON body of a request, or its text. */
export const bodyOf = (request: HttpClientRequest.HttpClientRequest): Json => parsed(textOf(request))

/** Returns the JSON value of a text, or the text. */
export const parsed = (text: string): Json => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Returns the path of an address. */
export const pathOf = (url: string): string => {
  try {
    return new URL(url).pathname
  } catch {
    return url
  }
}

/** Returns the host of an address. */
export const hostOf = (url: string): string => {
  try {
    return new URL(url).hostname
  } catch {
    return "unknown"
  }
}

/** Returns the model in a request, if it names one. */
export const modelOf = (body: Json): string => {
  const model = isJsonObject(body) ? body["model"] : undefined
  return typeof model === "string" ? model : "unknown"
}

const kept = (headers: { readonly [name: string]: string }, names: RegExp) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => names.test(name)))

const secretsOf = (
  request: HttpClientRequest.HttpClientRequest,
  response: HttpClientResponse.HttpClientResponse
): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (const [name, value] of Object.entries(request.headers)) {
    if (!secretNames.test(name)) continue
    found.add(value)
    found.add(value.replace(/^\S+\s+/, ""))
  }
  const inAddress = URL.parse(request.url)?.searchParams ?? []
  for (const [name, value] of [...inAddress, ...request.urlParams]) {
    if (!Redacted.isRedacted(value) && !secretNames.test(name)) continue
    const secret = Redacted.isRedacted(value) ? Redacted.value(value) : value
    found.add(secret)
    found.add(encodeURIComponent(secret))
  }
  for (const [name, value] of Object.entries(response.headers)) if (identityNames.test(name)) found.add(value)
  return [...found].filter((secret) => secret.length >= 4).sort((a, b) => b.length - a.length)
}

const addressOf = (url: string): string => {
  try {
    const address = new URL(url)
    const names = Array.from(address.searchParams.keys())
    for (const name of names) if (secretNames.test(name)) address.searchParams.delete(name)
    address.username = ""
    address.password = ""
    return address.href
  } catch {
    return url
  }
}

const textOf = (request: HttpClientRequest.HttpClientRequest): string => {
  const { body } = request
  if (body._tag === "Uint8Array") return new TextDecoder().decode(body.body)
  return body._tag === "Raw" && typeof body.body === "string" ? body.body : ""
}

const formatOf = (contentType: string, body: string): Exchange["response"]["format"] => {
  if (contentType.includes("event-stream")) return "sse"
  if (contentType.includes("ndjson")) return "ndjson"
  if (contentType.includes("json")) return "json"
  return body.startsWith("data:") || body.startsWith("event:") ? "sse" : "text"
}

const framesOf = (body: string, format: Exchange["response"]["format"]): ReadonlyArray<string> => {
  switch (format) {
    case "sse":
      return body.split(/\r?\n\r?\n/).filter((frame) => frame !== "")
    case "ndjson":
      return body.split(/(?<=\n)/)
    default:
      return body === "" ? [] : [body]
  }
}
