/**
 * Agreeing on a revision of the protocol.
 *
 * A client offers one and the server answers with the one it will speak, so
 * most old servers are met in one step. effect's client insists on what it
 * offered: the transport here offers what we choose and tells the client that
 * it was accepted. All revisions that have a handshake are read with the
 * newest one's schemas, which take everything the older ones say.
 */

import type * as McpClient from "effect/ai/McpClient"
import { McpClientError, UnsupportedError } from "effect/ai/McpClientError"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import { isRecord, own } from "../../internal/base/json.ts"
import type { McpServer, ProtocolVersion } from "../McpConfig.ts"

/** What was offered, and what came of it. */
export interface Handshake {
  readonly offer: ProtocolVersion
  version: ProtocolVersion | undefined
  capabilities: Readonly<Record<string, unknown>>
}

/** What kernai calls itself. */
export const clientInfo = { name: "kernai", version: "0.1.0" } as const

/** What every request carries since the revision without a handshake. */
export const requestMeta = (protocolVersion: ProtocolVersion): { readonly _meta?: Readonly<Record<string, unknown>> } =>
  protocolVersion === "2026-07-28"
    ? {
        _meta: {
          "io.modelcontextprotocol/protocolVersion": protocolVersion,
          "io.modelcontextprotocol/clientInfo": clientInfo,
          "io.modelcontextprotocol/clientCapabilities": {}
        }
      }
    : {}

/** Since then changes are told to those who ask for them, as long as the answer to this stays open. */
export const subscription: McpSchema.JsonRpcRequest = {
  jsonrpc: "2.0",
  id: "changes",
  method: "subscriptions/listen",
  params: {
    ...requestMeta("2026-07-28"),
    notifications: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
  }
}

/** All revisions, newest first. */
const ladder: ReadonlyArray<ProtocolVersion> = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]

/** What to offer, in order: the revision to begin with and the older ones, and when all are declined the newest. */
export const offers = (server: McpServer): ReadonlyArray<ProtocolVersion> => {
  const older = ladder.slice(ladder.indexOf(server.protocolVersion))
  // The newest never knew the older HTTP transport.
  if (server.transport === "sse") return older.filter((version) => version !== "2026-07-28")
  return server.protocolVersion === "2026-07-28" ? older : [...older, "2026-07-28"]
}

/** Nothing is agreed on yet; this revision is offered. */
export const make = (offer: ProtocolVersion): Handshake => ({ offer, version: undefined, capabilities: {} })

/** A transport whose first request agrees on a revision. */
export const over = (inner: McpClient.Transport, handshake: Handshake): McpClient.Transport => ({
  ...inner,
  request: (message, tool) => {
    if (message.method === "server/discover") {
      return Effect.tap(inner.request(message, tool), (response) =>
        Effect.sync(() => {
          handshake.version = handshake.offer
          handshake.capabilities = capabilitiesOf(response.result)
        })
      )
    }
    if (message.method !== "initialize") return inner.request(message, tool)
    const offer = { ...message, params: { ...message.params, protocolVersion: handshake.offer } }
    return Effect.flatMap(inner.request(offer, tool), (response) => {
      const result: unknown = response.result
      if (!isRecord(result)) return Effect.succeed(response)
      const version = ladder.find((known) => known === own(result, "protocolVersion"))
      if (version === undefined || version === "2026-07-28") return Effect.fail(unknownVersion)
      handshake.version = version
      handshake.capabilities = capabilitiesOf(result)
      const agreed: McpSchema.JsonRpcResponse = {
        jsonrpc: "2.0",
        id: message.id,
        result: { ...result, protocolVersion: inner.protocol.protocolVersion }
      }
      return Effect.succeed(agreed)
    })
  }
})

/** May an older revision be welcome where this one was not? */
export const declines = (error: McpClientError): boolean => {
  switch (error.reason._tag) {
    case "UnsupportedError":
      return true
    case "ProtocolError":
      return error.reason.code !== undefined
    case "HttpError":
      return error.reason.status === 400
    default:
      return false
  }
}

const unknownVersion = new McpClientError({
  reason: new UnsupportedError({ description: "the server speaks no revision of the protocol that kernai knows" })
})

const capabilitiesOf = (result: unknown): Readonly<Record<string, unknown>> => {
  const capabilities = isRecord(result) ? own(result, "capabilities") : undefined
  return isRecord(capabilities) ? capabilities : {}
}
