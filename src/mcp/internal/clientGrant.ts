/** Gets a token for the program itself, without a person. Its client authenticates with a secret or a private key. */

import * as Clock from "effect/Clock"
import * as KeyFormat from "effect/crypto/KeyFormat"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Signature from "effect/crypto/Signature"
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
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
const proofOf = (
  server: HttpServer,
  clientId: string,
  issuer: string,
  privateKey: Redacted.Redacted<string>
): Effect.Effect<{ readonly [name: string]: string }, McpError> =>
  Effect.gen(function* () {
    const now = Math.floor((yield* Clock.currentTimeMillis) / 1000)
    const random = yield* SecureRandom.SecureRandom
    const jti = Base64Url.encode(yield* random.randomBytes(16))
    const key = yield* keyOf(Redacted.value(privateKey))
    const header = { alg: key.algorithm._tag === "Ecdsa" ? "ES256" : "RS256", typ: "JWT" }
    const claims = { iss: clientId, sub: clientId, aud: issuer, iat: now, exp: now + lifetime, jti }
    const text = [header, claims].map((part) => Base64Url.encode(JSON.stringify(part))).join(".")
    const signature = yield* (yield* Signature.Signature).sign(key, new TextEncoder().encode(text))
    return {
      client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      client_assertion: `${text}.${Base64Url.encode(signature)}`
    }
  }).pipe(
    Effect.provide(crypto),
    Effect.mapError(() =>
      needsSignIn(server, `the 'privateKey' of MCP server '${server.name}' is not a PEM key of EC (P-256) or RSA`)
    )
  )

const crypto = Layer.provideMerge(Signature.layerWebCrypto, SecureRandom.layerWebCrypto)

/** Reads the private key of a PEM file, which may have the parameters of a curve before it. */
const keyOf = (file: string) => {
  const [pem = "", label] = /-----BEGIN ([A-Z ]*)PRIVATE KEY-----[^-]*-----END \1PRIVATE KEY-----/.exec(file) ?? []
  const { decodePrivate, pem: inPem, pkcs1, pkcs8, sec1 } = KeyFormat
  if (label === "RSA ") return decodePrivate(inPem(pkcs1), Signature.rsaPkcs1v15Sha256, pem)
  if (label === "EC ") return decodePrivate(inPem(sec1), Signature.ecdsaP256, pem)
  const decode = <A extends Signature.Ecdsa | Signature.RsaPkcs1v15>(algorithm: A) =>
    decodePrivate(inPem(pkcs8), algorithm, pem)
  return Effect.catch(decode(Signature.ecdsaP256), () => decode(Signature.rsaPkcs1v15Sha256))
}

// In seconds.
const lifetime = 300
