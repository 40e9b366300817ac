/**
 * Makes the results of calls, resources and prompts readable for effect's client, which refuses a whole result for one
 * odd part of it.
 *
 * A call has run by then, so everything readable is kept. A block that its schema refuses is repaired, or becomes a
 * text that names what is missing.
 */

import type * as McpClient from "effect/ai/McpClient"
import * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Content from "../../Content.ts"
import { isRecord, own } from "../../kit/json.ts"
import { deep } from "../../kit/redact.ts"
import * as Render from "./renderResult.ts"

interface Fields {
  readonly [key: string]: unknown
}

/** Creates a transport whose results are readable. `clean` removes keys from the results of failed calls. */
export const over = (inner: McpClient.Transport, clean: (text: string) => string): McpClient.Transport => ({
  ...inner,
  request: (message, tool) => {
    const read = readers.get(message.method)
    const answered = inner.request(message, tool)
    if (read === undefined) return answered
    return Effect.map(answered, (response) => {
      if (response.error !== undefined) return response
      const result = read(response.result)
      return { ...response, result: result["isError"] === true ? deep(result, clean) : result }
    })
  }
})

/** Returns the result of a call in the form of the protocol, with everything that can be read in the given one. */
export const readable = (result: unknown): Fields => {
  const { _meta, content, isError, structuredContent, ...others } = isResult(result) ? result : { content: result }
  const isEmpty = content === undefined && structuredContent === undefined
  const { resultType: _, ...unknown } = others
  // A result of an unknown form is shown as it is.
  const shown = isEmpty && Object.keys(unknown).length > 0 ? unknown : content
  return {
    ...others,
    content: itemsOf(shown).map(blockOf),
    ...(isRecord(_meta) ? { _meta } : {}),
    ...(structuredContent === undefined || structuredContent === null ? {} : { structuredContent }),
    ...(isError === true || isError === "true" ? { isError: true } : {})
  }
}

/** Returns the contents of a resource in the form of the protocol. */
export const readableResource = (result: unknown): Fields => {
  const { _meta, contents, ...others } = isRecord(result) ? result : { contents: result }
  return { ...others, contents: itemsOf(contents).map(resourceContents), ...(isRecord(_meta) ? { _meta } : {}) }
}

/** Returns the messages of a prompt in the form of the protocol. One with several blocks becomes several messages. */
export const readablePrompt = (result: unknown): Fields => {
  const { _meta, description, messages, ...others } = isRecord(result) ? result : { messages: result }
  return {
    ...others,
    messages: itemsOf(messages).flatMap((message) => {
      const isMessage = isRecord(message) && own(message, "content") !== undefined
      const role = isRecord(message) && own(message, "role") === "assistant" ? "assistant" : "user"
      return itemsOf(isMessage ? message["content"] : message).map((item) => ({ role, content: blockOf(item) }))
    }),
    ...(typeof description === "string" ? { description } : {}),
    ...(isRecord(_meta) ? { _meta } : {})
  }
}

const readers: ReadonlyMap<string, (result: unknown) => Fields> = new Map([
  ["tools/call", readable],
  ["resources/read", readableResource],
  ["prompts/get", readablePrompt]
])

/** Returns true for an object that is not itself a block. */
const isResult = (value: unknown): value is Record<string, unknown> =>
  isRecord(value) && (own(value, "content") !== undefined || typeof own(value, "type") !== "string")

const itemsOf = (content: unknown): ReadonlyArray<unknown> => {
  if (content === undefined || content === null) return []
  return Array.isArray(content) ? content : [content]
}

const decode = Schema.decodeUnknownOption(McpSchema.ContentBlock)

const decodeContents = Schema.decodeUnknownOption(
  Schema.Union([McpSchema.TextResourceContents, McpSchema.BlobResourceContents])
)

/** Returns contents of a resource that the schemas of the protocol accept. */
const resourceContents = (item: unknown): unknown => {
  if (Option.isSome(decodeContents(item))) return item
  const uri = isRecord(item) ? own(item, "uri") : undefined
  const named = typeof uri === "string" ? uri : ""
  const repaired = isRecord(item) ? { ...resourceOf(item), uri: named } : undefined
  if (repaired !== undefined && Option.isSome(decodeContents(repaired))) return repaired
  const block = isRecord(item) && own(item, "blob") !== undefined ? { type: "resource" } : item
  return { uri: named, text: Content.toText(Render.contentOf(block)) }
}

/** Returns a block that the schemas of the protocol accept. */
const blockOf = (item: unknown): unknown => {
  if (isRecord(item) && isPlainText(item)) return item
  if (Option.isSome(decode(item))) return item
  const repaired = isRecord(item) ? repair(item) : undefined
  if (repaired !== undefined && Option.isSome(decode(repaired))) return repaired
  return textBlock(Content.toText(Render.contentOf(item)))
}

// Most blocks are texts, which need no schema.
const isPlainText = (item: Fields): boolean =>
  item["type"] === "text" && typeof item["text"] === "string" && Object.keys(item).length === 2

const textBlock = (text: string) => ({ type: "text", text })

/** Returns the fields of a block that carry its content, in the form of the protocol. */
const repair = (item: Record<string, unknown>): Fields | undefined => {
  const type = own(item, "type")
  switch (type) {
    case "text":
      return typeof item["text"] === "string" ? textBlock(item["text"]) : undefined
    case "image":
    case "audio":
      return { type, ...bytesOf(own(item, "data"), own(item, "mimeType")) }
    case "resource": {
      const resource = own(item, "resource")
      return isRecord(resource) ? { type, resource: resourceOf(resource) } : undefined
    }
    case "resource_link": {
      const { mimeType, name, uri } = item
      return { type, uri, name: name ?? uri, ...(typeof mimeType === "string" ? { mimeType } : {}) }
    }
    default:
      return undefined
  }
}

const resourceOf = (resource: Record<string, unknown>): Fields => {
  const uri = own(resource, "uri") ?? ""
  const text = own(resource, "text")
  const mimeType = own(resource, "mimeType")
  if (typeof text === "string") return { uri, text, ...(typeof mimeType === "string" ? { mimeType } : {}) }
  const { data, mimeType: type } = bytesOf(own(resource, "blob"), mimeType)
  return { uri, blob: data, ...(type === "" ? {} : { mimeType: type }) }
}

/** Returns bytes in the alphabet of base64. Servers also send data URLs, line breaks, base64url, and no padding. */
const bytesOf = (data: unknown, mimeType: unknown): { readonly data: unknown; readonly mimeType: string } => {
  const given = typeof mimeType === "string" ? mimeType : ""
  if (typeof data !== "string") return { data, mimeType: given }
  const [, type, encoded = data] = /^data:([^;,]*)[^,]*;base64,([^]*)$/.exec(data) ?? []
  const plain = encoded.replace(/\s+/g, "").replaceAll("-", "+").replaceAll("_", "/").replace(/=+$/, "")
  const padded = plain.padEnd(Math.ceil(plain.length / 4) * 4, "=")
  return { data: padded, mimeType: given === "" ? (type ?? "") : given }
}
