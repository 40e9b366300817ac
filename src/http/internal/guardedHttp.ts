/**
 * HTTP requests to addresses that a caller named, so that a server reaches no host that only its own network can reach.
 *
 * The address that is dialled is judged, not the name, which may resolve to another address a moment later. Redirects
 * are followed by `getOf` alone, each judged like the first address.
 */

import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type * as Scope from "effect/Scope"
import dns from "node:dns"
import type { LookupFunction } from "node:net"
import * as Discreet from "../../kit/discreetHttp.ts"
import { hostKind } from "../../kit/hostKind.ts"

/** Resolves a name to the addresses that are dialled. */
export const Lookup = Context.Reference<LookupFunction>("kernai/http/Lookup", { defaultValue: () => dns.lookup })

/** Creates a client that reaches public hosts, and further hosts at these origins. */
export const make = (origins: ReadonlyArray<string>): Effect.Effect<HttpClient.HttpClient, never, Scope.Scope> =>
  Effect.gen(function* () {
    const clientOf = (lookup: LookupFunction) =>
      Effect.map(NodeHttpClient.makeAgent({ lookup }), (agent) =>
        Effect.provideService(NodeHttpClient.makeNodeHttp, NodeHttpClient.HttpAgent, agent)
      ).pipe(Effect.flatten, Effect.map(Discreet.discreet))
    const lookup = yield* Lookup
    const [outside, inside] = yield* Effect.all([clientOf(judged(lookup)), clientOf(lookup)])
    const known = new Set(origins.map((origin) => URL.parse(origin)?.origin))
    return HttpClient.make((request, url) => {
      if (known.has(url.origin)) return inside.execute(request)
      return isPublic(url)
        ? outside.execute(request)
        : Effect.fail(refusal(request, "only public hosts are reached over http and https"))
    })
  })

/** Returns whether an address is one of these origins, or of a public host over one protocol. */
export const reaches = (origins: ReadonlyArray<string>, address: string, protocol: string): boolean => {
  const url = URL.parse(address)
  if (url === null || !Discreet.isHttpAddress(address)) return false
  const isKnown = origins.some((origin) => URL.parse(origin)?.origin === url.origin)
  return isKnown || (url.protocol === protocol && isPublic(url))
}

/** Returns whether an address may be dialled. An address in numbers is not looked up. */
const isPublic = (url: URL): boolean => Discreet.isHttpAddress(url.href) && hostKind(url) === "public"

/** Refuses a name if any of its addresses is not public. */
const judged =
  (lookup: LookupFunction): LookupFunction =>
  (name, options, callback) =>
    lookup(name, { ...options, all: true }, (error, found) => {
      const addresses = typeof found === "string" ? [] : found
      const [first] = addresses
      if (error !== null || first === undefined) return callback(error ?? new Error("the name has no address"), [])
      const isHidden = addresses.some(({ address }) => hostKind({ hostname: address.replace(/%.*$/, "") }) !== "public")
      if (isHidden) return callback(new Error("the name resolves to an address that is not public"), [])
      if (options.all === true) callback(null, addresses)
      else callback(null, first.address, first.family)
    })

const refusal = (request: HttpClientRequest.HttpClientRequest, description: string) =>
  new HttpClientError.HttpClientError({ reason: new HttpClientError.InvalidUrlError({ request, description }) })
