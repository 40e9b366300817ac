/** The messages of the A2A protocol: Schemas that accept versions 1.0 and 0.3, and encoders for either version. */

import * as Base64 from "effect/encoding/Base64"
import * as Schema from "effect/Schema"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { isJsonObject, type Json, type JsonObject } from "../../kit/json.ts"

/** The versions of the protocol that this client speaks. */
export type Version = "1.0" | "0.3"

/** A field that some servers omit and others write as null. */
const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

// ---------------------------------------------------------------- the card

/** A card. Version 0.3 has one main address, and additional ones. */
export const AgentCard = Schema.Struct({
  name: Schema.String,
  description: optional(Schema.String),
  version: optional(Schema.String),
  supportedInterfaces: optional(
    Schema.Array(
      Schema.Struct({
        url: Schema.String,
        protocolBinding: Schema.String,
        protocolVersion: optional(Schema.String),
        tenant: optional(Schema.String)
      })
    )
  ),
  protocolVersion: optional(Schema.String),
  url: optional(Schema.String),
  preferredTransport: optional(Schema.String),
  additionalInterfaces: optional(Schema.Array(Schema.Struct({ url: Schema.String, transport: Schema.String }))),
  capabilities: optional(Schema.Struct({ streaming: optional(Schema.Boolean) })),
  skills: optional(
    Schema.Array(Schema.Struct({ id: Schema.String, name: Schema.String, description: optional(Schema.String) }))
  )
})

/** The address, version and tenant of an agent's interface. */
export interface Endpoint {
  readonly url: string
  readonly version: Version
  readonly tenant: string
}

/** Returns the first JSON-RPC interface of a card in a version that this client supports, the newer version first. */
export const endpointOf = (card: typeof AgentCard.Type): Endpoint | undefined => {
  const { additionalInterfaces, preferredTransport, protocolVersion, supportedInterfaces, url } = card
  const declared = (supportedInterfaces ?? []).map((one) => ({
    url: one.url,
    binding: one.protocolBinding,
    version: one.protocolVersion ?? "1.0",
    tenant: one.tenant ?? ""
  }))
  const older = [{ url, transport: preferredTransport ?? "JSONRPC" }, ...(additionalInterfaces ?? [])].map((one) => ({
    url: one.url,
    binding: one.transport,
    version: protocolVersion ?? "0.3",
    tenant: ""
  }))
  const spoken = [...declared, ...older].filter(({ binding }) => binding.toUpperCase() === "JSONRPC")
  for (const version of ["1.0", "0.3"] as const) {
    const found = spoken.find((one) => isOf(one.version, version))
    if (typeof found?.url === "string") return { url: found.url, version, tenant: found.tenant }
  }
  return undefined
}

/** Returns true if a version is compatible: minor versions of 1, and patches of 0.3. */
export const isOf = (written: string, version: Version): boolean =>
  version === "1.0" ? /^1(?:\.|$)/.test(written) : /^0\.3(?:\.|$)/.test(written)

// ---------------------------------------------------------------- responses

const Part = Schema.Struct({
  text: optional(Schema.String),
  raw: optional(Schema.String),
  url: optional(Schema.String),
  data: Schema.optionalKey(Schema.Json),
  mediaType: optional(Schema.String),
  filename: optional(Schema.String),
  file: optional(
    Schema.Struct({
      bytes: optional(Schema.String),
      uri: optional(Schema.String),
      mimeType: optional(Schema.String),
      name: optional(Schema.String)
    })
  )
})

const Message = Schema.Struct({
  contextId: optional(Schema.String),
  taskId: optional(Schema.String),
  parts: optional(Schema.Array(Part))
})

const Status = Schema.Struct({ state: Schema.String, message: optional(Message) })

const Artifact = Schema.Struct({ artifactId: Schema.String, parts: optional(Schema.Array(Part)) })

/** A task. */
export const Task = Schema.Struct({
  id: Schema.String,
  contextId: optional(Schema.String),
  status: Status,
  artifacts: optional(Schema.Array(Artifact))
})

/** The reply to a message, or one event of a stream. */
export const Update = Schema.Struct({
  task: optional(Task),
  message: optional(Message),
  statusUpdate: optional(Schema.Struct({ taskId: Schema.String, contextId: optional(Schema.String), status: Status })),
  artifactUpdate: optional(
    Schema.Struct({
      taskId: Schema.String,
      contextId: optional(Schema.String),
      artifact: Artifact,
      append: optional(Schema.Boolean)
    })
  )
})

/** The reply to a message, or one event of a stream. */
export type Update = typeof Update.Type

/** The fields of version 1.0 for each `kind` of version 0.3. */
const kinds: ReadonlyMap<unknown, string> = new Map([
  ["task", "task"],
  ["message", "message"],
  ["status-update", "statusUpdate"],
  ["artifact-update", "artifactUpdate"]
])

/** Converts an update to version 1.0. */
export const updateOf = (result: Json): Json => {
  const field = isJsonObject(result) ? kinds.get(result["kind"]) : undefined
  return field === undefined ? result : { [field]: result }
}

/** A reply of JSON-RPC. */
export const RpcReply = Schema.Struct({
  result: Schema.optionalKey(Schema.Json),
  error: optional(Schema.Struct({ code: Schema.Finite, message: optional(Schema.String) }))
})

/** One part of a message or an artifact. `size` is its approximate size in UTF-16 units. */
export type Piece = { readonly size: number } & (
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "data"; readonly data: Json }
  | { readonly type: "file"; readonly bytes: string; readonly mediaType: string; readonly name: string }
  | { readonly type: "link"; readonly url: string; readonly name: string }
)

/** Returns the parts of a message or an artifact, without empty ones. */
export const piecesOf = (parts: ReadonlyArray<typeof Part.Type> | null | undefined): ReadonlyArray<Piece> =>
  (parts ?? []).flatMap((part): ReadonlyArray<Piece> => {
    const { data, file, text } = part
    if (typeof text === "string") return [{ type: "text", text, size: overhead + text.length }]
    const name = part.filename ?? file?.name ?? ""
    const bytes = part.raw ?? file?.bytes
    if (typeof bytes === "string") {
      const mediaType = part.mediaType ?? file?.mimeType ?? "application/octet-stream"
      return [{ type: "file", bytes, mediaType, name, size: overhead + bytes.length }]
    }
    const url = part.url ?? file?.uri
    if (typeof url === "string") return [{ type: "link", url, name, size: overhead + url.length }]
    return data === undefined ? [] : [{ type: "data", data, size: overhead + JSON.stringify(data).length }]
  })

/** The minimum size of a part, which limits the number of parts. */
export const overhead = 1024

// ---------------------------------------------------------------- requests

/** The methods that this client calls, by their names in version 1.0. */
export type Method = "SendMessage" | "SendStreamingMessage" | "GetTask" | "CancelTask" | "SubscribeToTask"

const olderMethods: { readonly [M in Method]: string } = {
  SendMessage: "message/send",
  SendStreamingMessage: "message/stream",
  GetTask: "tasks/get",
  CancelTask: "tasks/cancel",
  SubscribeToTask: "tasks/resubscribe"
}

/** Returns the name of a method in a version. */
export const methodOf = (method: Method, version: Version): string =>
  version === "1.0" ? method : olderMethods[method]

/** A message to an agent. */
export interface Sent {
  readonly messageId: string
  readonly contextId: string | undefined
  readonly taskId: string | undefined
  readonly content: ReadonlyArray<Content>
}

/** Creates the parameters of a message. The call returns as soon as its task is known. */
export const paramsOf = ({ contextId, messageId, taskId, content }: Sent, version: Version): JsonObject => {
  const isNew = version === "1.0"
  return {
    message: {
      ...(isNew ? {} : { kind: "message" }),
      messageId,
      role: isNew ? "ROLE_USER" : "user",
      ...(contextId === undefined ? {} : { contextId }),
      ...(taskId === undefined ? {} : { taskId }),
      parts: content.map(isNew ? partOf : olderPartOf)
    },
    configuration: isNew ? { returnImmediately: true } : { blocking: false }
  }
}

const partOf = (content: Content): JsonObject => {
  if (content.type === "data") return { data: content.data }
  if (!Contents.isMedia(content)) return { text: Contents.toText(content) }
  const { data, mediaType, url } = content
  const type = mediaType === undefined ? {} : { mediaType }
  if (data !== undefined) return { raw: Base64.encode(data), ...type }
  return url === undefined ? { text: Contents.placeholder(content) } : { url, ...type }
}

const olderPartOf = (content: Content): JsonObject => {
  const { data, mediaType, raw, text, url } = partOf(content)
  if (text !== undefined) return { kind: "text", text }
  if (data !== undefined) return { kind: "data", data }
  const type = mediaType === undefined ? {} : { mimeType: mediaType }
  return { kind: "file", file: raw === undefined ? { uri: url ?? "", ...type } : { bytes: raw, ...type } }
}
