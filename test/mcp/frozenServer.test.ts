import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Deferred, Effect, Fiber, Layer, Logger } from "effect"
import { HttpClient, HttpClientResponse } from "effect/http"
import { TestClock } from "effect/testing"
import * as Support from "../support/mcp/connect.ts"

const results: { readonly [method: string]: object } = {
  initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "ice", version: "1" } },
  "tools/list": { tools: [{ name: "write", inputSchema: { type: "object" } }] }
}

/** A server that answers up to a method, and nothing from then on. */
const freezing = Effect.fnUntraced(function* (method: string) {
  const isFrozen = yield* Deferred.make<void>()
  const lines: Array<string> = []
  const client = HttpClient.make((request) =>
    Effect.gen(function* () {
      const body = request.body._tag === "Uint8Array" ? JSON.parse(new TextDecoder().decode(request.body.body)) : {}
      if (body.method === method) yield* Deferred.succeed(isFrozen, undefined)
      if (yield* Deferred.isDone(isFrozen)) return yield* Effect.never
      const { id } = body
      const response =
        id === undefined
          ? new Response(null, { status: 202 })
          : Response.json({ jsonrpc: "2.0", id, result: results[body.method] })
      return HttpClientResponse.fromWeb(request, response)
    })
  )
  const platform = Layer.merge(NodeServices.layer, Layer.succeed(HttpClient.HttpClient, client))
  const logs = Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])
  const connection = yield* Effect.provide(
    Support.connect({ url: "https://ice.test/mcp", connectTimeout: "7 seconds", timeout: "9 seconds" }),
    platform
  )
  return { connection, isFrozen: Deferred.await(isFrozen), lines, logs }
})

describe("A server that freezes", () => {
  it.effect("ends a call at its time limit, with a log entry when the wait takes 5 seconds", () =>
    Effect.gen(function* () {
      const { connection, isFrozen, lines, logs } = yield* freezing("tools/call")
      const calling = yield* Effect.forkChild(Effect.provide(Effect.flip(connection.callTool("write", {})), logs))
      yield* isFrozen
      yield* TestClock.adjust("4999 millis")
      assert.deepStrictEqual(lines, [])
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(lines, ["waiting for MCP server 'it' to answer tools/call write"])
      yield* TestClock.adjust("4 seconds")
      assert.strictEqual((yield* Fiber.join(calling)).reason, "timeout")
      assert.strictEqual(yield* Clock.currentTimeMillis, 9_000)
      assert.lengthOf(lines, 1)
    }).pipe(Effect.scoped)
  )

  it.effect("ends a connection at its time limit, with a log entry when the wait takes 5 seconds", () =>
    Effect.gen(function* () {
      const { connection, isFrozen, lines, logs } = yield* freezing("initialize")
      const connecting = yield* Effect.forkChild(Effect.provide(Effect.flip(connection.info), logs))
      yield* isFrozen
      yield* TestClock.adjust("5 seconds")
      assert.deepStrictEqual(lines, ["waiting for MCP server 'it' to connect"])
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual((yield* Fiber.join(connecting)).reason, "timeout")
      assert.strictEqual(yield* Clock.currentTimeMillis, 7_000)
    }).pipe(Effect.scoped)
  )
})
