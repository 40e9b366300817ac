/** Servers behind a transport that the application gives. */
import { assert, layer } from "@effect/vitest"
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js"
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import { Cause, Effect, Layer, Queue, Stream } from "effect"
import { ProtocolRegistry, type Skill, SkillRegistry } from "kernai"
import { McpConfig, McpConnection, McpHub } from "kernai/mcp"
import * as Support from "../support/mcp/connect.ts"
import * as Hub from "../support/mcp/hub.ts"

/** The official server in this process, a new one for each connection. */
const official = () => {
  const servers: Array<McpServer> = []
  const closed: Array<number> = []
  const open = Effect.gen(function* () {
    const [near, far] = InMemoryTransport.createLinkedPair()
    const received = yield* Queue.unbounded<string, Cause.Done>()
    near.onmessage = (message) => void Queue.offerUnsafe(received, JSON.stringify(message))
    near.onclose = () => void Queue.endUnsafe(received)
    const server = new McpServer({ name: "inside", version: "1" })
    server.registerTool("book", {}, async () => {
      const { action, content } = await server.server.elicitInput({
        message: "Which seat?",
        requestedSchema: { type: "object", properties: { seat: { type: "string", default: "1A" } } }
      })
      return { content: [{ type: "text", text: `${action} ${String(content?.["seat"])}` }] }
    })
    const at = servers.push(server)
    yield* Effect.promise(async () => {
      await server.connect(far as Transport)
      await near.start()
    })
    yield* Effect.addFinalizer(() =>
      Effect.promise(async () => {
        closed.push(at)
        await near.close()
      })
    )
    return {
      send: (text: string) => Effect.promise(() => near.send(JSON.parse(text))),
      received: Stream.fromQueue(received)
    }
  })
  return { open, servers, closed }
}

const agrees = (): Effect.Effect<Skill.Reply> => Effect.succeed({ _tag: "Accepted", values: {} })

layer(Support.platform, { excludeTestServices: true })("A transport of the application", (it) => {
  it.effect("carries calls and questions, and is opened again after it ended", () =>
    Effect.gen(function* () {
      const { closed, open, servers } = official()
      yield* Effect.gen(function* () {
        const server = yield* McpConfig.custom("it", open)
        const connection = yield* McpConnection.make(server, { host: { elicit: agrees } })
        const { name } = yield* connection.info
        assert.strictEqual(name, "inside")
        assert.strictEqual(Support.textOf(yield* connection.callTool("book", {})), "accept 1A")
        yield* Effect.promise(() => servers[0]!.close())
        yield* Support.until(() => closed.length === 0 || closed.includes(1))
        assert.strictEqual(Support.textOf(yield* connection.callTool("book", {})), "accept 1A")
        assert.lengthOf(servers, 2)
      }).pipe(Effect.scoped)
      assert.deepStrictEqual(closed, [1, 2])
    })
  )

  it.effect("fails calls with the server's name when it cannot be opened, without the text of its error", () =>
    Effect.gen(function* () {
      const server = yield* McpConfig.custom("it", Effect.fail("key sk-SECRET"))
      const connection = yield* McpConnection.make(server)
      const error = yield* Effect.flip(connection.tools)
      assert.strictEqual(error.reason, "connect")
      assert.strictEqual(error.message, "cannot connect to MCP server 'it': the transport cannot be opened")
    })
  )

  it.effect("is one of the servers of a hub", () =>
    Effect.gen(function* () {
      const server = yield* McpConfig.custom("in", official().open)
      yield* Effect.gen(function* () {
        assert.deepStrictEqual(yield* Hub.skillNames, ["mcp_in__book"])
        const [status] = yield* McpHub.McpHub.use((hub) => hub.status)
        assert.strictEqual(status?.transport, "custom")
        assert.match(JSON.stringify(yield* Hub.call("mcp_in__book")), /accept 1A/)
      }).pipe(
        Effect.provide(
          McpHub.layer(McpConfig.make(server), { elicit: agrees }).pipe(
            Layer.provideMerge(Layer.merge(SkillRegistry.layer(), ProtocolRegistry.layer())),
            Layer.provide(Support.platform)
          )
        )
      )
    })
  )
})
