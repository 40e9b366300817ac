/**
 * Checks whether requests come from this machine and from admitted pages. A page of a foreign origin can send requests
 * to loopback, and can even read the responses if a name of its own resolves to loopback. `Host` and `Origin` reveal
 * both.
 */

import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"

/** Names under which a server may be addressed. */
export interface Names {
  /**
   * Further values of the `Host` header for requests from the same machine, without port, such as those of a local
   * proxy.
   */
  readonly hosts?: ReadonlyArray<string> | undefined
  /** Origins of other pages that may send requests, such as `https://app.example`. */
  readonly origins?: ReadonlyArray<string> | undefined
}

/**
 * Returns true if a request comes from this machine. Without a peer address, as behind a web handler, its `Host`
 * decides.
 */
export const isLoopback = (request: HttpServerRequest): boolean =>
  Option.match(request.peerAddress, {
    onNone: () => isLoopbackName(hostOf(request)),
    onSome: isLoopbackAddress
  })

/** Returns the reason if a request is not for this server, or comes from a page that may not send it. */
export const foreign = (request: HttpServerRequest, { hosts = [], origins = [] }: Names): string | undefined => {
  const name = hostOf(request)
  const isKnown = isLoopbackName(name) || hosts.some((host) => host.toLowerCase() === name)
  if (isLoopback(request) && !isKnown) return "the Host header does not name this server; 'hosts' adds names"
  const { origin } = request.headers
  if (origin === undefined || origins.some((other) => other.toLowerCase() === origin.toLowerCase())) return undefined
  return URL.parse(origin)?.host === hostAndPort(request)
    ? undefined
    : "pages of this origin are not admitted; 'origins' adds origins"
}

/** Returns the host in a request, in lower case and without its port. */
const hostOf = (request: HttpServerRequest): string => hostAndPort(request).replace(/:\d*$/, "")

/** A web request may have no `Host` header, but its URL is complete. */
const hostAndPort = ({ headers, originalUrl }: HttpServerRequest): string =>
  (headers["host"] ?? URL.parse(originalUrl)?.host ?? "").toLowerCase()

const isLoopbackName = (name: string): boolean =>
  name === "localhost" || name.endsWith(".localhost") || name === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(name)

const isLoopbackAddress = (address: string): boolean =>
  address === "::1" || /^(?:::ffff:)?127(?:\.\d{1,3}){3}$/.test(address)
