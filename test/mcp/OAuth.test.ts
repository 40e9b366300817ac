import { assert, describe, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { HttpClient, HttpClientError, HttpClientResponse } from "effect/http"
import type { ServerResponse } from "node:http"
import { connect } from "node:net"
import { inspect } from "node:util"
import { Limits } from "kernai"
import { TokenStore } from "kernai/mcp"
import { Lookup } from "../../src/mcp/internal/dialedHost.ts"
import * as Authorization from "../support/mcp/authorization.ts"
import * as Support from "../support/mcp/connect.ts"
import * as Http from "../support/mcp/httpServer.ts"
import { isRenewal, prepare, write } from "../support/mcp/signIn.ts"

layer(Layer.mergeAll(Support.platform, TokenStore.layerMemory), { excludeTestServices: true })("OAuth", (it) => {
  it.effect("signs in with a person, and renews without one", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      const server = yield* Authorization.serve(guard)
      const { auth, connection } = yield* prepare(server.url())
      const error = yield* Effect.flip(connection.tools)
      assert.strictEqual(error.reason, "needs_sign_in")
      assert.strictEqual(yield* auth.state, "needs-sign-in")

      let shown = ""
      yield* auth.signIn((url) => {
        shown = url
        return Authorization.browse(url)
      })
      assert.strictEqual(yield* auth.state, "signed-in")
      const asked = new URL(shown)
      assert.deepStrictEqual(
        ["tenant", "response_type", "code_challenge_method", "scope", "resource"].map((name) =>
          asked.searchParams.get(name)
        ),
        ["1", "code", "S256", "mcp:use", server.url()]
      )
      assert.deepStrictEqual(
        [...guard.clients],
        [
          [
            asked.searchParams.get("client_id"),
            {
              client_name: "kernai",
              application_type: "native",
              redirect_uris: [asked.searchParams.get("redirect_uri")],
              grant_types: ["authorization_code", "refresh_token"],
              response_types: ["code"],
              token_endpoint_auth_method: "none"
            }
          ]
        ]
      )
      assert.match(asked.searchParams.get("redirect_uri")!, /^http:\/\/127\.0\.0\.1:\d+\/callback$/)
      assert.strictEqual(yield* write(connection), "1")

      guard.tokens.clear()
      assert.strictEqual(yield* write(connection), "2")
      assert.strictEqual(guard.refreshed, 1)
      assert.strictEqual(guard.notebook.written, 2)
    })
  )

  it.effect.each([
    [25, 1],
    [40, 0]
  ])("renews a token before it expires (in %s seconds), once for all calls", ([expiresIn, refreshed]) =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      guard.expiresIn = expiresIn
      const server = yield* Authorization.serve(guard)
      const { auth, connection } = yield* prepare(server.url())
      yield* auth.signIn(Authorization.browse)
      guard.expiresIn = 3600
      yield* Effect.all(
        Array.from({ length: 5 }, () => connection.tools),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(guard.refreshed, refreshed)
    })
  )

  it.effect.each([400, 401])(
    "needs a sign-in again when the refresh token is refused (%s), and does not reveal it",
    (refusal) =>
      Effect.gen(function* () {
        const guard = new Authorization.Guard()
        guard.refusal = refusal
        const server = yield* Authorization.serve(guard)
        const { auth, connection } = yield* prepare(server.url())
        yield* auth.signIn(Authorization.browse)
        const [token] = [...guard.tokens]
        const [refresh] = [...guard.refreshTokens]
        guard.tokens.clear()
        guard.refreshTokens.clear()
        const error = yield* Effect.flip(connection.callTool("write", {}))
        assert.strictEqual(error.reason, "needs_sign_in")
        assert.strictEqual(yield* auth.state, "needs-sign-in")
        for (const secret of [token!, refresh!]) assert.notInclude(inspect(error, { depth: 20 }), secret)
      })
  )

  it.effect("renews a refused token once for all calls", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      const server = yield* Authorization.serve(guard)
      const { auth, connection } = yield* prepare(server.url())
      yield* auth.signIn(Authorization.browse)
      yield* connection.tools
      guard.tokens.clear()
      yield* Effect.all(
        Array.from({ length: 5 }, () => write(connection)),
        { concurrency: "unbounded" }
      )
      assert.strictEqual(guard.refreshed, 1)
      assert.lengthOf(server.seen.filter(isRenewal), 1)
    })
  )

  it.effect("keeps a token that was renewed for an interrupted call", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      guard.expiresIn = 10
      const server = yield* Authorization.serve(guard)
      const [asked, answered] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
      let isSlow = false
      const slow = HttpClient.transform(yield* HttpClient.HttpClient, (response, request) =>
        isSlow && request.url.endsWith("/token")
          ? Effect.tap(response, () => Effect.andThen(Deferred.succeed(asked, undefined), Deferred.await(answered)))
          : response
      )
      const { auth, connection } = yield* Effect.provideService(prepare(server.url()), HttpClient.HttpClient, slow)
      yield* auth.signIn(Authorization.browse)
      isSlow = true
      guard.expiresIn = 3600
      const writing = yield* Effect.forkChild(write(connection))
      yield* Deferred.await(asked)
      const leaving = yield* Effect.forkChild(Fiber.interrupt(writing), { startImmediately: true })
      yield* Deferred.succeed(answered, undefined)
      yield* Fiber.join(leaving)
      assert.strictEqual(yield* write(connection), "1")
      assert.lengthOf(server.seen.filter(isRenewal), 1)
    })
  )

  it.effect("needs a sign-in again when a token without refresh token is refused", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      guard.changes.set("/token", (body) => ({ ...body, refresh_token: undefined }))
      const server = yield* Authorization.serve(guard)
      const { auth, connection } = yield* prepare(server.url())
      yield* auth.signIn(Authorization.browse)
      guard.tokens.clear()
      const before = server.seen.length
      assert.strictEqual((yield* Effect.flip(connection.tools)).reason, "needs_sign_in")
      assert.lengthOf(server.seen, before + 1)
      assert.strictEqual(yield* auth.state, "needs-sign-in")
    })
  )

  it.effect("keeps the sign-in while the authorization server is away", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      const server = yield* Authorization.serve(guard)
      let isCut = false
      const cut = HttpClient.transform(yield* HttpClient.HttpClient, (response, request) =>
        isCut && request.url.endsWith("/token")
          ? Effect.fail(
              new HttpClientError.HttpClientError({ reason: new HttpClientError.TransportError({ request }) })
            )
          : response
      )
      const { auth, connection } = yield* Effect.provideService(prepare(server.url()), HttpClient.HttpClient, cut)
      yield* auth.signIn(Authorization.browse)
      guard.tokens.clear()
      const isKept = Effect.gen(function* () {
        const before = server.seen.filter(({ path }) => path === "/mcp").length
        assert.strictEqual((yield* Effect.flip(connection.tools)).reason, "needs_sign_in")
        assert.lengthOf(
          server.seen.filter(({ path }) => path === "/mcp"),
          before + 1
        )
        assert.strictEqual(yield* auth.state, "signed-in")
      })
      isCut = true
      yield* isKept
      isCut = false
      guard.changes.set("/token", () => "<html>")
      const refreshTokens = [...guard.refreshTokens]
      yield* isKept
      for (const token of refreshTokens) guard.refreshTokens.add(token)
      guard.changes.clear()
      assert.isAbove((yield* connection.tools).length, 0)
    })
  )

  it.effect("renews no token early that has no expiry", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      guard.expiresIn = 10
      const server = yield* Authorization.serve(guard)
      const { auth, connection } = yield* prepare(server.url())
      yield* auth.signIn(Authorization.browse)
      guard.expiresIn = undefined
      yield* write(connection)
      yield* write(connection)
      assert.strictEqual(guard.refreshed, 1)
    })
  )

  it.effect("renews a token once, also when a call learns late that the old one was refused", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      const server = yield* Authorization.serve(guard)
      const late = yield* Deferred.make<void>()
      let calls = 0
      const slow = HttpClient.transform(yield* HttpClient.HttpClient, (response, { body }) =>
        body._tag === "Uint8Array" && new TextDecoder().decode(body.body).includes("tools/call") && ++calls === 2
          ? Effect.tap(response, () => Deferred.await(late))
          : response
      )
      const { auth, connection } = yield* Effect.provideService(prepare(server.url()), HttpClient.HttpClient, slow)
      yield* auth.signIn(Authorization.browse)
      yield* connection.tools
      guard.tokens.clear()
      const [first, second] = [yield* Effect.forkChild(write(connection)), yield* Effect.forkChild(write(connection))]
      yield* Fiber.join(first)
      yield* Deferred.succeed(late, undefined)
      yield* Fiber.join(second)
      assert.deepStrictEqual([guard.refreshed, guard.notebook.written], [1, 2])
    })
  )

  it.effect("uses the configured client, and sends its secret only to the token endpoint", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      guard.changes.set("/.well-known/oauth-authorization-server/as", (body) => ({
        ...body,
        registration_endpoint: undefined
      }))
      const server = yield* Authorization.serve(guard)
      const { auth } = yield* prepare(server.url(), {
        clientId: "me",
        clientSecret: "hush hush hush",
        scopes: ["a", "b"]
      })
      yield* auth.signIn((url) => {
        assert.strictEqual(new URL(url).searchParams.get("scope"), "a b")
        return Authorization.browse(url)
      })
      const holds = (text: string) => text.includes("hush") || text.includes(btoa("me:hush%20hush%20hush"))
      assert.deepStrictEqual(
        server.seen.filter((request) => holds(JSON.stringify(request))).map((request) => request.path),
        ["/token"]
      )
      const unknown = yield* prepare(server.url())
      assert.include((yield* Effect.flip(unknown.auth.signIn(Authorization.browse))).message, "set oauth.clientId")
    })
  )

  it.effect("authenticates as registered, and without a secret when it has none", () =>
    Effect.gen(function* () {
      const sent = Effect.fnUntraced(function* (registered: Record<string, unknown>) {
        const guard = new Authorization.Guard()
        guard.registration = 200
        let id = ""
        guard.changes.set("/register", (body) => {
          id = String(body["client_id"])
          return { ...body, ...registered }
        })
        const server = yield* Authorization.serve(guard)
        const { auth } = yield* prepare(server.url())
        yield* auth.signIn(Authorization.browse)
        const asked = server.seen.find((request) => request.path === "/token")
        const form = new URLSearchParams(asked?.body)
        const pair = Buffer.from(asked?.headers.authorization?.slice("Basic ".length) ?? "", "base64").toString()
        // Some answer with a form to those who do not ask for JSON.
        assert.strictEqual(asked?.headers.accept, "application/json")
        return [form.get("client_id") === id, form.get("client_secret"), pair.replace(id, "id")]
      })
      assert.deepStrictEqual(yield* sent({}), [true, null, ""])
      assert.deepStrictEqual(yield* sent({ client_secret: "s:s" }), [false, null, "id:s%3As"])
      assert.deepStrictEqual(yield* sent({ client_secret: "s:s", token_endpoint_auth_method: "none" }), [
        true,
        null,
        ""
      ])
      assert.deepStrictEqual(yield* sent({ client_secret: "s:s", token_endpoint_auth_method: "client_secret_post" }), [
        true,
        "s:s",
        ""
      ])
    })
  )

  it.effect("accepts any client id", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      guard.changes.set("/register", () => ({ client_id: "half\ud800", client_secret: "\udfffof" }))
      const server = yield* Authorization.serve(guard)
      const { auth } = yield* prepare(server.url())
      yield* auth.signIn(Authorization.browse)
      assert.strictEqual(yield* auth.state, "signed-in")
    })
  )

  it.effect("looks for metadata at all well-known places, the most specific first", () =>
    Effect.gen(function* () {
      const server = yield* Http.serve(({ headers, path }, response) => {
        const origin = `http://${headers.host}`
        if (path === "/.well-known/oauth-protected-resource") {
          return Http.json(response, 200, { resource: origin, authorization_servers: [`${origin}/as`] })
        }
        if (path !== "/as/.well-known/openid-configuration") return Http.json(response, 404, {})
        Http.json(response, 200, {
          issuer: `${origin}/as`,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          code_challenge_methods_supported: ["S256"]
        })
      })
      const { auth } = yield* prepare(server.url())
      const error = yield* Effect.flip(auth.signIn(Authorization.browse))
      assert.include(error.message, "registers no clients")
      assert.deepStrictEqual(
        server.seen.map(({ headers, path }) => [path, headers.accept]),
        [
          "/.well-known/oauth-protected-resource/mcp",
          "/.well-known/oauth-protected-resource",
          "/.well-known/oauth-authorization-server/as",
          "/.well-known/openid-configuration/as",
          "/as/.well-known/openid-configuration"
        ].map((path) => [path, "application/json"])
      )
    })
  )

  it.effect.each([
    ["did not answer in time", () => {}, { connectTimeout: 60 }],
    [
      "cannot be reached",
      (response: ServerResponse) => {
        response.writeHead(200, { "content-length": 9 }).write("{")
        setImmediate(() => response.destroy())
      },
      {}
    ]
  ] as const)("times out without metadata, and rejects metadata that is cut off: %s", ([told, answer, limits]) =>
    Effect.gen(function* () {
      const server = yield* Http.serve((_, response) => answer(response))
      const { auth } = yield* prepare(server.url())
      const error = yield* Effect.flip(auth.signIn(Authorization.browse))
      assert.deepStrictEqual(
        [error._tag, error.message],
        ["McpError", `the authorization server of MCP server 'it' ${told}`]
      )
      yield* Support.until(() => server.openSockets() === 0)
    }).pipe(Effect.provideService(Limits.Limits, Limits.make(limits)))
  )

  it.effect("reveals no free text of an authorization server's error (S-7)", () =>
    Effect.gen(function* () {
      for (const error of ["no such client: hush", "h".repeat(65), 7]) {
        const guard = new Authorization.Guard()
        guard.changes.set("/token", () => ({ error }))
        const server = yield* Authorization.serve(guard)
        const { auth } = yield* prepare(server.url(), { clientId: "me", clientSecret: "hush" })
        const { message } = yield* Effect.flip(auth.signIn(Authorization.browse))
        assert.strictEqual(message, "the authorization server of MCP server 'it' gave no token")
      }
    })
  )

  it.effect("sends no trace headers", () =>
    Effect.gen(function* () {
      const server = yield* Authorization.serve(new Authorization.Guard())
      const { auth, connection } = yield* prepare(server.url())
      yield* auth.signIn(Authorization.browse)
      yield* write(connection)
      for (const { headers } of server.seen) assert.doesNotHaveAnyKeys(headers, ["traceparent", "b3"])
    }).pipe(Effect.withSpan("a run"))
  )

  it.effect("rejects metadata that is too large (S-11)", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      const pad = "x".repeat(1024 * 1024)
      guard.changes.set("/.well-known/oauth-authorization-server/as", (body) => ({ ...body, pad }))
      const server = yield* Authorization.serve(guard)
      const { auth } = yield* prepare(server.url())
      const error = yield* Effect.flip(auth.signIn(Authorization.browse))
      assert.include(error.message, "gave an answer that is too large")
    })
  )

  describe("rejects (S-18)", () => {
    const resource = "/.well-known/oauth-protected-resource/mcp"
    const metadata = "/.well-known/oauth-authorization-server/as"
    const cases: ReadonlyArray<readonly [string, string, Record<string, unknown>, string]> = [
      [
        "a script as the authorization endpoint",
        metadata,
        { authorization_endpoint: "javascript:alert(1)" },
        "not https"
      ],
      ["a file as the token endpoint", metadata, { token_endpoint: "file:///etc/passwd" }, "not https"],
      ["plain http elsewhere", metadata, { token_endpoint: "http://evil.example/token" }, "not https"],
      ["a user name in an address", metadata, { authorization_endpoint: "https://u:p@evil.example/" }, "not https"],
      ["no PKCE", metadata, { code_challenge_methods_supported: ["plain"] }, "does not offer PKCE"],
      ["another issuer", metadata, { issuer: "https://evil.example" }, "publishes metadata of another issuer"],
      ["another resource", resource, { resource: "https://evil.example/mcp" }, "about another resource"],
      ["a neighbour's resource", resource, { resource: "/mc" }, "about another resource"],
      ["an authorization server over http", resource, { authorization_servers: ["http://10.0.0.1/"] }, "by https"],
      ["an authorization server of another kind", resource, { authorization_servers: ["data:,x"] }, "by https"],
      ["no description of the authorization server", metadata, { token_endpoint: 1 }, "publishes no metadata"],
      ["no client", "/register", { client_id: 1 }, "did not register kernai"],
      ["no client, and why", "/register", { client_id: 1, error: "bad_name" }, "did not register kernai (bad_name)"],
      ["no token", "/token", { access_token: "" }, "gave no token"],
      ["a token of another type", "/token", { token_type: "mac" }, "gave no token"],
      ["a token with a line break", "/token", { access_token: "a\r\nx: y" }, "gave no token"]
    ]
    it.effect.each(cases)("%s", ([, where, change, message]) =>
      Effect.gen(function* () {
        const guard = new Authorization.Guard()
        guard.changes.set(where, (body) => ({ ...body, ...change }))
        const server = yield* Authorization.serve(guard)
        const { auth, connection } = yield* prepare(server.url())
        yield* Effect.flip(connection.tools)
        const error = yield* Effect.flip(auth.signIn(Authorization.browse))
        assert.strictEqual(error.reason, "needs_sign_in")
        assert.include(error.message, message)
        assert.strictEqual(yield* auth.state, "needs-sign-in")
      })
    )

    it.effect("a description on another origin", () =>
      Effect.gen(function* () {
        const other = yield* Http.serve((_, response) => Http.json(response, 200, {}))
        const server = yield* Http.serve((_, response) =>
          Http.json(response, 401, {}, { "www-authenticate": `Bearer resource_metadata="${other.url("/x")}"` })
        )
        const { auth, connection } = yield* prepare(server.url())
        yield* Effect.flip(connection.tools)
        const error = yield* Effect.flip(auth.signIn(Authorization.browse))
        assert.include(error.message, "another origin")
        assert.lengthOf(other.seen, 0)
      })
    )

    it.effect("a server without TLS", () =>
      Effect.gen(function* () {
        const asked: Array<string> = []
        const client = HttpClient.make((request) => {
          asked.push(request.url)
          return Effect.never
        })
        const prepared = prepare("http://mcp.example/mcp")
        const { auth } = yield* Effect.provideService(prepared, HttpClient.HttpClient, client)
        const error = yield* Effect.flip(auth.signIn(Authorization.browse))
        assert.strictEqual(error.message, "MCP server 'it' must be reached by https: a token would be sent to it")
        assert.deepStrictEqual(asked, [])
      })
    )

    it.effect("a private address of a server that is not there itself", () =>
      Effect.gen(function* () {
        const asked: Array<string> = []
        let issuer = ""
        let endpoint = ""
        const client = HttpClient.make((request, url) => {
          asked.push(url.hostname)
          const resource = url.pathname.includes("oauth-protected-resource")
          const body = resource
            ? { resource: "https://mcp.example.com/mcp", authorization_servers: [issuer] }
            : {
                issuer,
                authorization_endpoint: "https://auth.example.com/authorize",
                token_endpoint: endpoint,
                code_challenge_methods_supported: ["S256"]
              }
          return Effect.succeed(HttpClientResponse.fromWeb(request, Response.json(body)))
        })
        const attempt = Effect.gen(function* () {
          const prepared = prepare("https://mcp.example.com/mcp")
          const { auth } = yield* Effect.provideService(prepared, HttpClient.HttpClient, client)
          return yield* Effect.flip(auth.signIn(Authorization.browse))
        })
        const addresses = ["10.0.0.1", "169.254.169.254", "192.168.1.1", "172.31.0.9", "100.64.0.1", "127.0.0.1"]
        const written = ["0x7f.1", "2852039166", "[::1]", "[fe80::1]", "[fd00::1]", "[::ffff:169.254.169.254]"]
        const names = ["localhost", "metadata.google.internal", "printer.local", "router", "a.localhost."]
        names.push("127.0.0.1.nip.io", "app.10-0-0-1.sslip.io", "7f000001.nip.io", "localtest.me", "a.lvh.me")
        for (const host of [...addresses, ...written, ...names]) {
          issuer = `https://${host}`
          const error = yield* attempt
          assert.include(error.message, "private address", host)
          endpoint = `https://${host}/token`
          issuer = "https://auth.example.com"
          assert.include((yield* attempt).message, "private address", host)
        }
        assert.deepStrictEqual(new Set(asked), new Set(["mcp.example.com", "auth.example.com"]))
      })
    )

    it.effect("a name that resolves to a private address, whenever it is dialed", () =>
      Effect.gen(function* () {
        const asked: Array<string> = []
        const addresses = new Map([
          ["mcp.example.com", ["203.0.113.7"]],
          ["auth.example.com", ["203.0.113.8", "2001:db8::8"]],
          ["both.example.com", ["203.0.113.9", "127.0.0.1"]],
          ["six.example.com", ["::ffff:10.0.0.1"]],
          ["link.example.com", ["fe80::1%eth0"]],
          ["inside.example.com", ["10.0.0.5"]],
          ["sso.example.com", ["10.0.0.6"]]
        ])
        const lookup = (name: string) => Effect.sync(() => addresses.get(name) ?? [])
        const attempt = (server: string, issuer: string, endpoint: string) => {
          const client = HttpClient.make((request, url) => {
            asked.push(url.hostname)
            if (url.pathname === "/token") {
              const token = { access_token: "t", token_type: "bearer" }
              return Effect.succeed(HttpClientResponse.fromWeb(request, Response.json(token)))
            }
            const body = url.pathname.includes("oauth-protected-resource")
              ? { resource: `https://${server}/mcp`, authorization_servers: [`https://${issuer}`] }
              : {
                  issuer: `https://${issuer}`,
                  authorization_endpoint: "https://auth.example.com/authorize",
                  token_endpoint: `https://${endpoint}/token`,
                  code_challenge_methods_supported: ["S256"]
                }
            return Effect.succeed(HttpClientResponse.fromWeb(request, Response.json(body)))
          })
          const oauth = { clientId: "me", clientSecret: "mine", grant: "client_credentials" }
          return prepare(`https://${server}/mcp`, oauth).pipe(
            Effect.flatMap(({ auth }) => auth.credentials.renew("Bearer")),
            Effect.provideService(HttpClient.HttpClient, client),
            Effect.provideService(Lookup, lookup)
          )
        }
        for (const host of ["both.example.com", "six.example.com", "link.example.com", "inside.example.com"]) {
          for (const [issuer, endpoint] of [
            [host, "auth.example.com"],
            ["auth.example.com", host]
          ] as const) {
            const error = yield* Effect.flip(attempt("mcp.example.com", issuer, endpoint))
            assert.include(error.message, "private address", host)
          }
        }
        assert.deepStrictEqual(new Set(asked), new Set(["mcp.example.com", "auth.example.com"]))
        // A server inside of a network may have its authorization server there, too.
        assert.isTrue(yield* attempt("inside.example.com", "sso.example.com", "sso.example.com"))
        assert.isTrue(yield* attempt("mcp.example.com", "auth.example.com", "auth.example.com"))
      })
    )

    it.effect("an answer of another authorization server, and a refusal", () =>
      Effect.gen(function* () {
        const guard = new Authorization.Guard()
        const server = yield* Authorization.serve(guard)
        const { auth } = yield* prepare(server.url())
        guard.back = (parameters) => parameters.set("iss", "https://evil.example")
        assert.include((yield* Effect.flip(auth.signIn(Authorization.browse))).message, "another authorization server")
        guard.back = (parameters) => parameters.delete("iss")
        assert.include((yield* Effect.flip(auth.signIn(Authorization.browse))).message, "another authorization server")
        guard.back = (parameters) => {
          parameters.delete("code")
          parameters.set("error", "access_denied")
        }
        assert.include((yield* Effect.flip(auth.signIn(Authorization.browse))).message, '"access_denied"')
      })
    )
  })

  it.effect("listens on loopback for one answer, only during the sign-in (S-13)", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      const server = yield* Authorization.serve(guard)
      const { auth } = yield* prepare(server.url())
      const shown = yield* Deferred.make<string>()
      const signing = yield* Effect.forkChild(auth.signIn((url) => Deferred.succeed(shown, url)))
      const asked = new URL(yield* Deferred.await(shown))
      const back = asked.searchParams.get("redirect_uri")!
      const state = asked.searchParams.get("state")!
      const visit = (url: string, init?: RequestInit) =>
        Effect.promise(async () => {
          const response = await fetch(url, init)
          assert.deepStrictEqual(
            ["cache-control", "content-security-policy", "connection"].map((name) => response.headers.get(name)),
            ["no-store", "default-src 'none'", "close"]
          )
          assert.notInclude(await response.text(), state)
          return response.status
        })
      // No other address of this computer leads there.
      assert.include(
        inspect(yield* Effect.flip(Effect.tryPromise(() => fetch(back.replace("127.0.0.1", "127.0.0.2"))))),
        "ECONNREFUSED"
      )
      assert.strictEqual(yield* visit(`${back}?code=x&state=forged`), 400)
      for (const part of [state.slice(0, -1), `${state}x`, ""]) {
        assert.strictEqual(yield* visit(`${back}?code=x&state=${part}`), 400)
      }
      assert.strictEqual(yield* visit(`${back}?code=x`), 400)
      assert.strictEqual(yield* visit(`${back}/x?code=x&state=${state}`), 404)
      assert.strictEqual(yield* visit(`${back}?code=x&state=${state}`, { method: "POST" }), 404)
      assert.strictEqual(yield* visit(back.replace("127.0.0.1", "localhost") + `?code=x&state=${state}`), 403)
      // Who began to ask and does not go on keeps nobody waiting.
      const slow = connect(Number(new URL(back).port), "127.0.0.1", () => slow.write("GET /callback HTTP/1.1\r\n"))
      yield* Support.until(() => slow.bytesWritten > 0)
      yield* Authorization.browse(asked.href)
      yield* Fiber.join(signing)
      slow.destroy()
      assert.strictEqual(yield* auth.state, "signed-in")
      const closed = yield* Effect.flip(Effect.tryPromise(() => fetch(back)))
      assert.include(inspect(closed), "ECONNREFUSED")
    })
  )

  it.effect("times out when no person signs in", () =>
    Effect.gen(function* () {
      const server = yield* Authorization.serve(new Authorization.Guard())
      const { auth } = yield* prepare(server.url())
      for (const shown of [Effect.void, Effect.never]) {
        const error = yield* Effect.flip(auth.signIn(() => shown, { timeout: "20 millis" }))
        assert.include(error.message, "timed out")
      }
    })
  )

  it.effect("finds a server without metadata at its default endpoints", () =>
    Effect.gen(function* () {
      const guard = new Authorization.Guard()
      guard.changes.set("/.well-known/oauth-protected-resource/mcp", () => "")
      guard.back = (parameters) => parameters.delete("iss")
      const server = yield* Authorization.serve(guard)
      const { auth } = yield* prepare(server.url())
      let shown = ""
      yield* auth.signIn((url) => {
        shown = url
        return Authorization.browse(url)
      })
      assert.isFalse(new URL(shown).searchParams.has("scope"))
      assert.strictEqual(yield* auth.state, "signed-in")
      yield* auth.signOut
      assert.strictEqual(yield* auth.state, "needs-sign-in")
    })
  )
})
