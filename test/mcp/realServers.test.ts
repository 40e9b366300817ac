import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, layer } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { McpProtocol, McpServer, Tool, Toolkit } from "effect/ai"
import { HttpRouter } from "effect/http"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as http from "node:http"
import * as path from "node:path"
import * as Support from "../support/mcp/connect.ts"
import { serve as everything } from "../support/mcp/everything.ts"
import * as Http from "../support/mcp/httpServer.ts"
import { isLong, quickly } from "../support/longRun.ts"

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
})
