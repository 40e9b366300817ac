/** A process that holds a connection to a server that does not want to end: `node host.ts <side file>`. */
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import { fileURLToPath } from "node:url"
import * as Limits from "../../../src/Limits.ts"
import { McpConfig, McpConnection } from "../../../src/mcp/index.ts"

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
  Effect.provideService(Limits.Limits, { ...Limits.defaults, cleanUpMs: 400 }),
  Effect.provide(Layer.merge(NodeServices.layer, FetchHttpClient.layer)),
  NodeRuntime.runMain
)
