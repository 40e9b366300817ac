/**
 * Finds the authorization server of an MCP server. Addresses must be https, or http on loopback for a server on
 * loopback. Private and link-local addresses, and names that resolve to them, are allowed only for servers at such
 * addresses, and every document must name the server it was requested for, so that no server can impersonate another.
 */

import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Bounds from "../../kit/bounds.ts"
import { parseJson } from "../../kit/json.ts"
import { McpError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { HttpServer } from "../McpConfig.ts"
import { isAllowed } from "./dialedHost.ts"
import { hostKind } from "../../kit/hostKind.ts"
import { parametersOf } from "./requestFailure.ts"

const Resource = Schema.Struct({
  resource: Schema.String,
  authorization_servers: Schema.NonEmptyArray(Schema.String),
  scopes_supported: Schema.optionalKey(Schema.Array(Schema.String))
})

const Metadata = Schema.Struct({
  issuer: Schema.String,
  authorization_endpoint: Schema.String,
  token_endpoint: Schema.String,
  registration_endpoint: Schema.optionalKey(Schema.String),
  code_challenge_methods_supported: Schema.optionalKey(Schema.Array(Schema.String)),
  token_endpoint_auth_methods_supported: Schema.optionalKey(Schema.Array(Schema.String)),
  /** Whether the response of a sign-in must name the issuer (RFC 9207). */
  authorization_response_iss_parameter_supported: Schema.optionalKey(Schema.Boolean)
})

/** The metadata of an authorization server, and the resource to request. */
export interface AuthorizationServer extends Schema.Schema.Type<typeof Metadata> {
  /** The resource for which tokens are issued. */
  readonly resource: string
  readonly scope: string | undefined
}

/** Follows the documents from an MCP server to its authorization server. */
export const discover = Effect.fnUntraced(function* (
  server: HttpServer,
  client: HttpClient.HttpClient,
  challenges: ReadonlyArray<string>
): Effect.fn.Return<AuthorizationServer, McpError> {
  const named = `MCP server '${server.name}'`
  const refuse = (detail: string) => needsSignIn(server, detail)
  const url = new URL(server.url)
  if (!isSafe(server.url, url)) {
    return yield* refuse(`${named} must be reached by https: a token would be sent to it`)
  }
  const asked = parametersOf(...challenges)
  const place = asked.get("resource_metadata")
  if (place !== undefined && URL.parse(place)?.origin !== url.origin) {
    return yield* refuse(`${named} has its metadata on another origin, which is not trusted`)
  }
  const places = place === undefined ? wellKnown(url, "oauth-protected-resource") : [place]
  const resource = yield* readFirst(server, client, places, Resource)
  if (resource !== undefined && !covers(resource.resource, url)) {
    return yield* refuse(`the metadata of ${named} is about another resource`)
  }

  const issuer = resource?.authorization_servers[0] ?? url.origin
  if (!isSafe(issuer, url)) return yield* refuse(`the authorization server of ${named} must be reached by https`)
  if (!isReachable(issuer, url)) return yield* refuse(`the authorization server of ${named} is ${elsewhere}`)
  const metadata = yield* readFirst(server, client, metadataPlaces(new URL(issuer)), Metadata)
  const scope = asked.get("scope")
  // Servers of older revisions without metadata have fixed endpoints.
  if (metadata === undefined && resource === undefined) {
    const { origin } = url
    const [authorization_endpoint, token_endpoint] = [`${origin}/authorize`, `${origin}/token`]
    const registration_endpoint = `${origin}/register`
    return { issuer, authorization_endpoint, token_endpoint, registration_endpoint, resource: canonical(url), scope }
  }
  const fault =
    metadata === undefined
      ? "publishes no metadata"
      : faultOf(metadata, resource === undefined ? undefined : issuer, url)
  if (metadata === undefined || fault !== undefined) {
    return yield* refuse(`the authorization server of ${named} ${fault}`)
  }
  return {
    ...metadata,
    resource: resource?.resource ?? canonical(url),
    scope: scope ?? resource?.scopes_supported?.join(" ")
  }
})

/**
 * Returns the problem of metadata, if any. Without resource metadata, as in older revisions, the issuer must have the
 * server's own origin.
 */
const faultOf = (metadata: typeof Metadata.Type, issuer: string | undefined, url: URL): string | undefined => {
  const isOther =
    issuer === undefined
      ? URL.parse(metadata.issuer)?.origin !== url.origin
      : stripSlash(metadata.issuer) !== stripSlash(issuer)
  if (isOther) return "publishes metadata of another issuer"
  if (!metadata.code_challenge_methods_supported?.includes("S256")) return "does not offer PKCE with S256"
  const endpoints = [metadata.authorization_endpoint, metadata.token_endpoint, metadata.registration_endpoint]
  const given = endpoints.filter((endpoint) => endpoint !== undefined)
  if (!given.every((endpoint) => isSafe(endpoint, url))) return "has an endpoint that is not https"
  return given.every((endpoint) => isReachable(endpoint, url)) ? undefined : `has an endpoint ${elsewhere}`
}

const elsewhere = "at a private address, which is allowed only for a server at a private address"

export const needsSignIn = (server: HttpServer, detail: string) =>
  new McpError({ server: server.name, reason: "needs_sign_in", detail })

/** An HTTP response. The body is undefined if it is not JSON. */
export interface Answer {
  readonly status: number
  readonly body: unknown
}

/**
 * Sends a request and reads a JSON response of at most 1 MiB. Fails after `Limits.connectTimeout`, and if the host
 * resolves to an address that the server may not name.
 */
export const fetchJson = Effect.fnUntraced(function* (
  server: HttpServer,
  client: HttpClient.HttpClient,
  request: HttpClientRequest.HttpClientRequest
): Effect.fn.Return<Answer, McpError> {
  const limits = yield* Limits
  const failed = (what: string) => () => {
    const detail = `the authorization server of MCP server '${server.name}' ${what}`
    return Effect.fail(new McpError({ server: server.name, reason: "connect", detail }))
  }
  // The cause may show the request, which holds codes and tokens.
  const unreachable = failed("cannot be reached")
  return yield* Effect.gen(function* () {
    if (!(yield* isAllowed(new URL(request.url), new URL(server.url)))) {
      return yield* needsSignIn(server, `the authorization server of MCP server '${server.name}' is ${elsewhere}`)
    }
    const { status, stream } = yield* Effect.catch(HttpClient.withScope(client).execute(request), unreachable)
    const bytes = yield* stream.pipe(
      Stream.catch(() => Stream.fromEffect(unreachable())),
      Stream.limitBytes(1024 * 1024, () => Stream.fromEffect(failed("gave an answer that is too large")())),
      Stream.mkUint8Array
    )
    const body = parseJson(new TextDecoder().decode(bytes), Bounds.jsonDepth)
    return { status, body: Result.getOrUndefined(body) }
  }).pipe(
    Effect.scoped,
    Effect.timeoutOrElse({ duration: limits.connectTimeout, orElse: failed("did not answer in time") })
  )
})

const readFirst = Effect.fnUntraced(function* <S extends Schema.ConstraintDecoder<unknown>>(
  server: HttpServer,
  client: HttpClient.HttpClient,
  urls: ReadonlyArray<string>,
  schema: S
) {
  for (const url of urls) {
    const answer = yield* fetchJson(server, client, HttpClientRequest.get(url, { acceptJson: true }))
    const document = answer.status === 200 ? Schema.decodeUnknownOption(schema)(answer.body) : Option.none()
    if (Option.isSome(document)) return document.value
  }
  return undefined
})

const stripSlash = (text: string) => (text.endsWith("/") ? text.slice(0, -1) : text)

const canonical = (url: URL) => stripSlash(`${url.origin}${url.pathname}`)

// The path follows the well-known part. The document of the whole origin has no path.
const wellKnown = (url: URL, name: string): ReadonlyArray<string> => {
  const path = stripSlash(url.pathname)
  const root = `${url.origin}/.well-known/${name}`
  return path === "" ? [root] : [`${root}${path}`, root]
}

const metadataPlaces = (issuer: URL): ReadonlyArray<string> => {
  const path = stripSlash(issuer.pathname)
  const [oauth, openId] = ["oauth-authorization-server", "openid-configuration"]
  const first = [oauth, openId].map((name) => `${issuer.origin}/.well-known/${name}${path}`)
  return path === "" ? first : [...first, `${issuer.origin}${path}/.well-known/${openId}`]
}

// Metadata covers the server if it names the server, or a parent path on the same origin.
const covers = (resource: string, url: URL): boolean => {
  const named = URL.parse(resource)
  if (named === null || named.origin !== url.origin) return false
  const above = stripSlash(named.pathname)
  return url.pathname === above || url.pathname.startsWith(`${above}/`)
}

const isSafe = (text: string, server: URL): boolean => {
  const url = URL.parse(text)
  if (url === null || url.username !== "" || url.password !== "") return false
  return url.protocol === "https:" || (url.protocol === "http:" && isLoopback(url) && isLoopback(server))
}

/** Returns false if a public server names an address that only this computer or its network can reach. */
const isReachable = (text: string, server: URL): boolean => {
  const kind = hostKind(new URL(text))
  return kind === "public" || kind === hostKind(server)
}

const isLoopback = (url: URL) => ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname)
