/**
 * Decides whether a server may answer a request at all: one rule for every door that listens.
 *
 * A page of a foreign origin can send requests to this machine, and can even read the responses if a name of its own
 * resolves to loopback. `Host`, `Origin` and the content type reveal it, since a page cannot choose the first two, and
 * needs permission for most values of the third.
 */

import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"

/** Names under which a server may be addressed. */
export interface Names {
  /**
   * Further values of the `Host` header for requests from the same machine, such as those of a local proxy. A name
   * without a port stands for all ports.
   */
  readonly hosts?: ReadonlyArray<string> | undefined
  /** Origins of other pages that may send requests, such as `https://app.example`. */
  readonly origins?: ReadonlyArray<string> | undefined
}

/** The names of a server, and what it knows about itself. */
export interface Server extends Names {
  /**
   * The server's own values of `Host`, in lower case and with their port, which every request must name. Undefined where
   * a server does not know them: then a request from the same machine must name loopback.
   */
  readonly own?: ReadonlyArray<string> | undefined
  /** How errors call the option for further hosts. Default: `'hosts'`. */
  readonly hostsOption?: string | undefined
}

/** Why a request is refused. */
export interface Refusal {
  readonly status: 400 | 403 | 415
  readonly reason: string
}

/**
 * Returns the reason if a request is ambiguous, is not for this server, or comes from a page that may not send it. Reads
 * no credentials, so that a foreign page learns nothing about them.
 */
export const refusal = (request: HttpServerRequest, server: Server): Refusal | undefined => {
  const repeated = single.find((name) => timesOf(request, name) > 1)
  if (repeated !== undefined) return { status: 400, reason: `the ${repeated} header is repeated` }
  if (!hasPath(request)) return { status: 400, reason: "the target of the request must be a path" }
  const host = hostOf(request)
  if (!hostForm.test(host) || !isNamed(request, host, server)) {
    return forbidden(`the Host header does not name this server; ${server.hostsOption ?? "'hosts'"} adds names`)
  }
  if (!isOfAdmittedPage(request, host, server)) {
    return forbidden("pages of this origin are not admitted; 'origins' adds origins")
  }
  return request.method === "OPTIONS" && request.headers["origin"] === undefined
    ? forbidden("a preflight request needs an Origin header")
    : undefined
}

/** Returns the reason if the body of a request is of a type that a foreign page may send without a CORS preflight. */
export const unfitBody = ({ headers, method }: HttpServerRequest): Refusal | undefined => {
  if (method === "GET" || method === "HEAD") return undefined
  const type = headers["content-type"]?.trim() ?? ""
  const hasBody = headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0
  if (type === "" ? hasBody : simpleType.test(type)) return forbidden("the body must be application/json")
  const charset = /;\s*charset\s*=\s*"?([^\s";,]*)/i.exec(type)?.[1]
  return charset === undefined || /^utf-?8$/i.test(charset)
    ? undefined
    : { status: 415, reason: "the body must be UTF-8" }
}

/**
 * Returns true if a request comes from this machine. Without a peer address, as behind a web handler, its `Host`
 * decides.
 */
export const isLoopback = (request: HttpServerRequest): boolean =>
  Option.match(request.peerAddress, {
    onNone: () => isLoopbackName(nameOf(hostOf(request))),
    onSome: isLoopbackAddress
  })

/** Returns true if a proxy passed the request on, so that its peer is not its sender. */
export const isProxied = ({ headers }: HttpServerRequest): boolean =>
  Object.keys(headers).some((name) => proxyHeaders.has(name) || name.startsWith("x-forwarded-"))

const proxyHeaders: ReadonlySet<string> = new Set(["forwarded", "via", "x-real-ip"])

/** Headers that a request has at most once. A proxy and Node may choose different ones of several. */
const single = ["Host", "Origin", "Authorization", "Content-Type"]

const forbidden = (reason: string): Refusal => ({ status: 403, reason })

const simpleType = /^(?:text\/plain|application\/x-www-form-urlencoded|multipart\/form-data)/i

/** A name or address with or without a port, and nothing else, such as a user name. */
const hostForm = /^(?:\[[\da-f:.]+\]|[a-z\d_](?:[\w.-]*[a-z\d_])?)(?::\d{1,5})?$/

const isNamed = (request: HttpServerRequest, host: string, { hosts = [], own }: Server): boolean => {
  const name = nameOf(host)
  if (hosts.some((other) => [host, name].includes(other.toLowerCase()))) return true
  return own === undefined ? !isLoopback(request) || isLoopbackName(name) : own.includes(host)
}

const isOfAdmittedPage = ({ headers }: HttpServerRequest, host: string, { origins = [], own }: Server): boolean => {
  const origin = headers["origin"]?.toLowerCase()
  if (origin === undefined) return origins.length > 0 || !isOfForeignPage(headers)
  if (origins.some((other) => other.toLowerCase() === origin)) return true
  if (own !== undefined) return own.some((other) => origin === `http://${other}`)
  const page = URL.parse(origin)
  return page !== null && /^https?:$/.test(page.protocol) && page.origin === origin && page.host === host
}

/** Pages include images and scripts of other sites without an Origin. */
const isOfForeignPage = (headers: HttpServerRequest["headers"]): boolean =>
  headers["sec-fetch-site"] === "cross-site" && headers["sec-fetch-mode"] !== "navigate"

/** Returns the host of a request in lower case. A web request may have no `Host` header, but its URL is complete. */
const hostOf = ({ headers, originalUrl }: HttpServerRequest): string =>
  (headers["host"] ?? URL.parse(originalUrl)?.host ?? "").toLowerCase()

const nameOf = (host: string): string => host.replace(/:\d*$/, "")

const isLoopbackName = (name: string): boolean =>
  name === "localhost" || name.endsWith(".localhost") || name === "[::1]" || isLoopbackV4.test(name)

const isLoopbackAddress = (address: string): boolean =>
  address === "::1" || isLoopbackV4.test(address.replace(/^::ffff:/, ""))

const isLoopbackV4 = /^127(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}$/

/** Returns how often a Node request has a header. Web requests join the values of repeated ones. */
const timesOf = ({ source }: HttpServerRequest, name: string): number =>
  "rawHeaders" in source && Array.isArray(source.rawHeaders)
    ? source.rawHeaders.filter((raw, at) => at % 2 === 0 && String(raw).toLowerCase() === name.toLowerCase()).length
    : 0

/** A target with a host of its own, as for a proxy, would decide instead of the `Host` header. */
const hasPath = ({ source }: HttpServerRequest): boolean =>
  !("rawHeaders" in source && "url" in source && typeof source.url === "string") || /^\/(?!\/)/.test(source.url)
