/** Gets a token for the program itself, without a person. Its client authenticates with a secret or a private key. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import type * as HttpClient from "effect/http/HttpClient"
import * as Redacted from "effect/Redacted"
import { createPrivateKey, randomUUID, sign } from "node:crypto"
import type { McpError } from "../../KernelError.ts"
import type { HttpServer } from "../McpConfig.ts"
import type { Grant } from "../TokenStore.ts"
import { type AuthorizationServer, needsSignIn } from "./discovery.ts"
import { askForTokens, clientOf, errorOf, readTokens } from "./signIn.ts"

/** Asks the authorization server for a grant. */
export const grant = Effect.fnUntraced(function* (
  server: HttpServer,
  http: HttpClient.HttpClient,
  found: AuthorizationServer,
  scope: string
): Effect.fn.Return<Grant, McpError> {
  const refuse = (detail: string) => needsSignIn(server, detail)
  const client = clientOf(server, found)
  if (client === undefined) {
    return yield* refuse(`MCP server '${server.name}' needs a 'clientId' to grant tokens to a program`)
  }
  const { privateKey } = server.oauth
  const proof = privateKey === undefined ? {} : yield* proofOf(server, client.clientId, found.issuer, privateKey)
  const answer = yield* askForTokens(server, http, client, {
    grant_type: "client_credentials",
    ...(scope === "" ? {} : { scope }),
    ...proof
  })
  const fresh = yield* readTokens(answer)
  return fresh === undefined
    ? yield* refuse(`the authorization server of MCP server '${server.name}' gave no token${errorOf(answer)}`)
    : { ...client, ...fresh, scope: fresh.scope ?? scope }
})

/** Creates the signed client assertion for the authorization server (RFC 7523). */
const proofOf = Effect.fnUntraced(function* (
  server: HttpServer,
  clientId: string,
  issuer: string,
  privateKey: Redacted.Redacted<string>
): Effect.fn.Return<{ readonly [name: string]: string }, McpError> {
  const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
  const claims = { iss: clientId, sub: clientId, aud: issuer, iat: now, exp: now + lifetime, jti: randomUUID() }
  return yield* Effect.try({
    try: () => {
      const key = createPrivateKey(Redacted.value(privateKey))
      const header = { alg: key.asymmetricKeyType === "ec" ? "ES256" : "RS256", typ: "JWT" }
      const text = [header, claims].map((part) => Base64Url.encode(JSON.stringify(part))).join(".")
      const signature = sign("sha256", Buffer.from(text), { key, dsaEncoding: "ieee-p1363" })
      return {
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        client_assertion: `${text}.${Base64Url.encode(signature)}`
      }
    },
    catch: () => needsSignIn(server, `the 'privateKey' of MCP server '${server.name}' is not a PEM key of EC or RSA`)
  })
})

// In seconds.
const lifetime = 300
