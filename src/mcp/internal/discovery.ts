/**
 * Finding the authorization server of an MCP server.
 *
 * The MCP server's own origin says who guards it; that server's own document
 * says where to sign in. Addresses are https, or http on loopback for a server
 * that is itself on loopback, and every document must name what it was asked
 * about, so no server can pass itself off as another.
 */

import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as Bounds from "../../internal/base/bounds.ts"
import { parseJson } from "../../internal/base/json.ts"
import { McpError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import * as Challenge from "./challenge.ts"

/** Where and how to sign in. */
export interface AuthorizationServer {
  readonly issuer: string
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly registrationEndpoint: string | undefined
  /** Must the answer name the issuer (RFC 9207)? */
  readonly namesItself: boolean
  readonly clientAuth: "basic" | "post"
  /** What tokens are asked for. */
  readonly resource: string
  readonly scope: string | undefined
}

/** An HTTP answer as far as it is JSON. */
export interface Answer {
  readonly status: number
  readonly body: unknown
}

/** Nobody is signed in to the server, and this is why. */
export const needsSignIn = (server: { readonly name: string }, detail: string) =>
  new McpError({ server: server.name, reason: "needs_sign_in", detail })

/** Sends a request and reads a bounded JSON answer. */
export const fetchJson = Effect.fnUntraced(function* (
  server: string,
  client: HttpClient.HttpClient,
  request: HttpClientRequest.HttpClientRequest
) {
  const limits = yield* Limits
  const failed = (what: string) =>
    new McpError({
      server,
      reason: "connect",
      detail: `the authorization server of MCP server '${server}' ${what}`
    })
  // What went wrong may show the request, and that holds codes and tokens.
  const unreachable = () => failed("cannot be reached")
  return yield* Effect.gen(function* () {
    const response = yield* Effect.mapError(HttpClient.withScope(client).execute(request), unreachable)
    const bytes = yield* response.stream.pipe(
      Stream.mapError(unreachable),
      Stream.limitBytes(maxBytes, () => Stream.fail(failed("gave an answer that is too large"))),
      Stream.mkUint8Array
    )
    const body = parseJson(new TextDecoder().decode(bytes), Bounds.jsonDepth)
    const answer: Answer = { status: response.status, body: Result.getOrUndefined(body) }
    return answer
  }).pipe(
    Effect.scoped,
    Effect.timeoutOrElse({
      duration: limits.connectTimeout,
      orElse: () => Effect.fail(failed("did not answer in time"))
    })
  )
})

/** Follows the documents from an MCP server to where one signs in. */
export const discover = Effect.fnUntraced(function* (
  server: { readonly name: string; readonly url: string },
  client: HttpClient.HttpClient,
  challenges: ReadonlyArray<string>
) {
  const refuse = (detail: string) => needsSignIn(server, detail)
  const read = Effect.fnUntraced(function* <S extends Schema.ConstraintDecoder<unknown>>(
    urls: ReadonlyArray<string>,
    schema: S
  ) {
    for (const url of urls) {
      const answer = yield* fetchJson(server.name, client, HttpClientRequest.get(url, { acceptJson: true }))
      const document = answer.status === 200 ? Schema.decodeUnknownOption(schema)(answer.body) : Option.none()
      if (Option.isSome(document)) return document.value
    }
    return undefined
  })

  const url = new URL(server.url)
  if (!isSafe(server.url, url)) {
    return yield* refuse(`MCP server '${server.name}' must be reached by https: a token would be sent to it`)
  }
  const asked = Challenge.parametersOf(...challenges)
  const told = asked.get("resource_metadata")
  if (told !== undefined && URL.parse(told)?.origin !== url.origin) {
    return yield* refuse(`MCP server '${server.name}' is described on another origin, which is not trusted`)
  }
  const resource = yield* read(told === undefined ? wellKnown(url, "oauth-protected-resource") : [told], Resource)
  if (resource !== undefined && !covers(resource.resource, url)) {
    return yield* refuse(`the description of MCP server '${server.name}' is about another server`)
  }

  const issuer = resource?.authorization_servers[0] ?? url.origin
  if (!isSafe(issuer, url)) {
    return yield* refuse(`the authorization server of MCP server '${server.name}' must be reached by https`)
  }
  const issuerUrl = new URL(issuer)
  const metadata = yield* read(
    [...wellKnown(issuerUrl, "oauth-authorization-server").slice(0, 1), ...openIdDocuments(issuerUrl)],
    Metadata
  )
  // Before there were descriptions, servers guarded themselves at fixed addresses.
  if (metadata === undefined && resource === undefined) {
    const fixed: AuthorizationServer = {
      issuer,
      authorizationEndpoint: `${url.origin}/authorize`,
      tokenEndpoint: `${url.origin}/token`,
      registrationEndpoint: `${url.origin}/register`,
      namesItself: false,
      clientAuth: "basic",
      resource: canonical(url),
      scope: asked.get("scope")
    }
    return fixed
  }
  if (metadata === undefined) {
    return yield* refuse(`the authorization server of MCP server '${server.name}' does not describe itself`)
  }
  if (stripSlash(metadata.issuer) !== stripSlash(issuer)) {
    return yield* refuse(`the authorization server of MCP server '${server.name}' describes another one`)
  }
  if (!metadata.code_challenge_methods_supported?.includes("S256")) {
    return yield* refuse(`the authorization server of MCP server '${server.name}' does not offer PKCE with S256`)
  }
  const endpoints = [metadata.authorization_endpoint, metadata.token_endpoint, metadata.registration_endpoint]
  if (endpoints.some((endpoint) => endpoint !== undefined && !isSafe(endpoint, url))) {
    return yield* refuse(`the authorization server of MCP server '${server.name}' names an address that is not https`)
  }
  const methods = metadata.token_endpoint_auth_methods_supported
  const found: AuthorizationServer = {
    issuer: metadata.issuer,
    authorizationEndpoint: metadata.authorization_endpoint,
    tokenEndpoint: metadata.token_endpoint,
    registrationEndpoint: metadata.registration_endpoint,
    namesItself: metadata.authorization_response_iss_parameter_supported === true,
    clientAuth: methods === undefined || methods.includes("client_secret_basic") ? "basic" : "post",
    resource: resource?.resource ?? canonical(url),
    scope: asked.get("scope") ?? resource?.scopes_supported?.join(" ")
  }
  return found
})

const maxBytes = 1024 * 1024

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
  authorization_response_iss_parameter_supported: Schema.optionalKey(Schema.Boolean)
})

const stripSlash = (text: string) => (text.endsWith("/") ? text.slice(0, -1) : text)

const canonical = (url: URL) => stripSlash(`${url.origin}${url.pathname}`)

// The path follows the well-known part; the document of the whole origin stands without it.
const wellKnown = (url: URL, name: string): ReadonlyArray<string> => {
  const path = stripSlash(url.pathname)
  const root = `${url.origin}/.well-known/${name}`
  return path === "" ? [root] : [`${root}${path}`, root]
}

const openIdDocuments = (issuer: URL): ReadonlyArray<string> => {
  const path = stripSlash(issuer.pathname)
  const plain = `${issuer.origin}${path}/.well-known/openid-configuration`
  return path === "" ? [plain] : [`${issuer.origin}/.well-known/openid-configuration${path}`, plain]
}

// A description is of the server when it names it, or a path above it on the same origin.
const covers = (resource: string, url: URL): boolean => {
  const named = URL.parse(resource)
  if (named === null || named.origin !== url.origin) return false
  const above = stripSlash(named.pathname)
  return url.pathname === above || url.pathname.startsWith(`${above}/`)
}

const isSafe = (text: string, server: URL): boolean => {
  const url = URL.parse(text)
  if (url === null || url.username !== "" || url.password !== "") return false
  if (url.protocol === "https:") return true
  return url.protocol === "http:" && isLoopback(url) && isLoopback(server)
}

const isLoopback = (url: URL) => ["127.0.0.1", "[::1]", "localhost"].includes(url.hostname)
