/** Servers, in processes of their own, that are killed while they run a call. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { fileURLToPath } from "node:url"
import * as Support from "../support/mcp/connect.ts"

const script = fileURLToPath(new URL("../support/mcp/mortal.mjs", import.meta.url))

const freePort = Effect.promise(async () => {
  const server = createServer().listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  server.close()
  await once(server, "close")
  return typeof address === "object" && address !== null ? address.port : 0
})

/** Starts a process. The effect waits until it listens again after it has been killed. */
const started = Effect.fnUntraced(function* (port: number, log: string, ...more: ReadonlyArray<string>) {
  let child: ReturnType<typeof run> | undefined
  const run = () =>
    spawn(process.execPath, [script, String(port), log, ...more], { stdio: ["ignore", "pipe", "ignore"] })
  const start = Effect.promise(() => once((child = run()).stdout, "data"))
  yield* Effect.addFinalizer(() => Effect.sync(() => child?.kill("SIGKILL")))
  yield* start
  return start
})

layer(Support.platform, { excludeTestServices: true, timeout: "60 seconds" })("A server killed in a call", (it) => {
  const transports = [
    ["Streamable HTTP", "/mcp", {}],
    ["Streamable HTTP, revision 2026-07-28", "/mcp", { protocolVersion: "2026-07-28" }],
    ["legacy SSE", "/sse", { transport: "sse" }]
  ] as const
  for (const [name, path, settings] of transports) {
    const ways =
      name === "legacy SSE"
        ? ["silent", "stream", "half"]
        : ["silent", "headers", "halfJson", "stream", "numbered", "half"]
    it.effect(`over ${name} leaves a write with an unknown outcome, done once, however far its response got`, () =>
      Effect.gen(function* () {
        const log = yield* Support.sideFile
        const port = yield* freePort
        const restart = yield* started(port, log, ...(name === "legacy SSE" ? ["sse"] : []))
        const connection = yield* Support.connect({ url: `http://127.0.0.1:${port}${path}`, ...settings })
        yield* connection.tools
        const fates: Array<unknown> = []
        for (const way of ways) {
          const error = yield* Effect.flip(connection.callTool(way, {}))
          fates.push([way, error.reason])
          yield* restart
        }
        assert.deepStrictEqual(
          fates,
          ways.map((way) => [way, "outcome_unknown"])
        )
        assert.deepStrictEqual(Support.lines(log), ways)
      })
    )
  }

  it.effect("over standard streams leaves a write with an unknown outcome, done once", () =>
    Effect.gen(function* () {
      const side = yield* Support.sideFile
      const connection = yield* Support.hostile("", side)
      for (const name of ["writeAndDie", "die"]) {
        assert.strictEqual((yield* Effect.flip(connection.callTool(name, {}))).reason, "outcome_unknown")
      }
      assert.lengthOf(
        Support.lines(side).filter((line) => line === "written"),
        1
      )
    })
  )
})
