/** The flags of `kernai mcp`. */

import { Argument, Flag } from "effect/cli"
import * as Shared from "./flags.ts"

export const mcp = Shared.text("mcp", "file", "The config of the servers (mcp.yml)").pipe(Flag.withDefault("mcp.yml"))
const { json } = Shared
export const server = Argument.String("server").pipe(Argument.withDescription("The name of the server in the config"))
const tool = Argument.String("tool").pipe(Argument.withDescription("The name that the server gives the tool"))

export const callFlags = {
  server,
  tool,
  input: Shared.optionalArgument("input", "A JSON object (default: {})"),
  mcp,
  json
}

/** The values of the flags of `call`. */
export type CallFlags = Shared.Values<typeof callFlags>

export const approveFlags = {
  server,
  tool: Shared.optionalArgument("tool", "The name of one tool (default: all that wait)"),
  mcp,
  json
}

/** The values of the flags of `approve`. */
export type ApproveFlags = Shared.Values<typeof approveFlags>

// The server never asks; its clients do.
const { yes: _, ...agentFlags } = Shared.agent

export const serveFlags = {
  http: Shared.toggle("http", "Serve HTTP instead of the standard streams; prints the address and the token"),
  host: Shared.optionalText("host", "address", "With --http: the address to listen on (127.0.0.1)"),
  port: Flag.Int("port").pipe(
    Flag.filter(
      (port) => port >= 0 && port <= 65_535,
      () => "a number from 0 to 65535"
    ),
    Flag.withMetavar("<number>"),
    Flag.withDescription("With --http: the port (0, the default, takes a free one)"),
    Shared.optional
  ),
  allowHost: Shared.text(
    "allow-host",
    "host:port",
    "With --http: another name that clients may use for this server; repeatable. 0.0.0.0 needs one"
  ).pipe(Flag.atLeast(0)),
  allowOrigin: Shared.text(
    "allow-origin",
    "origin",
    "With --http: an origin whose pages may use this server, such as https://app.example; repeatable"
  ).pipe(Flag.atLeast(0)),
  ...agentFlags,
  json: Shared.toggle("json", "With --http: print the address and the token as JSON")
}

/** The values of the flags of `serve`. */
export type ServeFlags = Shared.Values<typeof serveFlags>
