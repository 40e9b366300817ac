import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { FetchHttpClient } from "effect/http"
import * as fs from "node:fs"
import * as path from "node:path"
import { Limits } from "kernai"
import { TokenStore } from "kernai/mcp"
import * as Authorization from "../support/mcp/authorization.ts"
import * as Support from "../support/mcp/connect.ts"
import { prepare, write } from "../support/mcp/signIn.ts"

const grant: TokenStore.Grant = {
  issuer: "https://as",
  tokenEndpoint: "https://as/token",
  resource: "https://a",
  clientId: "c",
  clientAuth: "none",
  accessToken: Redacted.make("t"),
  refreshToken: Redacted.make("r"),
  expiresAt: 1
}

layer(Layer.mergeAll(NodeServices.layer, FetchHttpClient.layer), { excludeTestServices: true })("TokenStore", (it) => {
  it.effect("keeps a sign-in for the next process, in a file that only its owner can read", () =>
    Effect.gen(function* () {
      const folder = path.join(path.dirname(yield* Support.sideFile), "tokens")
      const open = Effect.map(Layer.build(TokenStore.layerFile(folder)), (context) =>
        Context.get(context, TokenStore.TokenStore)
      )
      const store = yield* open
      assert.isTrue(Option.isNone(yield* store.load("https://a/../x")))
      yield* store.save("https://a/../x", grant)
      yield* store.save("https://a/../x", { ...grant, clientId: "d" })
      yield* store.save("https://b", grant)
      const again = yield* Effect.flatten(Effect.map(open, (store) => store.load("https://a/../x")))
      assert.deepStrictEqual(again, Option.some({ ...grant, clientId: "d" }))
      const files = fs.readdirSync(folder)
      assert.lengthOf(files, 2)
      for (const file of files) {
        assert.match(file, /^[0-9a-f]{64}\.json$/)
        assert.strictEqual(fs.statSync(path.join(folder, file)).mode & 0o777, 0o600)
      }
      assert.strictEqual(fs.statSync(folder).mode & 0o777, 0o700)

      fs.writeFileSync(path.join(folder, files[0]!), `{"accessToken":`)
      fs.writeFileSync(path.join(folder, files[1]!), `[]`)
      assert.isTrue(Option.isNone(yield* store.load("https://b")))
      yield* store.remove("https://a/../x")
      yield* store.remove("https://b")
      yield* store.remove("https://b")
      assert.deepStrictEqual(fs.readdirSync(folder), [])
    })
  )

  it.effect("reads no file that is too large", () =>
    Effect.gen(function* () {
      const folder = path.dirname(yield* Support.sideFile)
      yield* Effect.gen(function* () {
        const store = yield* TokenStore.TokenStore
        yield* store.save("https://a", { ...grant, clientId: "c".repeat(1000) })
        yield* store.save("https://b", grant)
        assert.deepStrictEqual(
          [Option.isSome(yield* store.load("https://a")), Option.isSome(yield* store.load("https://b"))],
          [false, true]
        )
      }).pipe(
        Effect.provide(TokenStore.layerFile(folder)),
        Effect.provideService(Limits.Limits, { ...Limits.defaults, fetchedBytes: 1000 })
      )
    })
  )

  it.effect("needs another sign-in next time when it cannot write, and fails no call", () =>
    Effect.gen(function* () {
      const file = yield* Support.sideFile
      fs.writeFileSync(file, "")
      yield* Effect.gen(function* () {
        const server = yield* Authorization.serve(new Authorization.Guard())
        const { auth, connection } = yield* prepare(server.url())
        yield* auth.signIn(Authorization.browse)
        assert.strictEqual(yield* write(connection), "1")
      }).pipe(Effect.provide(TokenStore.layerFile(file)))
    })
  )
})
