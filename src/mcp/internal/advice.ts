/**
 * What to do about what is wrong with a server.
 */

import type { ConfigInvalid, McpError } from "../../KernelError.ts"
import type { McpServer } from "../McpConfig.ts"

/** About an entry of a config that cannot be used. */
export const aboutEntry = ({ reason }: ConfigInvalid): string | undefined => {
  const variable = /\$\{([A-Z0-9_]+)\}/.exec(reason)?.[1]
  if (variable !== undefined) return `Set ${variable} in the environment, or write its value.`
  if (reason.includes("missing 'command'")) return "Write the program and its arguments, as in: command: node server.js"
  if (reason.includes("missing 'url'")) return "Write the address, as in: url: https://example.com/mcp"
  if (reason.startsWith("unknown MCP transport")) return "Use stdio, streamable_http (also written http) or sse."
  if (reason.includes("must declare at least one server")) return "Begin with 'servers:' and name each server below it."
  return undefined
}

/** About a server that cannot be used. */
export const aboutServer = (server: McpServer, { reason }: McpError): string | undefined => {
  const isLocal = server.transport === "stdio"
  switch (reason) {
    case "needs_sign_in":
      return `Sign in: kernai mcp sign-in ${server.name}. Or send a key in 'headers'.`
    case "connect":
    case "disconnected":
      return isLocal
        ? "Start it by hand: it should wait for input and print nothing."
        : "Is the server running, and are host and port right?"
    case "timeout":
      return isLocal
        ? "Start it by hand: it should wait for input and print nothing. If it is only slow, raise 'connectTimeout'."
        : "If it is only slow, raise 'connectTimeout'."
    case "version":
      return "Set 'protocolVersion' to one the server knows, or update the server."
    case "protocol":
    case "remote":
      return isLocal
        ? "This may be no MCP server."
        : "Is this the address of its MCP endpoint? Most end in /mcp, older ones in /sse."
    default:
      return undefined
  }
}
