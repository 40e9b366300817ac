import { assert, describe, layer } from "@effect/vitest"
import { Cause, Clock, Deferred, Duration, Effect, Exit, Fiber, Redacted, Result } from "effect"
import { inspect } from "node:util"
import * as Support from "../support/mcp/connect.ts"
import * as Http from "../support/mcp/httpServer.ts"
import { times } from "../support/longRun.ts"

layer(Support.platform, { excludeTestServices: true, timeout: "30 seconds" })("McpConnection", (it) => {
  describe("over Streamable HTTP", () => {
    for (const unknownSession of [404, 400] as const) {
      it.effect(`connects again when the server was restarted and answers ${unknownSession}, writing once`, () =>
        Effect.gen(function* () {
          const notebook = new Http.Notebook()
          notebook.unknownSession = unknownSession
          const first = yield* Http.serve(Http.mcp(notebook))
          const connection = yield* Support.connect({ url: first.url() })
          assert.strictEqual(Support.textOf(yield* connection.callTool("write", {})), "1")
          yield* connection.awaitChanges
          yield* first.stop
          notebook.sessions.clear()
          notebook.tools.push("new")
          yield* Http.serve(Http.mcp(notebook), first.port)
          assert.strictEqual(Support.textOf(yield* connection.callTool("write", {})), "2")
          assert.strictEqual(notebook.written, 2)
          assert.include([...(yield* connection.awaitChanges)], "tools")
          assert.include(
            (yield* connection.tools).map((tool) => tool.name),
            "new"
          )
        })
      )
    }

    it.effect("does not repeat a write that was cut off, but repeats a repeatable call (S-18, R-2)", () =>
      Effect.gen(function* () {
        const notebook = new Http.Notebook()
        const server = yield* Http.serve(Http.mcp(notebook))
        const connection = yield* Support.connect({ url: server.url() })
        const error = yield* Effect.flip(connection.callTool("cut", {}))
        assert.strictEqual(error.reason, "outcome_unknown")
        assert.strictEqual(notebook.written, 1)
        yield* connection.callTool("read", {}, { repeatable: true })
        assert.strictEqual(notebook.reads, 2)
      })
    )

    it.effect("repeats calls by a server's annotations only when the server is trusted (AC-15)", () =>
      Effect.gen(function* () {
        for (const [trustAnnotations, reads] of [
          [false, 1],
          [true, 2]
        ] as const) {
          const notebook = new Http.Notebook()
          const server = yield* Http.serve(Http.mcp(notebook))
          const connection = yield* Support.connect({ url: server.url(), trustAnnotations })
          const ended = yield* Effect.exit(connection.callTool("read", {}))
          assert.deepStrictEqual([ended._tag, notebook.reads], [trustAnnotations ? "Success" : "Failure", reads])
        }
      })
    )

    it.effect("rejects an answer to another request, and one that is too large", () =>
      Effect.gen(function* () {
        const server = yield* Http.serve(Http.mcp(new Http.Notebook()))
        const connection = yield* Support.connect({ url: server.url() })
        assert.strictEqual((yield* Effect.flip(connection.callTool("wrong", {}))).reason, "protocol")
        assert.strictEqual((yield* Effect.flip(connection.callTool("bomb", {}))).reason, "limit_exceeded")
      })
    )

    it.effect("refuses an event without an end, and reads no further (S-11)", () =>
      Effect.gen(function* () {
        let sent = 0
        const server = yield* Http.serve(({ body, method: verb }, response) => {
          if (verb !== "POST") return void response.writeHead(405).end()
          const { id, method } = JSON.parse(body)
          if (id === undefined) return void response.writeHead(202).end()
          if (method !== "tools/call") {
            const result =
              method === "initialize"
                ? {
                    protocolVersion: "2025-06-18",
                    capabilities: { tools: {} },
                    serverInfo: { name: "e", version: "1" }
                  }
                : { tools: [{ name: "endless", inputSchema: { type: "object" } }] }
            response.writeHead(200, { "content-type": "application/json" })
            return void response.end(JSON.stringify({ jsonrpc: "2.0", id, result }))
          }
          response.writeHead(200, { "content-type": "text/event-stream" }).write("data: ")
          const piece = "x".repeat(1024 * 1024)
          const more = () => {
            while (!response.destroyed && sent < 200) {
              sent++
              if (!response.write(piece)) return void response.once("drain", more)
            }
          }
          more()
        })
        const connection = yield* Support.connect({ url: server.url() })
        assert.strictEqual((yield* Effect.flip(connection.callTool("endless", {}))).reason, "limit_exceeded")
        assert.isBelow(sent, 100)
      })
    )

    it.effect("rejects an answer that nests too deeply (S-11)", () =>
      Effect.gen(function* () {
        const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`
        const answers: Record<string, string> = {
          initialize: `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"d","version":"1"}}`
        }
        const server = yield* Http.serve(({ body, method: verb }, response) => {
          if (verb !== "POST") return void response.writeHead(405).end()
          const { id, method } = JSON.parse(body)
          if (id === undefined) return void response.writeHead(202).end()
          response.writeHead(200, { "content-type": "application/json" })
          response.end(`{"jsonrpc":"2.0","id":${id},"result":${answers[method]}}`)
        })
        const call = Effect.gen(function* () {
          const connection = yield* Support.connect({ url: server.url() })
          return yield* connection.callTool("deep", {})
        })
        // Around it stand five levels in a list of tools, and three in the result of a call.
        for (const [depth, isTaken] of [
          [94, true],
          [98, false],
          [times(1_000_000, 100_000), false]
        ] as const) {
          answers["tools/list"] = `{"tools":[{"name":"deep","inputSchema":{"type":"object","x":${nested(depth)}}}]}`
          answers["tools/call"] = `{"content":[]}`
          const listed = yield* Effect.result(call)
          assert.strictEqual(Result.isSuccess(listed), isTaken)
          answers["tools/list"] = `{"tools":[{"name":"deep","inputSchema":{"type":"object"}}]}`
          answers["tools/call"] = `{"content":[],"structuredContent":{"x":${nested(depth)}}}`
          const called = yield* Effect.result(call)
          assert.strictEqual(Result.isSuccess(called), isTaken)
          for (const result of [listed, called]) {
            if (Result.isFailure(result)) {
              assert.strictEqual(result.failure.reason, "protocol")
              assert.include(result.failure.message, "nests deeper than 100 levels")
            }
          }
        }
      })
    )

    it.effect("receives a change of a list, and leaves no stream, session or socket behind (R-15)", () =>
      Effect.gen(function* () {
        const notebook = new Http.Notebook()
        const server = yield* Http.serve(Http.mcp(notebook))
        yield* Effect.scoped(
          Effect.gen(function* () {
            const connection = yield* Support.connect({ url: server.url() })
            yield* connection.tools
            yield* connection.awaitChanges
            yield* Support.until(() => notebook.streams.size === 1)
            notebook.tools.push("more")
            notebook.changed()
            assert.deepStrictEqual([...(yield* connection.awaitChanges)], ["tools"])
            assert.lengthOf(yield* connection.tools, notebook.tools.length)
          })
        )
        yield* Support.until(() => notebook.streams.size === 0)
        assert.strictEqual(notebook.deleted, 1)
      })
    )

    it.effect("agrees on the server's revision, and sends it in every later request", () =>
      Effect.gen(function* () {
        const server = yield* Http.serve(Http.mcp(new Http.Notebook()))
        const connection = yield* Support.connect({ url: server.url() })
        assert.strictEqual((yield* connection.info).protocolVersion, "2025-06-18")
        yield* connection.callTool("write", {})
        const [first, ...later] = server.seen.map((request) => request.headers["mcp-protocol-version"])
        assert.strictEqual(first, "2025-11-25")
        assert.deepStrictEqual([...new Set(later)], ["2025-06-18"])
      })
    )

    it.effect("reports that a server is away, and connects once it is there", () =>
      Effect.gen(function* () {
        const notebook = new Http.Notebook()
        const gone = yield* Http.gone
        const connection = yield* Support.connect({ url: gone.url() })
        const error = yield* Effect.flip(connection.callTool("write", {}))
        assert.strictEqual(error.reason, "connect")
        assert.strictEqual(error.message, "MCP server 'it' cannot be reached (ECONNREFUSED)")
        yield* Http.serve(Http.mcp(notebook), gone.port)
        assert.strictEqual(Support.textOf(yield* connection.callTool("write", {})), "1")
      })
    )

    it.effect("retries to connect only to a server that was connected before", () =>
      Effect.gen(function* () {
        const cut = yield* Http.serve((_, response) => response.destroy())
        assert.strictEqual((yield* Effect.flip((yield* Support.connect({ url: cut.url() })).info)).reason, "connect")
        assert.lengthOf(cut.seen, 1)
        const notebook = new Http.Notebook()
        const server = yield* Http.serve(Http.mcp(notebook))
        const connection = yield* Support.connect({ url: server.url() })
        yield* connection.tools
        yield* server.stop
        const refused = yield* Deferred.make<void>()
        const isBack = yield* Deferred.make<void>()
        const clock = yield* Clock.Clock
        // The first pause between two attempts ends when the server is back.
        const sleep: Clock.Clock["sleep"] = (duration) =>
          Duration.toMillis(duration) === 100
            ? Effect.andThen(Deferred.succeed(refused, undefined), Deferred.await(isBack))
            : clock.sleep(duration)
        const writing = yield* Effect.forkChild(
          Effect.provideService(
            connection.callTool("write", {}),
            Clock.Clock,
            Object.assign(Object.create(clock), { sleep })
          )
        )
        yield* Deferred.await(refused)
        yield* Http.serve(Http.mcp(notebook), server.port)
        yield* Deferred.succeed(isBack, undefined)
        assert.strictEqual(Support.textOf(yield* Fiber.join(writing)), "1")
      })
    )

    it.effect("connects once for all waiting calls, and fails each of them", () =>
      Effect.gen(function* () {
        const away = yield* Http.serve((_, response) => Http.json(response, 503, {}))
        const connection = yield* Support.connect({ url: away.url() })
        const writing = Effect.flip(connection.callTool("write", {}))
        const errors = yield* Effect.replicateEffect(writing, 50, { concurrency: "unbounded" })
        assert.deepStrictEqual(new Set(errors.map(({ reason }) => reason)), new Set(["connect"]))
        assert.lengthOf(away.seen, 1)
      })
    )

    it.effect("names a header that no request can carry, and sends no request", () =>
      Effect.gen(function* () {
        const server = yield* Http.serve((_, response) => response.writeHead(500).end())
        for (const [name, value] of [
          ["x key", "fits"],
          ["x-key", "does\nnot"]
        ] as const) {
          const connection = yield* Support.connect({ url: server.url(), headers: { fits: "fits", [name]: value } })
          const error = yield* Effect.flip(connection.info)
          assert.strictEqual(error.reason, "config")
          assert.strictEqual(error.message, `the header '${name}' of MCP server 'it' is not a valid HTTP header`)
        }
        assert.deepStrictEqual(server.seen, [])
      })
    )

    it.effect("reports that a server is away when a gateway answers for it", () =>
      Effect.gen(function* () {
        for (const [status, reason] of [
          [501, "remote"],
          [502, "connect"],
          [504, "connect"],
          [505, "remote"]
        ] as const) {
          const server = yield* Http.serve((_, response) => response.writeHead(status).end())
          const error = yield* Effect.flip((yield* Support.connect({ url: server.url() })).info)
          assert.strictEqual(error.reason, reason)
          assert.strictEqual(error.message, `MCP server 'it' answered with HTTP status ${status}`)
        }
      })
    )

    it.effect("follows no redirect, so that no key reaches another server, and reports the target", () =>
      Effect.gen(function* () {
        const other = yield* Http.serve((_, response) => Http.json(response, 200, {}))
        for (const status of [301, 302, 307, 308]) {
          const server = yield* Http.serve((_, response) =>
            response.writeHead(status, { location: other.url("/steal?from=a#b") }).end()
          )
          for (const transport of ["streamable_http", "sse"]) {
            const headers = { "x-key": "sk-SECRET-0123456789" }
            const connection = yield* Support.connect({ url: server.url(), transport, headers })
            const error = yield* Effect.flip(connection.info)
            assert.strictEqual(error.reason, "remote")
            const told = `MCP server 'it' answered with HTTP status ${status}: it moved to ${other.url("/steal")}`
            assert.strictEqual(error.message, told)
          }
        }
        assert.lengthOf(other.seen, 0)
      })
    )

    it.effect("hides a variable in the path of a redirected address (S-7)", () =>
      Effect.gen(function* () {
        for (const [secret, told] of [
          ["sk-SECRET-0123456789", "<redacted>"],
          ["sk-SECRET 0123456789%", "<redacted>"],
          ["tenants/sk-SECRET-0123456789", "<redacted>"]
        ] as const) {
          const server = yield* Http.serve((request, response) =>
            response.writeHead(307, { location: `${request.path}/` }).end()
          )
          for (const transport of ["streamable_http", "sse"]) {
            const url = server.url("/production/${TOKEN}/mcp")
            const connection = yield* Support.connect({ url, transport }, { env: { TOKEN: secret } })
            const error = yield* Effect.flip(connection.info)
            const moved = server.url(`/production/${told}/mcp/`)
            assert.strictEqual(error.message, `MCP server 'it' answered with HTTP status 307: it moved to ${moved}`)
          }
        }
        const server = yield* Http.serve((request, response) =>
          Http.json(response, 403, {
            jsonrpc: "2.0",
            id: null,
            error: { code: -32000, message: `no ${decodeURIComponent(request.path)}` }
          })
        )
        const env = { ADDRESS: server.url("/production/sk-SECRET%200123456789") }
        const error = yield* Effect.flip((yield* Support.connect({ url: "${ADDRESS}" }, { env })).info)
        assert.strictEqual(error.message, "MCP server 'it' answered with HTTP status 403: no /<redacted>/<redacted>")
      })
    )

    it.effect("hides a variable of the address that a server repeats, decoded or as sent (S-7)", () =>
      Effect.gen(function* () {
        for (const [address, secret, told] of [
          ["/bot${TOKEN}/mcp", "0123456789:SECRET", "/<redacted>/mcp says <redacted>"],
          ["/mcp/${TOKEN}.json", "0123456789 SECRET%", "/mcp/<redacted> says <redacted>"],
          ["/mcp?key=${TOKEN}", "0123%2F456789%2BSECRET", "/mcp?key=<redacted> says <redacted>"],
          ["/mcp/${TOKEN}", "team1/k3y9/0a9z/77bd", "/mcp/<redacted> says <redacted>"],
          ["/mcp?key=${TOKEN}", "p@ss#w0rd&long=1", "/mcp?key=p@ss says <redacted>"]
        ] as const) {
          const server = yield* Http.serve((request, response) => {
            const message = `${request.path} says ${secret}`
            return Http.json(response, 403, { jsonrpc: "2.0", id: null, error: { code: -32000, message } })
          })
          const connection = yield* Support.connect({ url: server.url(address) }, { env: { TOKEN: secret } })
          const error = yield* Effect.flip(connection.info)
          assert.strictEqual(error.message, `MCP server 'it' answered with HTTP status 403: ${told}`)
        }
      })
    )

    it.effect("reports to each request its own redirect", () =>
      Effect.gen(function* () {
        const mcp = Http.mcp(new Http.Notebook())
        const server = yield* Http.serve((request, response) => {
          if (!request.body.includes("tools/call")) return mcp(request, response)
          const { to } = JSON.parse(request.body).params.arguments
          if (to === "nowhere") return response.writeHead(307).end()
          return Http.json(response, 307, {}, { location: to })
        })
        const connection = yield* Support.connect({ url: server.url() })
        const call = (to: string) =>
          Effect.map(Effect.flip(connection.callTool("read", { to })), (error) => error.message)
        const places = ["/a", "/b", "nowhere", "/c"]
        const told = (to: string) =>
          `MCP server 'it' answered with HTTP status 307${to === "nowhere" ? "" : `: it moved to ${server.url(to)}`}`
        assert.deepStrictEqual(yield* Effect.forEach(places, call), places.map(told))
        const together = yield* Effect.forEach(places, call, { concurrency: "unbounded" })
        assert.deepStrictEqual(together, places.map(told))
      })
    )

    it.effect("keeps keys out of every error (S-7)", () =>
      Effect.gen(function* () {
        const secret = "sk-SECRET-0123456789abcdef"
        const echo = (status: number) =>
          Effect.map(
            Http.serve((request, response) =>
              Http.json(response, status, {
                jsonrpc: "2.0",
                id: null,
                error: { code: -32000, message: `invalid key ${request.headers.authorization}`, data: request.headers }
              })
            ),
            (server) => server.url()
          )
        const gone = (yield* Http.gone).url()
        const urls = [yield* echo(401), yield* echo(403), yield* echo(400), yield* echo(500), gone]
        for (const url of urls) {
          for (const value of [secret, `${secret}\u2028`, `${secret}\nx`]) {
            const connection = yield* Support.connect(
              { url, headers: { authorization: "Bearer ${KEY}" } },
              { env: { KEY: value } }
            )
            const exit = yield* Effect.exit(connection.callTool("write", {}))
            assert(Exit.isFailure(exit))
            const shown = [
              inspect(exit, { depth: 20 }),
              JSON.stringify(exit),
              Cause.pretty(exit.cause),
              inspect(connection)
            ]
            for (const text of shown) assert.notInclude(text, secret)
          }
        }
      })
    )

    it.effect("fails when a sign-in is needed, and continues with a new token", () =>
      Effect.gen(function* () {
        const notebook = new Http.Notebook()
        const small = Http.mcp(notebook)
        let valid = "first"
        const server = yield* Http.serve((request, response) =>
          request.headers.authorization === `Bearer ${valid}`
            ? small(request, response)
            : Http.json(response, 401, {}, { "www-authenticate": 'Bearer resource_metadata="http://x/"' })
        )
        const stranger = yield* Support.connect({ url: server.url() })
        assert.strictEqual((yield* Effect.flip(stranger.tools)).reason, "needs_sign_in")

        let token = "none"
        const challenges: Array<string> = []
        const connection = yield* Support.connect(
          { url: server.url() },
          {
            credentials: {
              accessToken: Effect.sync(() => Redacted.make(token)).pipe(Effect.asSome),
              renew: (challenge) =>
                Effect.sync(() => {
                  challenges.push(challenge)
                  token = valid
                  return true
                })
            }
          }
        )
        assert.strictEqual(Support.textOf(yield* connection.callTool("write", {})), "1")
        valid = "second"
        assert.strictEqual(Support.textOf(yield* connection.callTool("write", {})), "2")
        assert.deepStrictEqual(challenges, Array(2).fill('Bearer resource_metadata="http://x/"'))
      })
    )

    it.effect("reports a needed sign-in, else the first refusal, when older revisions fail differently", () =>
      Effect.gen(function* () {
        const meet = Effect.fnUntraced(function* (status: number, later: number) {
          const server = yield* Http.serve((_, response) =>
            Http.json(response, server.seen.length === 1 ? status : later, {}, { "www-authenticate": "Bearer" })
          )
          const connection = yield* Support.connect({ url: server.url() })
          const error = yield* Effect.flip(connection.info)
          return [error.reason, server.seen.length, error.message]
        })
        assert.deepStrictEqual(yield* meet(400, 401), ["needs_sign_in", 2, "MCP server 'it' needs a sign-in"])
        assert.deepStrictEqual(yield* meet(400, 500), ["remote", 2, "MCP server 'it' answered with HTTP status 400"])
        assert.deepStrictEqual(yield* meet(400, 400), ["remote", 5, "MCP server 'it' answered with HTTP status 400"])
      })
    )

    it.effect("sends no request for a capability that the server lacks", () =>
      Effect.gen(function* () {
        for (const listChanged of [undefined, false]) {
          const server = yield* Http.serve(({ body, method }, response) => {
            if (method === "GET") return void response.writeHead(405).end()
            const { id } = JSON.parse(body)
            if (id === undefined) return void response.writeHead(202).end()
            const capabilities = { tools: listChanged === undefined ? {} : { listChanged } }
            const result = { protocolVersion: "2025-11-25", capabilities, serverInfo: { name: "few", version: "1" } }
            Http.json(response, 200, { jsonrpc: "2.0", id, result })
          })
          const connection = yield* Support.connect({ url: server.url() })
          assert.deepStrictEqual(yield* connection.resourceTemplates, [])
          yield* Effect.sleep("50 millis")
          assert.deepStrictEqual(
            server.seen.map(({ body, method }) => (method === "POST" ? JSON.parse(body).method : method)),
            ["initialize", "notifications/initialized"]
          )
        }
      })
    )

    it.effect("notifies the server when a call is cancelled, and returns at once", () =>
      Effect.gen(function* () {
        const notebook = new Http.Notebook()
        const small = Http.mcp(notebook)
        const waiting: Array<number> = []
        const server = yield* Http.serve((request, response) => {
          const message = request.body === "" ? {} : JSON.parse(request.body)
          if (message.method === "tools/call") waiting.push(message.id)
          else small(request, response)
        })
        const connection = yield* Support.connect({ url: server.url() })
        const call = yield* Effect.forkChild(connection.callTool("write", {}))
        yield* Support.until(() => waiting.length === 1)
        yield* Fiber.interrupt(call)
        const cancelled = () =>
          server.seen
            .map((request) => (request.body === "" ? {} : JSON.parse(request.body)))
            .filter((message) => message.method === "notifications/cancelled")
        yield* Support.until(() => cancelled().length > 0)
        assert.deepStrictEqual(
          cancelled().map((message) => message.params.requestId),
          waiting
        )
      })
    )
  })
})
