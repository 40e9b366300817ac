import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Stream } from "effect"
import { Limits } from "kernai"
import { McpProtocol, ToolPins } from "kernai/mcp"
import * as Catalog from "../../src/mcp/internal/catalog.ts"
import { HubServer } from "../../src/mcp/internal/hubServer.ts"

const never = Effect.never

/** A server of tools that tell when their schemas are read. */
const station = Effect.map(ToolPins.ToolPins, (pins) => {
  const reads: Array<string> = []
  const made = new HubServer(
    {
      server: {
        name: "it",
        transport: "stdio",
        command: "it",
        args: [],
        env: {},
        cwd: undefined,
        written: { command: "it", cwd: undefined },
        protocolVersion: "2025-11-25",
        connectTimeout: Duration.seconds(1),
        timeout: Duration.seconds(1),
        progressTimeout: Duration.seconds(1),
        trustAnnotations: false,
        elicitation: true,
        inheritNetwork: false
      },
      info: never,
      tools: never,
      skippedTools: Effect.succeed(new Map()),
      resources: never,
      resourceTemplates: never,
      prompts: never,
      forget: never,
      callTool: () => never,
      readResource: () => never,
      getPrompt: () => never,
      complete: () => Effect.succeed({ values: [], hasMore: false }),
      watch: () => Stream.never,
      awaitChanges: never
    },
    undefined,
    pins
  )
  made.tools = Array.from({ length: 1_000 }, (_, index) => {
    const name = `tool_${index}`
    const read = (schema: string) => {
      reads.push(`${name} ${schema}`)
      return { type: "object", description: `<block> of ${name}` }
    }
    return {
      tool: { name, inputSchema: { type: "object" } },
      text: name,
      hash: name,
      hidden: undefined,
      parts: {
        get inputSchema() {
          return read("input")
        },
        get outputSchema() {
          return read("output")
        }
      }
    }
  })
  const source = { servers: new Map([["it", made]]), refresh: () => Effect.void, limits: Limits.defaults }
  return { reads, catalog: Catalog.make(source) }
}).pipe(Effect.provide(ToolPins.layerMemory))

describe("the catalog of a server with a thousand tools", () => {
  it.effect("reads the schemas of a described tool, and of no listed one", () =>
    Effect.gen(function* () {
      const { catalog, reads } = yield* station
      const ask = (request: unknown) =>
        Effect.map(McpProtocol.answer(catalog, JSON.stringify(request)), McpProtocol.textOf)
      assert.include(yield* ask({ method: "tools/list" }), '"tool_999"')
      assert.deepStrictEqual(reads, [])
      const told = yield* ask({ method: "tools/describe", params: { name: "tool_500" } })
      assert.include(told, '"input_schema":{"type":"object","description":"&lt;block')
      assert.deepStrictEqual(reads, ["tool_500 input", "tool_500 output"])
    })
  )
})
