/** A process that holds a connection to a server that does not want to end: `node host.ts <side file>`. */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import { fileURLToPath } from "node:url"
import * as Limits from "../../../src/Limits.ts"
import * as McpConfig from "../../../src/mcp/McpConfig.ts"
import * as McpConnection from "../../../src/mcp/McpConnection.ts"

const hostile = fileURLToPath(new URL("hostile.mjs", import.meta.url))
const [side = ""] = process.argv.slice(2)

Effect.gen(function* () {
  const config = yield* McpConfig.fromValue({
    servers: { it: { command: process.execPath, args: [hostile, "stubborn", side] } }
  })
  for (const server of config.servers.values()) yield* (yield* McpConnection.make(server)).info
  return yield* Effect.never
}).pipe(
  Effect.scoped,
  Effect.provideService(Limits.Limits, Limits.make({ cleanUpTimeout: 400 })),
  Effect.provide(Layer.merge(NodeServices.layer, FetchHttpClient.layer)),
  NodeRuntime.runMain
)
