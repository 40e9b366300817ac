import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { McpClientError, McpProtocol } from "effect/ai"
import type { McpClient } from "effect/ai"
import { McpConfig } from "kernai/mcp"
import * as Handshake from "../../src/mcp/internal/handshake.ts"

const server = Effect.fnUntraced(function* (settings: { readonly [key: string]: unknown }) {
  const { servers } = yield* McpConfig.fromValue({ servers: { it: settings } })
  for (const server of servers.values()) return server
  return yield* Effect.die("no server")
})

/** A transport to a server that answers every request with the same. */
const answering = (result: unknown): McpClient.Transport => ({
  "~effect/ai/McpClient/Transport": "~effect/ai/McpClient/Transport",
  protocol: McpProtocol.v2025_11_25,
  request: ({ id }) => Effect.succeed({ jsonrpc: "2.0", id, result }),
  notify: () => Effect.void,
  isCallable: () => true
})

describe("a handshake", () => {
  it.effect("offers the configured revision, then older ones, then the newest", () =>
    Effect.gen(function* () {
      const offers = (settings: { readonly [key: string]: unknown }) =>
        Effect.map(server(settings), (server): ReadonlyArray<string> => Handshake.offers(server))
      const older = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]
      assert.deepStrictEqual(yield* offers({ command: "x" }), [...older, "2026-07-28"])
      assert.deepStrictEqual(yield* offers({ command: "x", protocolVersion: "2025-03-26" }), [
        "2025-03-26",
        "2024-11-05",
        "2026-07-28"
      ])
      assert.deepStrictEqual(yield* offers({ url: "https://a/mcp", protocolVersion: "2026-07-28" }), [
        "2026-07-28",
        ...older
      ])
      // The older HTTP transport was gone by then.
      assert.deepStrictEqual(yield* offers({ url: "https://a/sse", protocolVersion: "2026-07-28" }), older)
    })
  )

  it.effect("accepts any revision with a handshake, and reports the offered one to the client", () =>
    Effect.gen(function* () {
      const meet = Effect.fnUntraced(function* (result: unknown) {
        const handshake = Handshake.make("2025-06-18")
        const transport = Handshake.over(answering(result), handshake)
        const asked = {
          jsonrpc: "2.0",
          id: 1,
          method: "initialize",
          params: { protocolVersion: "2025-11-25" }
        } as const
        return [yield* Effect.result(transport.request(asked)), handshake] as const
      })
      const [old, agreed] = yield* meet({ protocolVersion: "2024-11-05", capabilities: { tools: {} } })
      assert.deepInclude(old, {
        _tag: "Success",
        success: { jsonrpc: "2.0", id: 1, result: { protocolVersion: "2025-11-25", capabilities: { tools: {} } } }
      })
      assert.deepStrictEqual([agreed.version, agreed.capabilities], ["2024-11-05", { tools: {} }])

      // The newest has no handshake, so nobody can agree on it in one.
      for (const protocolVersion of ["2026-07-28", "2099-01-01", undefined]) {
        const [failed, none] = yield* meet({ protocolVersion, capabilities: { tools: {} } })
        assert(failed._tag === "Failure")
        assert.isTrue(Handshake.declines(failed.failure))
        assert.deepStrictEqual([none.version, none.capabilities], [undefined, {}])
      }
      const [, bare] = yield* meet({ protocolVersion: "2025-06-18", capabilities: "all" })
      assert.deepStrictEqual(bare.capabilities, {})
      // The client knows what to say of an answer that is none.
      const [odd] = yield* meet("2025-06-18")
      assert.deepInclude(odd, { _tag: "Success", success: { jsonrpc: "2.0", id: 1, result: "2025-06-18" } })
    })
  )

  it("offers an older revision only after a refusal that allows it", () => {
    const { HttpError, ProtocolError, TransportError, UnsupportedError } = McpClientError
    const declines = (reason: McpClientError.McpClientError["reason"]) =>
      Handshake.declines(new McpClientError.McpClientError({ reason }))
    assert.isTrue(declines(new UnsupportedError({ description: "no such revision" })))
    assert.isTrue(declines(new ProtocolError({ code: -32602, description: "Unsupported protocol version" })))
    assert.isTrue(declines(new HttpError({ status: 400 })))
    assert.isFalse(declines(new ProtocolError({ description: "the server sent unreadable JSON" })))
    for (const status of [401, 403, 404, 500]) assert.isFalse(declines(new HttpError({ status })))
    assert.isFalse(declines(new TransportError({ description: "gone", cause: undefined })))
  })

  it("subscribes to all changes in the newest revision, and identifies the client in each request", () => {
    assert.deepStrictEqual(Handshake.subscription.params, {
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": Handshake.clientInfo,
        "io.modelcontextprotocol/clientCapabilities": {}
      },
      notifications: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
    })
    assert.deepStrictEqual(Handshake.requestMeta("2025-11-25"), {})
  })
})
