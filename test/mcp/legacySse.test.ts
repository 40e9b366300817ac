import { assert, describe, layer } from "@effect/vitest"
import { Effect, Exit, Fiber, Scheduler } from "effect"
import * as http from "node:http"
import { Limits } from "kernai"
import { interruptingAt } from "../support/interrupting.ts"
import * as Support from "../support/mcp/connect.ts"
import * as Http from "../support/mcp/httpServer.ts"

layer(Support.platform, { excludeTestServices: true, timeout: "30 seconds" })("McpConnection", (it) => {
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
