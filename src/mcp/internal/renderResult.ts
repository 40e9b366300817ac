/** Renders answers of a server as contents. Unknown kinds are named, never guessed. */

import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import * as Content from "../../Content.ts"
import { isJsonObject, isRecord, type Json, own, plain } from "../../kit/json.ts"
import { mediumOf } from "../../store-kit/Medium.ts"
import * as Media from "../../Media.ts"
import type { Answer } from "../McpProtocol.ts"
import { isPage } from "./definition.ts"

/** Renders the result of a tool call, or any other value. */
export const render = (value: unknown): Answer => {
  const parts = joined(itemsOf(value).map(contentOf))
  const structured = field(value, "structuredContent")
  const content = structured === undefined ? parts : withStructured(parts, plain(structured))
  if (field(value, "isError") !== true) return { content, isError: false }
  const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")
  const others = content.filter((part) => part.type !== "text")
  return { content: [Content.error("McpToolError", text), ...others], isError: true }
}

export const resource = (value: unknown): Answer => {
  const contents = field(value, "contents")
  return Array.isArray(contents) ? { content: joined(contents.map(embedded)), isError: false } : render(value)
}

/** Renders the messages of a prompt, each after its role. */
export const prompt = (value: unknown): Answer => {
  const messages = field(value, "messages")
  if (!Array.isArray(messages)) return render(value)
  const parts = messages.flatMap((message: unknown) => {
    const role = field(message, "role")
    const part = contentOf(isRecord(message) ? own(message, "content") : message)
    const label = typeof role === "string" ? `${role}: ` : ""
    return part.type === "text" ? [Content.text(`${label}${part.text}`)] : [Content.text(label.trim()), part]
  })
  return { content: joined(parts), isError: false }
}

const field = (value: unknown, key: string): unknown => (isRecord(value) ? own(value, key) : undefined)

const itemsOf = (value: unknown): ReadonlyArray<unknown> => {
  if (value === null || value === undefined) return []
  if (Array.isArray(value)) return value
  if (!isRecord(value)) return [String(value)]
  const content = own(value, "content")
  if (Array.isArray(content)) return content
  return [own(value, "type") === "text" ? value : json(value)]
}

/** Renders one block. */
export const contentOf = (item: unknown): Content.Content => {
  if (typeof item === "string") return Content.text(item)
  if (!isRecord(item)) return Content.text(json(item))
  const type = own(item, "type")
  const text = own(item, "text")
  switch (type) {
    case "text":
      return Content.text(textOf(text))
    case undefined:
    case null:
      return Content.text(text === undefined ? json(item) : textOf(text))
    case "image":
    case "audio":
      return medium(own(item, "data"), own(item, "mimeType"), type) ?? omitted(type)
    case "resource":
      return isRecord(own(item, "resource")) ? embedded(own(item, "resource")) : omitted(type)
    case "resource_link":
      return typeof own(item, "uri") === "string" ? link(item) : omitted(type)
    default:
      return typeof text === "string" ? Content.text(text) : omitted(type)
  }
}

/** Returns a value as text, since a server may write a number in place of a text. */
const textOf = (value: unknown): string => {
  if (typeof value === "string") return value
  return value === undefined || value === null ? "" : json(value)
}

const embedded = (item: unknown): Content.Content => {
  const uri = field(item, "uri")
  const mimeType = field(item, "mimeType")
  // The source of a page is for the user, not for the model.
  if (typeof uri === "string" && isPage(uri)) {
    return Content.uiResource(uri, typeof mimeType === "string" ? { mimeType } : {})
  }
  const blob = field(item, "blob")
  return blob === undefined ? contentOf(item) : (medium(blob, mimeType, undefined) ?? omitted("resource"))
}

// effect's client has decoded the bytes. Other answers still hold them as base64.
const medium = (data: unknown, mimeType: unknown, kind: "image" | "audio" | undefined): Content.Content | undefined => {
  const bytes = typeof data === "string" ? Result.getOrUndefined(Base64.decode(data)) : data
  if (!(bytes instanceof Uint8Array) || (kind !== undefined && bytes.byteLength === 0)) return undefined
  const type = typeof mimeType === "string" && mimeType !== "" ? mimeType : undefined
  const source = { data: bytes, ...(type === undefined ? {} : { mediaType: type }) }
  return mediumOf(kind ?? Media.kindOf(type ?? "application/octet-stream"), source)
}

const link = (item: Record<string, unknown>): Content.Content => {
  const [name, uri, description] = ["name", "uri", "description"].map((key) => own(item, key))
  const about = typeof description === "string" && description !== "" ? `: ${description}` : ""
  return Content.text(`${typeof name === "string" ? name : "resource"} (${String(uri)})${about}`)
}

const omitted = (type: unknown) => Content.text(`[non-text content omitted: type=${String(type).slice(0, 100)}]`)

const json = (value: unknown): string => JSON.stringify(plain(value))

/** Adds structured content, unless a text holds the same: servers repeat it as text, or wrap their text in it. */
const withStructured = (parts: ReadonlyArray<Content.Content>, structured: Json): ReadonlyArray<Content.Content> => {
  const text = JSON.stringify(structured)
  const rest = parts.filter((part) => part.type !== "text" || canonical(part.text) !== text)
  if (!isJsonObject(structured)) return [...rest, Content.text(text)]
  const [only, ...others] = Object.values(structured)
  const isWrapped = others.length === 0 && rest.some((part) => part.type === "text" && part.text === only)
  return isWrapped ? rest : [...rest, Content.data(structured)]
}

const canonical = (text: string): string => {
  const json = Result.try(() => JSON.stringify(JSON.parse(text)))
  return Result.isSuccess(json) ? json.success : text
}

/** Joins adjacent texts, each on its own line. */
const joined = (parts: ReadonlyArray<Content.Content>): ReadonlyArray<Content.Content> => {
  const out: Array<Content.Content> = []
  for (const part of parts) {
    const last = out.at(-1)
    if (part.type === "text" && last?.type === "text") out[out.length - 1] = Content.text(`${last.text}\n${part.text}`)
    else out.push(part)
  }
  return out
}
