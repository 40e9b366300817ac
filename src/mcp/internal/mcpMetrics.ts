/**
 * Measures requests and sessions by OpenTelemetry's conventions for MCP clients.
 *
 * The conventions are still in development. These are from `1.42.0-dev`; only this file needs to change with them.
 */

import { isMcpClientError, type McpClientError } from "effect/ai/McpClientError"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { isRecord, own } from "../../kit/json.ts"
import { isHttp } from "./serverEntry.ts"
import type { McpServer } from "../McpConfig.ts"

const seconds = (name: string, description: string) =>
  Metric.histogram(name, {
    description,
    boundaries: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300],
    attributes: { unit: "s" }
  })

const operation = seconds("mcp.client.operation.duration", "Duration of an MCP request until its answer.")
const session = seconds("mcp.client.session.duration", "Duration of an MCP session.")

/** Measures the requests of one server. */
export type Measure = <A, R>(
  method: string,
  request: Effect.Effect<A, McpClientError, R>,
  tool?: string
) => Effect.Effect<A, McpClientError, R>

export const make =
  (server: McpServer): Measure =>
  (method, request, tool) =>
    Effect.flatMap(Clock.monotonicTimeNanos, (started) =>
      Effect.onExit(request, (exit) =>
        record(operation, started, {
          ...placeOf(server),
          "mcp.method.name": method,
          ...(tool === undefined ? {} : { "gen_ai.tool.name": tool }),
          ...failureOf(exit)
        })
      )
    )

/** Measures a session from now until its scope closes. */
export const inSession = (server: McpServer, protocolVersion: string): Effect.Effect<void, never, Scope.Scope> =>
  Effect.flatMap(Clock.monotonicTimeNanos, (started) =>
    Effect.addFinalizer(() => record(session, started, { ...placeOf(server), "mcp.protocol.version": protocolVersion }))
  )

const record = (metric: Metric.Histogram<number>, started: bigint, attributes: { readonly [name: string]: string }) =>
  Effect.flatMap(Clock.monotonicTimeNanos, (now) =>
    Metric.update(Metric.withAttributes(metric, attributes), Number(now - started) / 1e9)
  )

const placeOf = (server: McpServer): { readonly [name: string]: string } => {
  if (!isHttp(server)) return server.transport === "stdio" ? { "network.transport": "pipe" } : {}
  const { hostname, port, protocol } = new URL(server.url)
  const usual = protocol === "https:" ? "443" : "80"
  return { "network.transport": "tcp", "server.address": hostname, "server.port": port === "" ? usual : port }
}

const failureOf = (exit: Exit.Exit<unknown, McpClientError>): { readonly "error.type"?: string } => {
  if (Exit.isFailure(exit)) return { "error.type": typeOf(exit.cause) }
  // A tool that fails is still a successful response.
  return isRecord(exit.value) && own(exit.value, "isError") === true ? { "error.type": "tool_error" } : {}
}

const typeOf = (cause: Cause.Cause<McpClientError>): string => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause))
  if (!isMcpClientError(error)) return Cause.hasInterrupts(cause) ? "cancelled" : "_OTHER"
  const { reason } = error
  if (reason._tag === "HttpError") return String(reason.status)
  return reason._tag === "ProtocolError" && reason.code !== undefined ? String(reason.code) : reason._tag
}
