import { assert, describe, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { McpConfig } from "kernai/mcp"
import { createPublicKey, generateKeyPairSync, type KeyObject, verify } from "node:crypto"
import { grant } from "../../src/mcp/internal/clientGrant.ts"

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey
const ec = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey
const pem = (key: KeyObject, type: "pkcs1" | "pkcs8" | "sec1") => String(key.export({ type, format: "pem" }))
// `openssl ecparam -genkey` writes the curve before the key.
const parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"

/** Asks for a grant with a private key, and returns the form that the authorization server received. */
const asked = Effect.fnUntraced(function* (privateKey: string) {
  let form = new URLSearchParams()
  const client = HttpClient.make((request) => {
    form = new URLSearchParams(request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : "")
    const token = { access_token: "t", token_type: "bearer" }
    return Effect.succeed(HttpClientResponse.fromWeb(request, Response.json(token)))
  })
  const url = "https://mcp.example/mcp"
  const oauth = { clientId: "me", privateKey, grant: "client_credentials" }
  const { servers } = yield* McpConfig.fromValue({ servers: { it: { url, oauth } } })
  const server = servers.get("it")
  assert(server?.transport === "streamable_http")
  const issuer = "https://auth.example"
  const found = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    resource: url,
    scope: undefined
  }
  const { accessToken } = yield* grant(server, client, found, "")
  assert.strictEqual(Redacted.value(accessToken), "t")
  return form
})

const part = (text: string): unknown => JSON.parse(Buffer.from(text, "base64url").toString())

describe("a grant to a program", () => {
  for (const [format, key, file, alg] of [
    ["PKCS#8 of RSA", rsa, pem(rsa, "pkcs8"), "RS256"],
    ["PKCS#1", rsa, pem(rsa, "pkcs1"), "RS256"],
    ["PKCS#8 of EC", ec, pem(ec, "pkcs8"), "ES256"],
    ["SEC1", ec, pem(ec, "sec1"), "ES256"],
    ["SEC1 after its curve", ec, `${parameters}${pem(ec, "sec1")}`, "ES256"]
  ] as const) {
    it.live(`is asked for with a signature of a key in ${format}`, () =>
      Effect.gen(function* () {
        const form = yield* asked(file)
        assert.strictEqual(form.get("grant_type"), "client_credentials")
        const [header = "", claims = "", signature = ""] = form.get("client_assertion")?.split(".") ?? []
        assert.deepStrictEqual(part(header), { alg, typ: "JWT" })
        assert.include(part(claims), { iss: "me", sub: "me", aud: "https://auth.example" })
        const publicKey = { key: createPublicKey(key), dsaEncoding: "ieee-p1363" } as const
        assert.isTrue(
          verify("sha256", Buffer.from(`${header}.${claims}`), publicKey, Buffer.from(signature, "base64url"))
        )
      })
    )
  }

  it.live("fails with a sentence for a key of another curve, or none", () =>
    Effect.gen(function* () {
      const other = generateKeyPairSync("ec", { namedCurve: "secp384r1" }).privateKey
      for (const key of [pem(other, "pkcs8"), pem(other, "sec1"), "no key"]) {
        const error = yield* Effect.flip(asked(key))
        assert.include(error.message, "the 'privateKey' of MCP server 'it' is not a PEM key of EC (P-256) or RSA")
      }
    })
  )
})
