/** Reads the cards of agents of other services, and checks their addresses. */

import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Record from "effect/Record"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Discreet from "../../kit/discreetHttp.ts"
import type { A2aError } from "../A2aError.ts"
import { document, failure, type Peer, read } from "./a2aLine.ts"
import * as Wire from "./a2aWire.ts"

/** An agent as described by its card. */
export interface Card {
  readonly name: string
  readonly description: string
  /** The version of the agent. */
  readonly version: string
  readonly skills: ReadonlyArray<{ readonly id: string; readonly name: string; readonly description: string }>
  /** The address that takes the calls. */
  readonly url: string
  readonly protocolVersion: Wire.Version
  /** Whether the agent streams its answers. */
  readonly isStreaming: boolean
}

/** A card, and the address to which calls are sent. */
export interface Found {
  readonly card: Card
  readonly endpoint: Wire.Endpoint
}

/** The address of a card, and the origins that the agent's own address may have. */
interface Place {
  readonly name: string
  readonly url: string
  readonly origins: ReadonlySet<string>
}

/** Finds the place of a card from the settings of a client. */
export const placeOf = (options: {
  readonly name?: string | undefined
  readonly url: string
  readonly headers?: { readonly [name: string]: Redacted.Redacted } | undefined
  readonly origins?: ReadonlyArray<string> | undefined
}): Result.Result<Place, A2aError> => {
  const url = Discreet.isHttpAddress(options.url) ? URL.parse(options.url) : null
  const name = options.name ?? url?.host ?? "agent"
  if (url === null) {
    return Result.fail(failure({ name }, "config", "needs an http or https address without a user name or password"))
  }
  const bad = Discreet.badHeader(options.headers ?? {})
  if (bad !== undefined) return Result.fail(failure({ name }, "config", `has a header that cannot be sent: '${bad}'`))
  const origins = new Set([url.origin, ...(options.origins ?? []).map((origin) => URL.parse(origin)?.origin ?? origin)])
  if (!url.pathname.endsWith(".json")) {
    url.pathname = `${url.pathname.replace(/\/+$/, "")}/.well-known/agent-card.json`
  }
  return Result.succeed({ name, url: url.href, origins })
}

/** Creates a client that follows no redirects, and adds headers and the current span to every request. */
export const clientOf = (
  base: HttpClient.HttpClient,
  headers: { readonly [name: string]: Redacted.Redacted }
): HttpClient.HttpClient =>
  HttpClient.mapRequest(Discreet.traced(Discreet.discreet(base)), (request) =>
    HttpClientRequest.setHeaders(
      request,
      Record.map(headers, (value) => Redacted.value(value))
    )
  )

/** Reads a card when it is first needed. A failed read is retried by the next call. */
export const reader = (peer: Peer, place: Place): Effect.Effect<Found, A2aError> => {
  let found: Found | undefined
  return Effect.suspend(() =>
    found === undefined
      ? Effect.tap(fetched(peer, place), (fresh) => Effect.sync(() => (found = fresh)))
      : Effect.succeed(found)
  )
}

const fetched = Effect.fnUntraced(function* (peer: Peer, place: Place): Effect.fn.Return<Found, A2aError> {
  const written = yield* read(peer, Wire.AgentCard, yield* document(peer, place.url))
  const endpoint = Wire.endpointOf(written)
  if (endpoint === undefined) {
    return yield* failure(peer, "version", "offers no JSON-RPC interface of version 1.0 or 0.3")
  }
  const url = Discreet.isHttpAddress(endpoint.url) ? URL.parse(endpoint.url) : null
  if (url === null || !place.origins.has(url.origin)) {
    const where = url === null ? "at an address that cannot be used" : `at ${url.origin}, which 'origins' does not list`
    return yield* failure(peer, "config", `takes calls ${where}`)
  }
  const { capabilities, description, name, skills, version } = written
  const card = {
    name,
    description: description ?? "",
    version: version ?? "",
    skills: (skills ?? []).map((skill) => ({ ...skill, description: skill.description ?? "" })),
    url: url.href,
    protocolVersion: endpoint.version,
    isStreaming: capabilities?.streaming === true
  }
  return { card, endpoint: { ...endpoint, url: url.href } }
})
