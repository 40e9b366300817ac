import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option, Redacted } from "effect"
import { HttpClient } from "effect/http"
import { TokenStore } from "kernai/mcp"
import * as Authorization from "../support/mcp/authorization.ts"
import * as Support from "../support/mcp/connect.ts"
import { isRenewal, prepare, write } from "../support/mcp/signIn.ts"

layer(Layer.mergeAll(Support.platform, TokenStore.layerMemory), { excludeTestServices: true })("OAuth", (it) => {
  describe("beside another connection with the same sign-in", () => {
    it.effect("uses the token that the other one renewed", () =>
      Effect.gen(function* () {
        const guard = new Authorization.Guard()
        guard.expiresIn = 10
        const server = yield* Authorization.serve(guard)
        const [one, other] = [yield* prepare(server.url()), yield* prepare(server.url())]
        yield* one.auth.signIn(Authorization.browse)
        assert.strictEqual(yield* other.auth.state, "signed-in")
        guard.expiresIn = 3600
        for (const { connection } of [one, other]) yield* write(connection)
        assert.strictEqual(guard.refreshed, 1)
        assert.lengthOf(server.seen.filter(isRenewal), 1)
      })
    )

    it.effect("uses a new sign-in of the other one when its token is refused", () =>
      Effect.gen(function* () {
        const guard = new Authorization.Guard()
        const server = yield* Authorization.serve(guard)
        const [one, other] = [yield* prepare(server.url()), yield* prepare(server.url())]
        yield* one.auth.signIn(Authorization.browse)
        assert.strictEqual(yield* write(other.connection), "1")
        yield* one.auth.signIn(Authorization.browse)
        assert.strictEqual(yield* write(other.connection), "2")
        assert.strictEqual(guard.refreshed, 0)
      })
    )

    it.effect("uses the first sign-in of the other one", () =>
      Effect.gen(function* () {
        const server = yield* Authorization.serve(new Authorization.Guard())
        const store = yield* TokenStore.TokenStore
        let reads = 0
        const late = TokenStore.TokenStore.of({
          ...store,
          load: (url) => (++reads === 1 ? Effect.succeedNone : store.load(url))
        })
        const one = yield* prepare(server.url())
        const other = yield* Effect.provideService(prepare(server.url()), TokenStore.TokenStore, late)
        yield* one.auth.signIn(Authorization.browse)
        assert.strictEqual(yield* write(other.connection), "1")
        assert.strictEqual(reads, 2)
      })
    )

    it.effect("uses the other one's token when both renew at the same time", () =>
      Effect.gen(function* () {
        const guard = new Authorization.Guard()
        const server = yield* Authorization.serve(guard)
        const [asked, told] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const slow = HttpClient.transform(yield* HttpClient.HttpClient, (response, request) =>
          request.url.endsWith("/token")
            ? Effect.andThen(Deferred.succeed(asked, undefined), Effect.andThen(Deferred.await(told), response))
            : response
        )
        const one = yield* prepare(server.url())
        const other = yield* Effect.provideService(prepare(server.url()), HttpClient.HttpClient, slow)
        yield* one.auth.signIn(Authorization.browse)
        yield* other.auth.state
        guard.tokens.clear()
        const writing = yield* Effect.forkChild(write(other.connection))
        yield* Deferred.await(asked)
        yield* write(one.connection)
        yield* Deferred.succeed(told, undefined)
        yield* Fiber.join(writing)
        assert.deepStrictEqual([guard.refreshed, guard.notebook.written], [1, 2])
        const store = yield* TokenStore.TokenStore
        assert.isTrue(Option.isSome(yield* store.load(server.url())))
      })
    )

    it.effect("is signed out when the other one signs out, once its own token expires", () =>
      Effect.gen(function* () {
        for (const expiresIn of [10, 3600]) {
          const guard = new Authorization.Guard()
          guard.expiresIn = expiresIn
          const server = yield* Authorization.serve(guard)
          const [one, other] = [yield* prepare(server.url()), yield* prepare(server.url())]
          yield* one.auth.signIn(Authorization.browse)
          for (let renewed = 0; renewed < 2; renewed++) {
            yield* write(other.connection)
            if (expiresIn === 3600) guard.tokens.clear()
          }
          yield* one.auth.signOut
          const before = guard.refreshed
          assert.strictEqual((yield* Effect.flip(other.connection.callTool("write", {}))).reason, "needs_sign_in")
          assert.deepStrictEqual([guard.refreshed, yield* other.auth.state], [before, "needs-sign-in"])
          const store = yield* TokenStore.TokenStore
          assert.isTrue(Option.isNone(yield* store.load(server.url())))
          yield* one.auth.signIn(Authorization.browse)
          yield* write(other.connection)
        }
      })
    )

    it.effect("uses no older grant from a store that keeps nothing", () =>
      Effect.gen(function* () {
        const guard = new Authorization.Guard()
        guard.expiresIn = 10
        const server = yield* Authorization.serve(guard)
        const { auth: earlier } = yield* prepare(server.url())
        yield* earlier.signIn(Authorization.browse)
        const store = yield* TokenStore.TokenStore
        const full = TokenStore.TokenStore.of({ ...store, save: () => Effect.void, remove: () => Effect.void })
        const { connection } = yield* Effect.provideService(prepare(server.url()), TokenStore.TokenStore, full)
        for (const count of ["1", "2", "3"]) assert.strictEqual(yield* write(connection), count)
        guard.tokens.clear()
        assert.strictEqual(yield* write(connection), "4")
      })
    )
  })

  it.effect("stays signed out after a refresh that was under way", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      guard.expiresIn = 10
      const server = yield* Authorization.serve(guard)
      const [asked, answered] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      let isSlow = false
      const slow = HttpClient.transform(yield* HttpClient.HttpClient, (response, request) =>
        isSlow && request.url.endsWith("/token")
          ? Effect.andThen(response, (answer) =>
              Deferred.succeed(asked, undefined).pipe(Effect.andThen(Deferred.await(answered)), Effect.as(answer))
            )
          : response
      )
      const { auth } = yield* Effect.provideService(prepare(server.url()), HttpClient.HttpClient, slow)
      yield* auth.signIn(Authorization.browse)
      isSlow = true
      const renewing = yield* Effect.forkChild(auth.credentials.accessToken)
      yield* Deferred.await(asked)
      const leaving = yield* Effect.forkChild(auth.signOut, { startImmediately: true })
      yield* Deferred.succeed(answered, undefined)
      yield* Fiber.join(renewing)
      yield* Fiber.join(leaving)
      assert.strictEqual(guard.refreshed, 1)
      assert.strictEqual(yield* auth.state, "needs-sign-in")
    })
  )

  it.effect("keeps a new sign-in over a refresh that was under way", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      guard.expiresIn = 10
      const server = yield* Authorization.serve(guard)
      const [asked, answered] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const slow = HttpClient.transform(yield* HttpClient.HttpClient, (response, { body }) =>
        body._tag === "Uint8Array" && isRenewal({ body: new TextDecoder().decode(body.body) })
          ? Effect.tap(response, () => Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(answered)))
          : response
      )
      const { auth, connection } = yield* Effect.provideService(prepare(server.url()), HttpClient.HttpClient, slow)
      yield* auth.signIn(Authorization.browse)
      guard.expiresIn = 3600
      const renewing = yield* Effect.forkChild(auth.credentials.accessToken)
      yield* Deferred.await(asked)
      const signing = yield* Effect.forkChild(auth.signIn(Authorization.browse))
      yield* Support.until(() => server.seen.filter(({ path }) => path === "/token").length === 3)
      yield* Effect.sleep("10 millis")
      yield* Deferred.succeed(answered, undefined)
      yield* Fiber.join(renewing)
      yield* Fiber.join(signing)
      const store = yield* TokenStore.TokenStore
      const kept = Option.map(yield* store.load(server.url()), ({ accessToken }) => Redacted.value(accessToken))
      assert.deepStrictEqual(Option.map(yield* auth.credentials.accessToken, Redacted.value), kept)
      assert.strictEqual(yield* write(connection), "1")
      assert.strictEqual(guard.refreshed, 1)
    })
  )

  it.effect("stays signed out after a read of the store that was under way", () =>
    Effect.gen(function* () {
      const server = yield* Authorization.serve(new Authorization.Guard())
      const { auth: earlier } = yield* prepare(server.url())
      yield* earlier.signIn(Authorization.browse)
      const store = yield* TokenStore.TokenStore
      const [found, told] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      const slow = TokenStore.TokenStore.of({
        ...store,
        load: (url) =>
          Effect.tap(store.load(url), () => Effect.andThen(Deferred.succeed(found, undefined), Deferred.await(told)))
      })
      const { auth } = yield* Effect.provideService(prepare(server.url()), TokenStore.TokenStore, slow)
      const reading = yield* Effect.forkChild(auth.state)
      yield* Deferred.await(found)
      const leaving = yield* Effect.forkChild(auth.signOut, { startImmediately: true })
      yield* Deferred.succeed(told, undefined)
      assert.strictEqual(yield* Fiber.join(reading), "signed-in")
      yield* Fiber.join(leaving)
      assert.strictEqual(yield* auth.state, "needs-sign-in")
    })
  )
})
