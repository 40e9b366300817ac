/**
 * Agrees on a revision of the protocol. effect's client accepts only the revision it offered itself, so this transport
 * offers another one and reports to the client that its own was accepted. All revisions with a handshake are decoded
 * with the schemas of the newest of them.
 */

import type * as McpClient from "effect/ai/McpClient"
import { McpClientError, UnsupportedError } from "effect/ai/McpClientError"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import { isRecord, type JsonObject, own } from "../../kit/json.ts"
import type { McpServer, ProtocolVersion } from "../McpConfig.ts"
import { versions } from "./serverEntry.ts"

/** The offer, and the response of the server. */
export interface Handshake {
  readonly offer: ProtocolVersion
  /** The capabilities of this client. */
  readonly announced: JsonObject
  version: ProtocolVersion | undefined
  capabilities: Readonly<Record<string, unknown>>
}

export const clientInfo = { name: "kernai", version: "0.1.0" } as const

const _meta = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": clientInfo,
  "io.modelcontextprotocol/clientCapabilities": {}
} as const

/** Returns the metadata that every request has in the revision without a handshake. */
export const requestMeta = (protocolVersion: ProtocolVersion) => (protocolVersion === "2026-07-28" ? { _meta } : {})

/** Requests notifications in the revision without a handshake, until its response ends. */
export const subscription: McpSchema.JsonRpcRequest = {
  jsonrpc: "2.0",
  id: "changes",
  method: "subscriptions/listen",
  params: {
    _meta,
    notifications: { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }
  }
}

const newestFirst: ReadonlyArray<ProtocolVersion> = versions.toReversed()

/** Returns the revisions to offer, in order: the configured one, the older ones, and finally the newest. */
export const offers = (server: McpServer): ReadonlyArray<ProtocolVersion> => {
  const older = newestFirst.slice(newestFirst.indexOf(server.protocolVersion))
  // The newest revision does not have legacy SSE.
  if (server.transport === "sse") return older.filter((version) => version !== "2026-07-28")
  return server.protocolVersion === "2026-07-28" ? older : [...older, "2026-07-28"]
}

export const make = (offer: ProtocolVersion, announced: JsonObject = {}): Handshake => ({
  offer,
  announced,
  version: undefined,
  capabilities: {}
})

/** Creates a transport whose first request agrees on a revision. */
export const over = (inner: McpClient.Transport, handshake: Handshake): McpClient.Transport => ({
  ...inner,
  request: (message, tool) => {
    if (handshake.offer === "2026-07-28") message = announcing(message, handshake.announced)
    if (message.method === "server/discover") {
      return Effect.tap(inner.request(message, tool), (response) =>
        Effect.sync(() => agree(handshake, handshake.offer, response.result))
      )
    }
    if (message.method !== "initialize") return inner.request(message, tool)
    const offer = {
      ...message,
      params: { ...message.params, protocolVersion: handshake.offer, capabilities: handshake.announced }
    }
    return Effect.flatMap(inner.request(offer, tool), (response) => {
      const result: unknown = response.result
      if (!isRecord(result)) return Effect.succeed(response)
      const version = newestFirst.find((known) => known === own(result, "protocolVersion"))
      if (version === undefined || version === "2026-07-28") return Effect.fail(unknownVersion)
      agree(handshake, version, result)
      const { protocolVersion } = inner.protocol
      const agreed: McpSchema.JsonRpcResponse = {
        jsonrpc: "2.0",
        id: message.id,
        result: { ...result, protocolVersion }
      }
      return Effect.succeed(agreed)
    })
  }
})

/** Adds the capabilities of the client, which the revision without a handshake sends in each request. */
const announcing = (message: McpSchema.JsonRpcRequest, announced: JsonObject): McpSchema.JsonRpcRequest => {
  const meta = message.params?.["_meta"]
  return {
    ...message,
    params: {
      ...message.params,
      _meta: { ...(isRecord(meta) ? meta : {}), "io.modelcontextprotocol/clientCapabilities": announced }
    }
  }
}

const agree = (handshake: Handshake, version: ProtocolVersion, result: unknown): void => {
  const capabilities = isRecord(result) ? own(result, "capabilities") : undefined
  handshake.version = version
  handshake.capabilities = isRecord(capabilities) ? capabilities : {}
}

/** Returns true if a server that failed like this may accept an older revision. */
export const declines = ({ reason }: McpClientError): boolean =>
  reason._tag === "UnsupportedError" ||
  (reason._tag === "ProtocolError" && reason.code !== undefined) ||
  (reason._tag === "HttpError" && reason.status === 400)

const unknownVersion = new McpClientError({
  reason: new UnsupportedError({ description: "the server speaks no revision of the protocol that kernai knows" })
})
