/** Signs a person in with the browser and PKCE, and requests tokens. */

import * as Clock from "effect/Clock"
import * as Digest from "effect/crypto/Digest"
import * as SecureRandom from "effect/crypto/SecureRandom"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Base64Url from "effect/encoding/Base64Url"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { isRecord, own } from "../../kit/json.ts"
import type { McpError } from "../../KernelError.ts"
import type { HttpServer } from "../McpConfig.ts"
import type { Grant } from "../TokenStore.ts"
import { type Answer, type AuthorizationServer, discover, fetchJson, needsSignIn } from "./discovery.ts"
import { clientInfo } from "./handshake.ts"
import { openRedirectPage } from "./localServer.ts"
import { union } from "./requestFailure.ts"

/** Shows an address to a person, waits for the browser to return, and gets a grant. */
export const signIn = <E, R>(options: {
  readonly server: HttpServer
  readonly client: HttpClient.HttpClient
  /** The challenges with which the server refused tokens. */
  readonly challenges: ReadonlyArray<string>
  readonly scopeFor: (found: AuthorizationServer) => string
  readonly show: (url: string) => Effect.Effect<unknown, E, R>
  readonly timeout: Duration.Input
}): Effect.Effect<Grant, McpError | E, R> =>
  Effect.gen(function* () {
    const { client, server } = options
    const refuse = (detail: string) => needsSignIn(server, detail)
    const found = yield* discover(server, client, options.challenges)
    const random = yield* SecureRandom.SecureRandom
    const state = Base64Url.encode(yield* random.randomBytes(32))
    const verifier = Base64Url.encode(yield* random.randomBytes(32))
    const digest = yield* (yield* Digest.Digest).digest(Digest.sha256, new TextEncoder().encode(verifier))
    const { redirectPort } = server.oauth
    const page = yield* Effect.mapError(openRedirectPage(redirectPort, state), () =>
      refuse(`the sign-in cannot listen on port ${redirectPort} of this computer`)
    )
    const registered = yield* register(server, client, found, page.redirectUri)
    const scope = options.scopeFor(found)
    const url = new URL(found.authorization_endpoint)
    const parameters = {
      response_type: "code",
      client_id: registered.clientId,
      redirect_uri: page.redirectUri,
      state,
      code_challenge: Base64Url.encode(digest),
      code_challenge_method: "S256",
      resource: found.resource,
      ...(scope === "" ? {} : { scope })
    }
    for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
    const answer = yield* Effect.timeoutOrElse(Effect.andThen(options.show(url.href), page.answer), {
      duration: options.timeout,
      orElse: () => Effect.fail(refuse(`the sign-in to MCP server '${server.name}' timed out`))
    })
    const code = yield* codeOf(server, found, answer)
    const asked = { grant_type: "authorization_code", code, redirect_uri: page.redirectUri, code_verifier: verifier }
    const token = yield* askForTokens(server, client, registered, asked)
    const fresh = yield* readTokens(token)
    return fresh === undefined
      ? yield* refuse(`the authorization server of MCP server '${server.name}' gave no token${errorOf(token)}`)
      : { ...registered, ...fresh, scope: union(scope, fresh.scope) }
  }).pipe(Effect.scoped, Effect.provide(crypto))

const crypto = Layer.merge(SecureRandom.layerWebCrypto, Digest.layerWebCrypto)

const codeOf = (
  server: HttpServer,
  found: AuthorizationServer,
  answer: URLSearchParams
): Effect.Effect<string, McpError> => {
  const issuer = answer.get("iss")
  // A response of another authorization server must be ignored (RFC 9207).
  if (issuer === null ? found.authorization_response_iss_parameter_supported === true : issuer !== found.issuer) {
    return Effect.fail(needsSignIn(server, `another authorization server answered for MCP server '${server.name}'`))
  }
  const code = answer.get("code")
  if (code !== null && code !== "") return Effect.succeed(code)
  const reason = JSON.stringify(answer.get("error")?.slice(0, 100) ?? "no code")
  return Effect.fail(needsSignIn(server, `the sign-in to MCP server '${server.name}' was refused (${reason})`))
}

type Client = Pick<Grant, "issuer" | "tokenEndpoint" | "resource" | "clientId" | "clientSecret" | "clientAuth">

/** Returns the client of the config, if it has one. */
export const clientOf = (server: HttpServer, found: AuthorizationServer): Client | undefined => {
  const { clientId, clientSecret } = server.oauth
  if (clientId === undefined) return undefined
  const { issuer, resource, token_endpoint_auth_methods_supported: methods } = found
  const at = { issuer, tokenEndpoint: found.token_endpoint, resource }
  const clientAuth = methods === undefined || methods.includes("client_secret_basic") ? "basic" : "post"
  return { ...at, clientId, ...(clientSecret === undefined ? { clientAuth: "none" } : { clientSecret, clientAuth }) }
}

/** Returns the client of the config, or registers one for this sign-in. */
const register = Effect.fnUntraced(function* (
  server: HttpServer,
  http: HttpClient.HttpClient,
  found: AuthorizationServer,
  redirectUri: string
): Effect.fn.Return<Client, McpError> {
  const { issuer, registration_endpoint, resource } = found
  const at = { issuer, tokenEndpoint: found.token_endpoint, resource }
  const authority = `the authorization server of MCP server '${server.name}'`
  const configured = clientOf(server, found)
  if (configured !== undefined) {
    return configured
  }
  if (registration_endpoint === undefined) {
    return yield* needsSignIn(server, `${authority} registers no clients: set oauth.clientId of the server`)
  }
  const request = HttpClientRequest.post(registration_endpoint, { acceptJson: true }).pipe(
    HttpClientRequest.bodyJsonUnsafe({
      client_name: clientInfo.name,
      // Only a native client may be redirected to loopback.
      application_type: "native",
      redirect_uris: [redirectUri],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none"
    })
  )
  const answer = yield* fetchJson(server, http, request)
  const registered = decodeRegistration(answer.body)
  if (answer.status < 200 || answer.status > 299 || Option.isNone(registered)) {
    return yield* needsSignIn(server, `${authority} did not register kernai${errorOf(answer)}`)
  }
  const { client_id, client_secret: secret, token_endpoint_auth_method: method } = registered.value
  if (secret === undefined || method === "none") return { ...at, clientId: client_id, clientAuth: "none" }
  const clientAuth = method === "client_secret_post" ? "post" : "basic"
  return { ...at, clientId: client_id, clientSecret: secret, clientAuth }
})

export const askForTokens = (
  server: HttpServer,
  http: HttpClient.HttpClient,
  { clientAuth, clientId, clientSecret, resource, tokenEndpoint }: Client,
  parameters: { readonly [name: string]: string }
): Effect.Effect<Answer, McpError> => {
  const secret = clientSecret === undefined ? "" : Redacted.value(clientSecret)
  const request = HttpClientRequest.post(tokenEndpoint, { acceptJson: true }).pipe(
    HttpClientRequest.bodyUrlParams({
      ...parameters,
      resource,
      ...(clientAuth === "basic" ? {} : { client_id: clientId }),
      ...(clientAuth === "post" ? { client_secret: secret } : {})
    })
  )
  if (clientAuth !== "basic") return fetchJson(server, http, request)
  const pair = [clientId, secret].map((text) => encodeURIComponent(text.toWellFormed())).join(":")
  return fetchJson(server, http, HttpClientRequest.setHeader(request, "authorization", `Basic ${Base64.encode(pair)}`))
}

/** Returns the tokens of a response, or undefined if it holds none that can be used. */
export const readTokens = Effect.fnUntraced(function* (answer: Answer) {
  const decoded = answer.status === 200 ? decodeTokens(answer.body) : Option.none()
  if (Option.isNone(decoded)) return undefined
  const { access_token, expires_in, refresh_token, scope } = decoded.value
  const now = yield* Clock.currentTimeMillis
  const tokens: Pick<Grant, "accessToken" | "refreshToken" | "expiresAt" | "scope"> = {
    accessToken: access_token,
    ...(refresh_token ? { refreshToken: Redacted.make(refresh_token) } : {}),
    ...(typeof expires_in === "number" ? { expiresAt: now + expires_in * 1000 } : {}),
    ...(typeof scope === "string" ? { scope } : {})
  }
  return tokens
})

/** Returns the short code of an error response for a sentence. Its description may repeat secrets of the request. */
export const errorOf = ({ body }: Answer): string => {
  const code = isRecord(body) ? own(body, "error") : undefined
  return typeof code === "string" && /^[\w-]{1,64}$/.test(code) ? ` (${code})` : ""
}

const decodeTokens = Schema.decodeUnknownOption(
  Schema.Struct({
    // A token is sent in a header, which allows no other characters.
    access_token: Schema.RedactedFromValue(Schema.String.check(Schema.isPattern(/^[\x21-\x7e]+$/))),
    token_type: Schema.String.check(Schema.isPattern(/^bearer$/i)),
    expires_in: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
    refresh_token: Schema.optionalKey(Schema.NullOr(Schema.String)),
    scope: Schema.optionalKey(Schema.NullOr(Schema.String))
  })
)

const decodeRegistration = Schema.decodeUnknownOption(
  Schema.Struct({
    client_id: Schema.NonEmptyString,
    client_secret: Schema.optionalKey(Schema.RedactedFromValue(Schema.String)),
    token_endpoint_auth_method: Schema.optionalKey(Schema.String)
  })
)
