/** Servers over HTTP that have everything: the official one, and effect's of the newest revision. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer } from "effect"
import { McpProtocol, McpServer } from "effect/ai"
import { HttpRouter } from "effect/http"
import { spawn } from "node:child_process"
import * as http from "node:http"
import { everythingScript } from "./connect.ts"
import * as Http from "./httpServer.ts"

const freePort = Effect.scoped(
  Effect.map(
    Http.serve(() => {}),
    (server) => server.port
  )
)

/** server-everything over HTTP, on a port of its own choice. */
export const serve = (mode: "sse" | "streamableHttp") =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const port = yield* freePort
      const child = spawn(process.execPath, [everythingScript, mode], {
        env: { PATH: process.env["PATH"], PORT: `${port}` },
        stdio: ["ignore", "pipe", "pipe"]
      })
      yield* Effect.callback<void>((resume) => {
        const listening = (text: Buffer) => /listening on|running on/.test(`${text}`) && resume(Effect.void)
        child.stdout.on("data", listening)
        child.stderr.on("data", listening)
      })
      return { child, url: `http://127.0.0.1:${port}${mode === "sse" ? "/sse" : "/mcp"}` }
    }),
    ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
  )

/** No annotations of a tool. */
export const noAnnotations = Context.empty()

/** effect's server of the newest revision with these registrations. */
export const modern = Effect.fnUntraced(function* (registrations: Layer.Layer<never, never, McpServer.McpServer>) {
  const port = yield* freePort
  yield* registrations.pipe(
    Layer.provide(
      McpServer.layerHttp({ name: "new", version: "1", path: "/mcp", protocols: [McpProtocol.v2026_07_28] })
    ),
    (routes) => HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }),
    Layer.provide(NodeHttpServer.layer(() => http.createServer(), { port, host: "127.0.0.1" })),
    Layer.build
  )
  return `http://127.0.0.1:${port}/mcp`
})
