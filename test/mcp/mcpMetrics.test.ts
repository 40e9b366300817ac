import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Metric } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import * as Support from "../support/mcp/connect.ts"

/** What is recorded of requests over HTTP: each call is answered when the test says so. */
const recorded = Effect.gen(function* () {
  const answers: { [method: string]: object } = {
    initialize: {
      result: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "m", version: "1" } }
    },
    "tools/list": {
      result: { tools: ["ok", "bad", "slow"].map((name) => ({ name, inputSchema: { type: "object" } })) }
    },
    ok: { result: { content: [] } },
    bad: { result: { content: [], isError: true } }
  }
  const called = yield* Deferred.make<void>()
  const client = HttpClient.make((request) =>
    Effect.gen(function* () {
      const { id, method, params } =
        request.body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(request.body.body)) : {}
      if (params?.name === "slow") {
        yield* Deferred.succeed(called, undefined)
        return yield* Effect.never
      }
      const answer = answers[params?.name] ?? answers[method]
      const response =
        id === undefined ? new Response(null, { status: 202 }) : Response.json({ jsonrpc: "2.0", id, ...answer })
      return HttpClientResponse.fromWeb(request, response)
    })
  )
  const registry: Metric.MetricRegistry = new Map()
  yield* Effect.gen(function* () {
    const connection = yield* Support.connect({ url: "https://m.test/mcp", timeout: "3 seconds" })
    yield* connection.callTool("ok", {})
    yield* connection.callTool("bad", {})
    const slow = yield* Effect.forkChild(Effect.exit(connection.callTool("slow", {})))
    yield* Deferred.await(called)
    yield* TestClock.adjust("3 seconds")
    yield* Fiber.join(slow)
  }).pipe(
    Effect.scoped,
    Effect.provide(Layer.merge(NodeServices.layer, Layer.succeed(HttpClient.HttpClient, client))),
    Effect.provideService(Metric.MetricRegistry, registry)
  )
  return Metric.snapshotUnsafe(Context.make(Metric.MetricRegistry, registry)).map((metric) => {
    assert.strictEqual(metric.type, "Histogram")
    const { unit, ...attributes } = metric.attributes ?? {}
    assert.strictEqual(unit, "s")
    return { name: metric.id, attributes, state: metric.state }
  })
})

const place = { "network.transport": "tcp", "server.address": "m.test", "server.port": "443" }

describe("The telemetry of MCP", () => {
  it.effect("measures each request by its method, its tool and its failure", () =>
    Effect.gen(function* () {
      const requests = (yield* recorded).filter(({ name }) => name === "mcp.client.operation.duration")
      const of = (method: string, more = {}) => ({ ...place, "mcp.method.name": method, ...more })
      assert.sameDeepMembers(
        requests.map(({ attributes }) => attributes),
        [
          of("initialize"),
          of("tools/list"),
          of("tools/call", { "gen_ai.tool.name": "ok" }),
          of("tools/call", { "gen_ai.tool.name": "bad", "error.type": "tool_error" }),
          of("tools/call", { "gen_ai.tool.name": "slow", "error.type": "TimeoutError" })
        ]
      )
      const slow = requests.find(({ attributes }) => attributes["gen_ai.tool.name"] === "slow")
      assert.deepInclude(slow?.state, { count: 1, sum: 3 })
    })
  )

  it.effect("measures each session from its handshake to its end", () =>
    Effect.gen(function* () {
      const sessions = (yield* recorded).filter(({ name }) => name === "mcp.client.session.duration")
      assert.lengthOf(sessions, 1)
      assert.deepStrictEqual(sessions[0]?.attributes, { ...place, "mcp.protocol.version": "2025-06-18" })
      assert.deepInclude(sessions[0]?.state, { count: 1, sum: 3 })
    })
  )
})
