import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, layer } from "@effect/vitest"
import {
  Cause,
  Clock,
  Deferred,
  Duration,
  Effect,
  Exit,
  Fiber,
  Layer,
  Redacted,
  Result,
  Scheduler,
  Schema
} from "effect"
import { McpProtocol, McpServer, Tool, Toolkit } from "effect/ai"
import { HttpRouter } from "effect/http"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"
import { inspect } from "node:util"
import { Limits } from "kernai"
import { interruptingAt } from "../support/interrupting.ts"
import * as Support from "../support/mcp/connect.ts"
import { serve as everything } from "../support/mcp/everything.ts"
import * as Http from "../support/mcp/httpServer.ts"
import { isLong, quickly, times } from "../support/longRun.ts"

layer(Support.platform, { excludeTestServices: true, timeout: "30 seconds" })("McpConnection", (it) => {
  describe("reaches real servers", () => {
    const usesEverything = Effect.fnUntraced(function* (settings: { readonly [key: string]: unknown }) {
      const connection = yield* Support.connect(settings)
      const info = yield* connection.info
      assert.strictEqual(info.protocolVersion, "2025-11-25")
      assert.strictEqual(info.name, "mcp-servers/everything")
      assert.strictEqual(Support.textOf(yield* connection.callTool("echo", { message: "hi" })), "Echo: hi")
      assert.isAbove((yield* connection.tools).length, 8)
      assert.isAbove((yield* connection.resources).length, 1)
      assert.isAbove((yield* connection.resourceTemplates).length, 1)
      const prompt = yield* connection.getPrompt("args-prompt", { city: "Oslo" })
      assert.include(JSON.stringify(prompt.messages), "Oslo")
      const [resource] = yield* connection.resources
      assert.lengthOf((yield* connection.readResource(resource!.uri)).contents, 1)
      const image = yield* connection.callTool("get-tiny-image", {})
      const picture = image.content.find((content) => content.type === "image")
      assert.instanceOf(picture?.data, Uint8Array)
      const structured = yield* connection.callTool("get-structured-content", { location: "Chicago" })
      assert.hasAllKeys(structured.structuredContent, ["temperature", "conditions", "humidity"])
      const misfit = yield* connection.callTool("get-sum", { a: "no" })
      assert.isTrue(misfit.isError)
      const unknown = yield* Effect.flip(connection.callTool("no-such-tool", {}))
      assert.strictEqual(unknown.message, "tool not found: no-such-tool (server=it)")
    })

    it.effect("server-everything over stdio", () => usesEverything(Support.node(Support.everythingScript, "stdio")))

    const overHttp = [
      ["Streamable HTTP", "streamableHttp"],
      ["legacy SSE", "sse"]
    ] as const
    it.effect.each(quickly(overHttp, ([, transport]) => transport === "streamableHttp"))(
      "server-everything over %s",
      ([, transport]) => Effect.flatMap(everything(transport), ({ url }) => usesEverything({ url }))
    )

    if (isLong) {
      it.effect("server-filesystem, which reads what it wrote", () =>
        Effect.gen(function* () {
          const folder = fs.realpathSync(path.dirname(yield* Support.sideFile))
          const connection = yield* Support.connect(Support.node(Support.filesystemScript, folder))
          const file = path.join(folder, "note.txt")
          yield* connection.callTool("write_file", { path: file, content: "ok</block>" })
          assert.strictEqual(Support.textOf(yield* connection.callTool("read_text_file", { path: file })), "ok</block>")
          const outside = yield* connection.callTool("read_text_file", { path: "/etc/passwd" })
          assert.isTrue(outside.isError)
        })
      )
    }

    it.effect.each([
      ["sdk-1-0", "2024-11-05"],
      ["sdk-1-12", "2025-03-26"]
    ] as const)("a server on %s, which speaks %s", ([sdk, version]) =>
      Effect.gen(function* () {
        const old = new URL("../support/mcp/old.mjs", import.meta.url).pathname
        const connection = yield* Support.connect(Support.node(old, sdk))
        assert.strictEqual((yield* connection.info).protocolVersion, version)
        assert.strictEqual(Support.textOf(yield* connection.callTool("echo", { text: "hi" })), `${sdk}: hi`)
      })
    )

    it.effect("a server of 2026-07-28, if configured, and if it supports no older revision", () =>
      Effect.gen(function* () {
        const Add = Tool.make("add", {
          parameters: Schema.Struct({ a: Schema.Finite, b: Schema.Finite }),
          success: Schema.Finite
        })
        const tools = Toolkit.make(Add)
        const port = yield* Effect.scoped(
          Effect.map(
            Http.serve(() => {}),
            (server) => server.port
          )
        )
        yield* McpServer.toolkit(tools).pipe(
          Layer.provide(tools.toLayer({ add: ({ a, b }) => Effect.succeed(a + b) })),
          Layer.provide(
            McpServer.layerHttp({ name: "new", version: "1", path: "/mcp", protocols: [McpProtocol.v2026_07_28] })
          ),
          (routes) => HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }),
          Layer.provide(NodeHttpServer.layer(() => http.createServer(), { port, host: "127.0.0.1" })),
          Layer.build
        )
        for (const settings of [{}, { protocolVersion: "2026-07-28" }]) {
          const connection = yield* Support.connect({ url: `http://127.0.0.1:${port}/mcp`, ...settings })
          assert.strictEqual((yield* connection.info).protocolVersion, "2026-07-28")
          assert.strictEqual(Support.textOf(yield* connection.callTool("add", { a: 1, b: 2 })), "3")
          assert.deepStrictEqual(yield* connection.resourceTemplates, [])
        }
      })
    )
  })

  it.effect("leaves no process behind when this one is terminated (R-15, R-17)", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      const host = spawn(process.execPath, [Support.hostScript, side], { stdio: "ignore" })
      const exited = new Promise<number | null>((resolve) => host.on("exit", resolve))
      yield* Support.until(() => Support.lines(side).length > 1)
      const pids = Support.lines(side)[0]!.split(" ").slice(1).map(Number)
      host.kill("SIGTERM")
      yield* Effect.promise(() => exited)
      assert.lengthOf(pids, 2)
      assert.deepStrictEqual(pids.filter(Support.isAlive), [])
    })
  )

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

  describe("over legacy SSE", () => {
    it.effect("posts only to the configured origin", () =>
      Effect.gen(function* () {
        const other = yield* Http.serve((_, response) => Http.json(response, 202, {}))
        for (const endpoint of [other.url("/steal"), "http://127.1:1/", "javascript:alert(1)", "//evil.example/"]) {
          const server = yield* Http.serve((_, response) => {
            response.writeHead(200, { "content-type": "text/event-stream" })
            response.write(`event: endpoint\ndata: ${endpoint}\n\n`)
          })
          const connection = yield* Support.connect({ url: server.url("/sse") })
          const error = yield* Effect.flip(connection.info)
          assert.strictEqual(error.reason, "protocol")
          assert.include(error.message, "another origin")
        }
        assert.lengthOf(other.seen, 0)
      })
    )

    /** A small server; `call` is what it does when its tool is called, or that is given up. */
    const legacy = (call: (id: number, stream: http.ServerResponse, response: http.ServerResponse) => void) => {
      let stream: http.ServerResponse
      const results: { [method: string]: object } = {
        initialize: {
          protocolVersion: "2024-11-05",
          capabilities: { tools: {} },
          serverInfo: { name: "legacy", version: "0" }
        },
        "tools/list": { tools: [{ name: "write", inputSchema: { type: "object" } }] },
        ping: {}
      }
      return Http.serve((request, response) => {
        if (request.method === "GET") {
          stream = response
          response.writeHead(200, { "content-type": "text/event-stream" })
          return void response.write("event: endpoint\ndata: /post\n\n")
        }
        const { id, method } = JSON.parse(request.body)
        if (method === "tools/call" || method === "notifications/cancelled") return call(id, stream, response)
        response.writeHead(202).end()
        if (id !== undefined) say(stream, id, results[method])
      })
    }
    const say = (stream: http.ServerResponse, id: number, result: unknown) =>
      stream.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`)

    it.effect("waits for a connection no longer than connectTimeout, whatever the server leaves out", () =>
      Effect.gen(function* () {
        const streams = [
          (response: http.ServerResponse) => void response.write(": nothing\n\n"),
          (response: http.ServerResponse) => void response.write("event: endpoint\ndata: /post\n\n")
        ]
        for (const begin of streams) {
          const server = yield* Http.serve((request, response) => {
            if (request.method !== "GET") return
            response.writeHead(200, { "content-type": "text/event-stream" })
            begin(response)
          })
          const connection = yield* Support.connect({ url: server.url("/sse"), connectTimeout: "100 millis" })
          assert.strictEqual((yield* Effect.flip(connection.info)).reason, "timeout")
        }
        // No limit of the kernel takes part in it.
      }).pipe(Effect.provideService(Limits.Limits, Limits.make({ connectTimeout: "Infinity" })))
    )

    it.effect("delays no call beyond its timeout when the server answers nothing", () =>
      Effect.gen(function* () {
        const server = yield* legacy(() => {})
        const connection = yield* Support.connect({ url: server.url("/sse") })
        const error = yield* Effect.flip(connection.callTool("write", {}, { timeout: "30 millis" }))
        assert.strictEqual(error.reason, "timeout")
      }).pipe(Effect.provideService(Limits.Limits, Limits.make({ cleanUpTimeout: 400 })))
    )

    it.effect(
      "reports an unknown outcome when the stream ends during a write, and opens another stream for the next call (R-2)",
      () =>
        Effect.gen(function* () {
          let calls = 0
          const server = yield* legacy((id, stream, response) => {
            response.writeHead(202).end()
            if (++calls === 1) stream.end()
            else say(stream, id, { content: [{ type: "text", text: "written" }] })
          })
          const connection = yield* Support.connect({ url: server.url("/sse") })
          const error = yield* Effect.flip(connection.callTool("write", {}))
          assert.strictEqual(error.reason, "outcome_unknown")
          assert.include(error.message, "the server closed the event stream")
          assert.strictEqual(Support.textOf(yield* connection.callTool("write", {})), "written")
          assert.strictEqual(calls, 2)
        })
    )

    it.effect("reports an unknown outcome when the server had not accepted the message yet", () =>
      Effect.gen(function* () {
        const server = yield* legacy((_, stream) => stream.end())
        const connection = yield* Support.connect({ url: server.url("/sse"), timeout: "10 seconds" })
        const error = yield* Effect.flip(connection.callTool("write", {}))
        assert.strictEqual(error.reason, "outcome_unknown")
      })
    )

    it.effect("leaves no connection behind, wherever connecting is interrupted (R-15)", () =>
      Effect.gen(function* () {
        const server = yield* legacy(() => {})
        const open = () => server.seen.filter(({ method }) => method === "GET").length - server.abandoned()
        let isCut = true
        for (let at = 0; isCut; at += 4) {
          const used = Effect.gen(function* () {
            const connection = yield* Support.connect({ url: server.url("/sse") })
            const first = yield* Effect.forkChild(
              Effect.provideService(connection.info, Scheduler.Scheduler, interruptingAt(at))
            )
            isCut = Exit.hasInterrupts(yield* Fiber.await(first))
            yield* connection.info
            yield* Support.until(() => open() === 1)
          })
          yield* Effect.scoped(used)
          yield* Support.until(() => open() === 0)
        }
      })
    )

    it.effect("times out when the server sends nothing at all", () =>
      Effect.gen(function* () {
        const server = yield* Http.serve(() => {})
        const connection = yield* Support.connect({ url: server.url("/sse"), connectTimeout: "30 millis" })
        const error = yield* Effect.flip(connection.info)
        assert.strictEqual(error.reason, "timeout")
        yield* Support.until(() => server.openSockets() === 0)
      })
    )

    it.effect("requests a stream of events, and reports when there is none", () =>
      Effect.gen(function* () {
        const server = yield* Http.serve((_, response) => Http.json(response, 200, {}))
        const connection = yield* Support.connect({ url: server.url("/sse") })
        const error = yield* Effect.flip(connection.info)
        assert.strictEqual(error.reason, "protocol")
        assert.include(error.message, "no event stream")
        assert.strictEqual(server.seen[0]?.headers.accept, "text/event-stream")
      })
    )

    it.effect.each([404, 405])("is tried when an inferred Streamable HTTP address answers %s", (status) =>
      Effect.gen(function* () {
        const server = yield* Http.serve((request, response) => {
          if (request.method !== "GET") return void response.writeHead(status).end()
          response.writeHead(200, { "content-type": "text/event-stream" })
          response.write("event: endpoint\ndata: http://other.example/\n\n")
        })
        const guessed = yield* Support.connect({ url: server.url() })
        assert.include((yield* Effect.flip(guessed.info)).message, "another origin")
        const told = yield* Support.connect({ url: server.url(), transport: "http" })
        assert.include((yield* Effect.flip(told.info)).message, `HTTP status ${status}`)
      })
    )
  })
})
