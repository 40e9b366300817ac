/** The MCP servers that an editor gives a session. */

import * as Effect from "effect/Effect"
import type * as AcpServe from "../../acp/AcpServe.ts"
import * as McpConfig from "../../mcp/McpConfig.ts"
import { asUsage } from "../exit.ts"
import type { SessionServers } from "../mcp/servers.ts"

/** Returns the servers by their names, of which a model can call the tools. */
export const serversOf = (servers: AcpServe.Opened["mcpServers"]) =>
  servers.length === 0
    ? Effect.succeed<SessionServers>(new Map())
    : Effect.mapBoth(McpConfig.fromValue({ servers: Object.fromEntries(servers.map(entryOf)) }), {
        onFailure: (error) => asUsage(error),
        onSuccess: (config) => config.servers
      })

const entryOf = (server: AcpServe.Opened["mcpServers"][number]) => {
  const name = server.name.replace(/[^A-Za-z0-9_-]+/g, "_")
  if (!("url" in server)) {
    const { args, command, env } = server
    return [name, { transport: "stdio", command, args, env: valuesOf(env) }] as const
  }
  const { headers, type, url } = server
  return [name, { transport: type, url, headers: valuesOf(headers) }] as const
}

const valuesOf = (pairs: ReadonlyArray<{ readonly name: string; readonly value: string }>) =>
  Object.fromEntries(pairs.map(({ name, value }) => [name, value]))
