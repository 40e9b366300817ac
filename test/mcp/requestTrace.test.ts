/** The span of a call in the `_meta` of its request, as a server over a transport of the application receives it. */
import { assert, layer } from "@effect/vitest"
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { Cause, Effect, Queue, Stream, Tracer } from "effect"
import { McpConfig, McpConnection } from "kernai/mcp"
import * as Support from "../support/mcp/connect.ts"

const traceId = "0af7651916cd43dd8448eb211c80319c"

/** The official server in this process, with a tool that shows the `_meta` of its call. */
const open = Effect.gen(function* () {
  const [near, far] = InMemoryTransport.createLinkedPair()
  const received = yield* Queue.unbounded<string, Cause.Done>()
  near.onmessage = (message) => void Queue.offerUnsafe(received, JSON.stringify(message))
  near.onclose = () => void Queue.endUnsafe(received)
  const server = new McpServer({ name: "inside", version: "1" })
  server.registerTool("show", {}, ({ _meta }) => ({
    content: [{ type: "text", text: String(_meta?.["traceparent"]) }]
  }))
  yield* Effect.promise(async () => {
    await server.connect(far as Transport)
    await near.start()
  })
  yield* Effect.addFinalizer(() => Effect.promise(() => near.close()))
  return {
    send: (text: string) => Effect.promise(() => near.send(JSON.parse(text))),
    received: Stream.fromQueue(received)
  }
})

layer(Support.platform, { excludeTestServices: true })("A call of a tool", (it) => {
  it.effect("carries the span it belongs to", () =>
    Effect.gen(function* () {
      const connection = yield* McpConnection.make(yield* McpConfig.custom("it", open))
      const caller = Tracer.externalSpan({ traceId, spanId: "b7ad6b7169203331", sampled: true })
      const called = Effect.withSpan(connection.callTool("show", {}), "a call", { parent: caller })
      assert.match(Support.textOf(yield* called), new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`))
    }).pipe(Effect.scoped)
  )
})
