/**
 * What is asked of an authorization server: to know us, and to give tokens.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Option from "effect/Option"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { isRecord, own } from "../../internal/base/json.ts"
import type { McpError } from "../../KernelError.ts"
import type { HttpServer } from "../McpConfig.ts"
import type { Grant } from "../TokenStore.ts"
import { type Answer, type AuthorizationServer, fetchJson, needsSignIn } from "./discovery.ts"
import { clientInfo } from "./handshake.ts"

/** Who we are to an authorization server. */
export type Client = Pick<Grant, "issuer" | "tokenEndpoint" | "resource" | "clientId" | "clientSecret" | "clientAuth">

/** The client of the config, or one registered for this sign-in. */
export const register = Effect.fnUntraced(function* (
  server: HttpServer,
  client: HttpClient.HttpClient,
  found: AuthorizationServer,
  redirectUri: string
) {
  const at = { issuer: found.issuer, tokenEndpoint: found.tokenEndpoint, resource: found.resource }
  const { clientId, clientSecret } = server.oauth
  if (clientId !== undefined) {
    const known: Client =
      clientSecret === undefined
        ? { ...at, clientId, clientAuth: "none" }
        : { ...at, clientId, clientSecret, clientAuth: found.clientAuth }
    return known
  }
  if (found.registrationEndpoint === undefined) {
    return yield* needsSignIn(
      server,
      `the authorization server of MCP server '${server.name}' registers no clients: set oauth.clientId of the server`
    )
  }
  const answer = yield* fetchJson(
    server.name,
    client,
    HttpClientRequest.post(found.registrationEndpoint, { acceptJson: true }).pipe(
      HttpClientRequest.bodyJsonUnsafe({
        client_name: clientInfo.name,
        // Of any other kind, none may come back to loopback.
        application_type: "native",
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: "none"
      })
    )
  )
  const registered = decodeRegistration(answer.body)
  if (answer.status < 200 || answer.status > 299 || Option.isNone(registered)) {
    return yield* needsSignIn(
      server,
      `the authorization server of MCP server '${server.name}' did not register us${errorOf(answer)}`
    )
  }
  const { client_id, client_secret, token_endpoint_auth_method } = registered.value
  const made: Client =
    client_secret === undefined || token_endpoint_auth_method === "none"
      ? { ...at, clientId: client_id, clientAuth: "none" }
      : {
          ...at,
          clientId: client_id,
          clientSecret: Redacted.make(client_secret),
          clientAuth: token_endpoint_auth_method === "client_secret_post" ? "post" : "basic"
        }
  return made
})

/** Asks for tokens. */
export const ask = (
  server: string,
  http: HttpClient.HttpClient,
  client: Client,
  parameters: { readonly [name: string]: string }
): Effect.Effect<Answer, McpError> => {
  const secret = client.clientSecret === undefined ? "" : Redacted.value(client.clientSecret)
  const body = {
    ...parameters,
    resource: client.resource,
    ...(client.clientAuth === "basic" ? {} : { client_id: client.clientId }),
    ...(client.clientAuth === "post" ? { client_secret: secret } : {})
  }
  const request = HttpClientRequest.post(client.tokenEndpoint, { acceptJson: true }).pipe(
    HttpClientRequest.bodyUrlParams(body)
  )
  if (client.clientAuth !== "basic") return fetchJson(server, http, request)
  const pair = [client.clientId, secret].map((text) => encodeURIComponent(text.toWellFormed())).join(":")
  return fetchJson(server, http, HttpClientRequest.setHeader(request, "authorization", `Basic ${Base64.encode(pair)}`))
}

/** The tokens of an answer, if it holds any that kernai can use. */
export const read = Effect.fnUntraced(function* (answer: Answer) {
  const decoded = answer.status === 200 ? decodeTokens(answer.body) : Option.none()
  if (Option.isNone(decoded)) return undefined
  const { access_token, expires_in, refresh_token, scope, token_type } = decoded.value
  // What goes into a header must fit there; nobody issues tokens that do not.
  if (token_type.toLowerCase() !== "bearer" || !/^[\x21-\x7e]+$/.test(access_token)) return undefined
  const now = yield* Clock.currentTimeMillis
  const tokens: Pick<Grant, "accessToken" | "refreshToken" | "expiresAt" | "scope"> = {
    accessToken: Redacted.make(access_token),
    ...(refresh_token ? { refreshToken: Redacted.make(refresh_token) } : {}),
    ...(typeof expires_in === "number" ? { expiresAt: now + expires_in * 1000 } : {}),
    ...(typeof scope === "string" ? { scope } : {})
  }
  return tokens
})

/** The short code of an error answer, for a sentence. Its description may repeat what was sent. */
export const errorOf = ({ body }: Answer): string => {
  const code = isRecord(body) ? own(body, "error") : undefined
  return typeof code === "string" && /^[\w-]{1,64}$/.test(code) ? ` (${code})` : ""
}

const decodeTokens = Schema.decodeUnknownOption(
  Schema.Struct({
    access_token: Schema.NonEmptyString,
    token_type: Schema.String,
    expires_in: Schema.optionalKey(Schema.NullOr(Schema.Finite)),
    refresh_token: Schema.optionalKey(Schema.NullOr(Schema.String)),
    scope: Schema.optionalKey(Schema.NullOr(Schema.String))
  })
)

const decodeRegistration = Schema.decodeUnknownOption(
  Schema.Struct({
    client_id: Schema.NonEmptyString,
    client_secret: Schema.optionalKey(Schema.String),
    token_endpoint_auth_method: Schema.optionalKey(Schema.String)
  })
)
