import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option, Redacted } from "effect"
import { inspect } from "node:util"
import { TokenStore } from "kernai/mcp"
import * as Authorization from "../support/mcp/authorization.ts"
import * as Support from "../support/mcp/connect.ts"
import * as Http from "../support/mcp/httpServer.ts"
import { person, prepare, write } from "../support/mcp/signIn.ts"

layer(Layer.mergeAll(Support.platform, TokenStore.layerMemory), { excludeTestServices: true })("OAuth", (it) => {
  describe("with a call that needs more scopes", () => {
    const needing = (needs: { readonly [tool: string]: string }) => {
      const guard = new Authorization.Guard()
      for (const [tool, scopes] of Object.entries(needs)) guard.needs.set(tool, scopes)
      return guard
    }
    const calls = (server: { readonly seen: ReadonlyArray<{ readonly body: string }> }) =>
      server.seen.filter(({ body }) => body.includes("tools/call")).length

    it.effect("asks a person once for all calls, and completes them", () =>
      Effect.gen(function* () {
        const guard = needing({ write: "files:write" })
        const server = yield* Authorization.serve(guard)
        const { asked, show } = person()
        const { auth, connection } = yield* prepare(server.url(), {}, { show })
        yield* Effect.flip(connection.tools)
        yield* auth.signIn(Authorization.browse)
        const written = yield* Effect.all(
          Array.from({ length: 5 }, () => write(connection)),
          { concurrency: "unbounded" }
        )
        assert.deepStrictEqual(written.toSorted(), ["1", "2", "3", "4", "5"])
        assert.deepStrictEqual(asked, ["mcp:use files:write"])
        assert.strictEqual(guard.refreshed, 0)
      })
    )

    it.effect("asks for the configured scopes too, each once", () =>
      Effect.gen(function* () {
        const guard = needing({ write: "b  c" })
        const server = yield* Authorization.serve(guard)
        const { asked, show } = person()
        const { auth } = yield* prepare(server.url(), { scopes: ["a", "b"] })
        yield* auth.signIn(Authorization.browse)
        // A grant from before it was kept says nothing of what it is for.
        const store = yield* TokenStore.TokenStore
        const { scope: _, ...older } = Option.getOrThrow(yield* store.load(server.url()))
        for (const known of [{}, { scope: "a" }]) {
          yield* store.save(server.url(), { ...older, ...known })
          const { connection } = yield* prepare(server.url(), { scopes: ["a", "b"] }, { show })
          yield* write(connection)
          guard.tokens.add(Redacted.value(older.accessToken))
        }
        assert.deepStrictEqual(asked, ["a b c", "a b c"])
      })
    )

    it.effect("names the missing scopes without a person, and the next sign-in asks for them", () =>
      Effect.gen(function* () {
        const guard = needing({ write: "files:write" })
        const server = yield* Authorization.serve(guard)
        const { auth, connection } = yield* prepare(server.url())
        yield* Effect.flip(connection.tools)
        yield* auth.signIn(Authorization.browse)
        const error = yield* Effect.flip(connection.callTool("write", {}))
        assert.deepStrictEqual(
          [error.reason, error.message],
          ["needs_sign_in", `MCP server 'it' needs a sign-in that allows "files:write"`]
        )
        assert.deepStrictEqual([calls(server), guard.refreshed, yield* auth.state], [1, 0, "signed-in"])
        const { asked, show } = person()
        yield* auth.signIn(show)
        assert.deepStrictEqual(asked, ["mcp:use files:write"])
        assert.strictEqual(yield* write(connection), "1")
        // Who signs out begins anew.
        yield* auth.signOut
        yield* auth.signIn(show)
        assert.strictEqual(asked[1], "mcp:use")
      })
    )

    it.effect("uses what was allowed for another connection", () =>
      Effect.gen(function* () {
        const guard = needing({ write: "files:write" })
        const server = yield* Authorization.serve(guard)
        const one = yield* prepare(server.url(), {}, person())
        const { asked, show } = person()
        const other = yield* prepare(server.url(), {}, { show })
        yield* one.auth.signIn(Authorization.browse)
        assert.isAbove((yield* other.connection.tools).length, 0)
        const [before] = [...guard.tokens]
        yield* write(one.connection)
        // It is still good for what it was given for.
        guard.tokens.add(before!)
        assert.strictEqual(yield* write(other.connection), "2")
        assert.deepStrictEqual(asked, [])
      })
    )

    it.effect("asks a person once for two connections at the same time", () =>
      Effect.gen(function* () {
        const server = yield* Authorization.serve(needing({ write: "files:write" }))
        const { asked, show } = person()
        const one = yield* prepare(server.url(), {}, { show })
        const other = yield* prepare(server.url(), {}, { show })
        yield* one.auth.signIn(Authorization.browse)
        for (const { connection } of [one, other]) assert.isAbove((yield* connection.tools).length, 0)
        const both = [one, other].map(({ connection }) => write(connection))
        assert.deepStrictEqual((yield* Effect.all(both, { concurrency: "unbounded" })).toSorted(), ["1", "2"])
        assert.deepStrictEqual(asked, ["files:write"])
      })
    )

    it.effect("asks for each missing scope, also when two calls miss one at the same time", () =>
      Effect.gen(function* () {
        const guard = needing({ write: "files:write", read: "files:read" })
        const server = yield* Authorization.serve(guard)
        const { asked, show } = person()
        const { auth, connection } = yield* prepare(server.url(), {}, { show })
        yield* auth.signIn(Authorization.browse)
        yield* connection.tools
        guard.notebook.reads = 1
        yield* Effect.all([write(connection), connection.callTool("read", {})], { concurrency: "unbounded" })
        assert.lengthOf(asked, 2)
        assert.deepStrictEqual(asked[1]?.split(" ").toSorted(), ["files:read", "files:write"])
      })
    )

    it.effect("asks no person twice for scopes that are never granted, in this process or the next", () =>
      Effect.gen(function* () {
        const guard = needing({ write: "files:write" })
        guard.allow = (scopes) => scopes.filter((scope) => scope !== "files:write")
        // What an answer says it allows is less, and so is what one to a renewal says.
        guard.changes.set("/token", (body) => ({ ...body, scope: "mcp:use" }))
        const server = yield* Authorization.serve(guard)
        const { asked, show } = person()
        const { auth, connection } = yield* prepare(server.url(), {}, { show })
        yield* auth.signIn(Authorization.browse)
        for (const sent of [2, 3]) {
          const error = yield* Effect.flip(connection.callTool("write", {}))
          assert.strictEqual(error.reason, "needs_sign_in")
          assert.strictEqual(calls(server), sent)
        }
        guard.tokens.clear()
        assert.strictEqual((yield* Effect.flip(connection.callTool("write", {}))).reason, "needs_sign_in")
        assert.strictEqual(guard.refreshed, 1)
        const later = yield* prepare(server.url(), {}, { show })
        assert.strictEqual((yield* Effect.flip(later.connection.callTool("write", {}))).reason, "needs_sign_in")
        assert.deepStrictEqual(asked, ["mcp:use files:write"])
      })
    )

    it.effect("asks at most twice for one call, whatever the server requires next", () =>
      Effect.gen(function* () {
        const guard = needing({ write: "s0" })
        guard.allow = () => {
          guard.needs.set("write", `s${guard.allows.size}`)
          return []
        }
        const server = yield* Authorization.serve(guard)
        const { asked, show } = person()
        const { auth, connection } = yield* prepare(server.url(), {}, { show })
        yield* auth.signIn(Authorization.browse)
        assert.strictEqual((yield* Effect.flip(connection.callTool("write", {}))).reason, "needs_sign_in")
        assert.deepStrictEqual(asked, ["s0", "s0 s1"])
        assert.strictEqual(calls(server), 3)
      })
    )

    it.effect("does not ask again after a refusal until the next sign-in", () =>
      Effect.gen(function* () {
        const guard = needing({ write: "files:write" })
        const server = yield* Authorization.serve(guard)
        const { asked, show } = person()
        const { auth, connection } = yield* prepare(server.url(), {}, { show })
        yield* auth.signIn(Authorization.browse)
        guard.back = (parameters) => {
          parameters.delete("code")
          parameters.set("error", "access_denied")
        }
        const declined = yield* Effect.flip(connection.callTool("write", {}))
        assert.deepStrictEqual(
          [declined.reason, declined.message],
          ["needs_sign_in", `the sign-in to MCP server 'it' was refused ("access_denied")`]
        )
        for (const needed of ["files:write", "files:more"]) {
          guard.needs.set("write", needed)
          const { message } = yield* Effect.flip(connection.callTool("write", {}))
          assert.strictEqual(message, `MCP server 'it' needs a sign-in that allows "${needed}"`)
        }
        assert.lengthOf(asked, 1)
        guard.back = () => {}
        guard.needs.set("write", "files:last")
        yield* auth.signIn(Authorization.browse)
        assert.strictEqual(yield* write(connection), "1")
        assert.deepStrictEqual(asked, ["files:write", "files:more files:last"])
      })
    )

    it.effect("remembers where to sign in when a later challenge does not say", () =>
      Effect.gen(function* () {
        const guard = needing({ write: "files:write" })
        guard.describedAt = "/described"
        const server = yield* Authorization.serve(guard)
        const { asked, show } = person()
        const { auth, connection } = yield* prepare(server.url(), {}, { show })
        yield* Effect.flip(connection.tools)
        yield* auth.signIn(Authorization.browse)
        assert.strictEqual(yield* write(connection), "1")
        yield* auth.signOut
        const alone = yield* prepare(server.url())
        yield* Effect.flip(alone.connection.tools)
        yield* alone.auth.signIn(Authorization.browse)
        yield* Effect.flip(alone.connection.callTool("write", {}))
        yield* alone.auth.signIn(show)
        assert.strictEqual(yield* write(alone.connection), "2")
        assert.deepStrictEqual(asked, ["mcp:use files:write", "mcp:use files:write"])
      })
    )

    it.effect("does not count a failure before the address was shown as a refusal", () =>
      Effect.gen(function* () {
        const guard = needing({ write: "files:write" })
        const server = yield* Authorization.serve(guard)
        const { asked, show } = person()
        const { auth, connection } = yield* prepare(server.url(), {}, { show })
        yield* auth.signIn(Authorization.browse)
        guard.registration = 503
        assert.include((yield* Effect.flip(connection.callTool("write", {}))).message, "did not register kernai")
        assert.deepStrictEqual(asked, [])
        guard.registration = 201
        assert.strictEqual(yield* write(connection), "1")
        assert.lengthOf(asked, 1)
      })
    )

    it.effect("asks again after an interrupted call, and leaves no page open", () =>
      Effect.gen(function* () {
        const guard = needing({ write: "files:write" })
        const server = yield* Authorization.serve(guard)
        const shown = yield* Deferred.make<string>()
        let isThere = false
        const { asked, show } = person((url) => (isThere ? Authorization.browse(url) : Deferred.succeed(shown, url)))
        const { auth, connection } = yield* prepare(server.url(), {}, { show })
        yield* auth.signIn(Authorization.browse)
        const writing = yield* Effect.forkChild(write(connection))
        const page = new URL(yield* Deferred.await(shown)).searchParams.get("redirect_uri")!
        yield* Fiber.interrupt(writing)
        assert.include(inspect(yield* Effect.flip(Effect.tryPromise(() => fetch(page)))), "ECONNREFUSED")
        isThere = true
        assert.strictEqual(yield* write(connection), "1")
        assert.lengthOf(asked, 2)
      })
    )

    it.effect("asks no person when no scope is named, or when a configured key is used", () =>
      Effect.gen(function* () {
        for (const [challenge, reason, told] of [
          [`Bearer error="insufficient_scope"`, "needs_sign_in", "needs a sign-in that allows more"],
          [`Bearer error="insufficient_scope", scope="${"x".repeat(9000)}"`, "needs_sign_in", `allows more`],
          [`Bearer error="invalid_token", scope="a"`, "remote", "HTTP status 403"],
          [undefined, "remote", "HTTP status 403"]
        ] as const) {
          const server = yield* Http.serve((_, response) =>
            Http.json(response, 403, {}, challenge === undefined ? {} : { "www-authenticate": challenge })
          )
          const { asked, show } = person()
          const { connection } = yield* prepare(server.url(), {}, { show })
          const error = yield* Effect.flip(connection.tools)
          assert.strictEqual(error.reason, reason)
          assert.include(error.message, told)
          assert.deepStrictEqual(asked, [])
        }
      })
    )
  })
})
