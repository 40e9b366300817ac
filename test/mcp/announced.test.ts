import { assert, describe, layer } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { Effect, Redacted } from "effect"
import { McpSchema } from "effect/ai"
import type { McpServer } from "effect/ai"
import { TestClock } from "effect/testing"
import { SkillRegistry } from "kernai"
import { McpServe } from "kernai/mcp"
import { fileURLToPath } from "node:url"
import * as CallProgress from "../../src/mcp/internal/callProgress.ts"
import * as Support from "../support/mcp/connect.ts"
import { skills } from "../support/mcp/offered.ts"

const script = fileURLToPath(new URL("../support/mcp/offered.ts", import.meta.url))

/** The skills over HTTP, and how a connection of ours reaches them. */
const served = Effect.gen(function* () {
  const { token, url } = yield* McpServe.http()
  const authorization = `Bearer ${Redacted.value(token!)}`
  return { settings: { url, headers: { authorization } }, url, authorization }
})

const announced = Effect.fnUntraced(function* (settings: { readonly [key: string]: unknown }, protocolVersion: string) {
  const connection = yield* Support.connect({ ...settings, protocolVersion })
  const info = yield* connection.info
  assert.strictEqual(info.protocolVersion, protocolVersion)
  return info.capabilities
})

layer(Support.platform, { excludeTestServices: true, timeout: "60 seconds" })("A server of skills", (it) => {
  it.effect("announces only capabilities that it has, in every revision", () =>
    Effect.gen(function* () {
      const { settings } = yield* served
      const tools = { tools: { listChanged: true } }
      for (const way of [settings, Support.node(script)]) {
        for (const version of ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]) {
          assert.deepStrictEqual(yield* announced(way, version), tools)
        }
      }
    }).pipe(Effect.provide(SkillRegistry.layer(...skills)))
  )

  describe("progress of a call", () => {
    /** The progress that the official client receives of the reports of calls, as it arrives. */
    const received = Effect.fnUntraced(function* (transport: Transport) {
      const client = new Client({ name: "oracle", version: "1" })
      yield* Effect.acquireRelease(
        Effect.promise(() => client.connect(transport)),
        () => Effect.promise(() => client.close())
      )
      const all: Array<object> = []
      const { onmessage } = transport
      transport.onmessage = (message, extra) => {
        if ("method" in message && message.method === "notifications/progress") all.push({ ...message.params })
        onmessage?.(message, extra)
      }
      for (const report of [7, "half", { progress: 2, total: 4, message: "two of four" }, { left: 3 }]) {
        const call = { name: "reporting", arguments: { report } }
        const { content } = yield* Effect.promise(() => client.callTool(call, undefined, { onprogress: () => {} }))
        assert.deepStrictEqual(content, [{ type: "text", text: "reported" }])
        // Without a token.
        yield* Effect.promise(() => client.callTool(call))
      }
      const expected = [
        { progress: 7 },
        { progress: 1, message: "half" },
        { progress: 2, total: 4, message: "two of four" },
        { progress: 1, message: `{"left":3}` }
      ]
      assert.lengthOf(all, expected.length)
      for (const [index, progress] of expected.entries()) {
        assert.deepInclude(all[index], progress)
        assert.property(all[index], "progressToken")
      }
    })

    it.effect("is sent over standard streams to a client that gave a token", () =>
      received(new StdioClientTransport({ command: process.execPath, args: [script] }) as Transport)
    )

    it.effect("is sent over Streamable HTTP to a client that gave a token", () =>
      Effect.gen(function* () {
        const { authorization, url } = yield* served
        const requestInit = { headers: { authorization } }
        yield* received(new StreamableHTTPClientTransport(new URL(url), { requestInit }) as Transport)
      }).pipe(Effect.provide(SkillRegistry.layer(...skills)))
    )
  })
})

layer(Support.platform)("The progress of a call", (it) => {
  it.effect("is sent at most ten times a second, without secrets", () =>
    Effect.gen(function* () {
      const sent: Array<unknown> = []
      const server = {
        notifications: { "notifications/progress": (progress: unknown) => Effect.sync(() => void sent.push(progress)) }
      } as unknown as McpServer.McpServer["Service"]
      const report = yield* Effect.provideService(
        CallProgress.make(server, { text: (text) => text.replace("secret", "<redacted>") }),
        McpSchema.McpRequestContext,
        McpSchema.McpRequestContext.of({
          clientId: 1,
          protocolVersion: "2025-11-25",
          clientCapabilities: {},
          requestMetadata: { progressToken: "t" }
        })
      )
      for (const pause of [0, 50, 49, 1, 100]) {
        yield* TestClock.adjust(pause)
        yield* report!({ _tag: "Progress", progress: "a secret" })
      }
      assert.deepStrictEqual(
        sent,
        [1, 2, 3].map((progress) => ({ progressToken: "t", progress, message: "a <redacted>" }))
      )
    })
  )
})
