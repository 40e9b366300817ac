/**
 * What a server answered, as contents and as text (BP-177, W-15).
 *
 * Text stays text, pictures and sounds become media, structured content becomes
 * data, and an answer that says it is an error becomes one. What kernai does not
 * know is named, never guessed.
 */

import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import * as Content from "../../Content.ts"
import { isJsonObject, isRecord, type Json, own, plain } from "../../internal/base/json.ts"
import { mediumOf } from "../../internal/store/medium.ts"
import * as Media from "../../Media.ts"
import { isPage } from "./definition.ts"

/** An answer for the model. */
export interface Rendered {
  readonly content: ReadonlyArray<Content.Content>
  /** The server says that the call failed. */
  readonly isError: boolean
}

/** Renders whatever a server answered. */
export const render = (value: unknown): Rendered => {
  const record = isRecord(value) ? value : undefined
  const parts = joined(itemsOf(value).map(contentOf))
  const structured = record === undefined ? undefined : own(record, "structuredContent")
  const content = structured === undefined ? parts : withStructured(parts, plain(structured))
  if (record === undefined || own(record, "isError") !== true) return { content, isError: false }
  const media = content.filter((part) => part.type !== "text")
  return { content: [Content.error("McpToolError", textOf(content)), ...media], isError: true }
}

/** The texts of contents, a line each. */
export const textOf = (content: ReadonlyArray<Content.Content>): string =>
  content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n")

/** What was read of a resource, as if a tool had answered it. */
export const resource = (value: unknown): Rendered => {
  const contents = isRecord(value) ? own(value, "contents") : undefined
  return Array.isArray(contents) ? { content: joined(contents.map(embedded)), isError: false } : render(value)
}

/** The messages of a prompt: who speaks, and what. */
export const prompt = (value: unknown): Rendered => {
  const messages = isRecord(value) ? own(value, "messages") : undefined
  if (!Array.isArray(messages)) return render(value)
  const parts = messages.flatMap((message: unknown) => {
    const role = isRecord(message) ? own(message, "role") : undefined
    const said = contentOf(isRecord(message) ? own(message, "content") : message)
    const speaker = typeof role === "string" ? `${role}: ` : ""
    return said.type === "text" ? [Content.text(`${speaker}${said.text}`)] : [Content.text(speaker.trim()), said]
  })
  return { content: joined(parts), isError: false }
}

const itemsOf = (value: unknown): ReadonlyArray<unknown> => {
  if (value === null || value === undefined) return []
  if (Array.isArray(value)) return value
  if (!isRecord(value)) return [String(value)]
  const content = own(value, "content")
  if (Array.isArray(content)) return content
  return [own(value, "type") === "text" ? value : json(value)]
}

const contentOf = (item: unknown): Content.Content => {
  if (typeof item === "string") return Content.text(item)
  if (!isRecord(item)) return Content.text(json(item))
  const type = own(item, "type")
  const text = own(item, "text")
  switch (type) {
    case "text":
      return Content.text(said(text))
    case undefined:
    case null:
      return Content.text(text === undefined ? json(item) : said(text))
    case "image":
    case "audio":
      return medium(own(item, "data"), own(item, "mimeType"), type) ?? omitted(type)
    case "resource":
      return isRecord(own(item, "resource")) ? embedded(own(item, "resource")) : omitted(type)
    case "resource_link":
      return typeof own(item, "uri") === "string" ? link(item) : omitted(type)
    default:
      return omitted(type)
  }
}

/** What stands where a text belongs: a server may write a number there. */
const said = (text: unknown): string =>
  typeof text === "string" ? text : text === undefined || text === null ? "" : json(text)

const embedded = (item: unknown): Content.Content => {
  if (!isRecord(item)) return contentOf(item)
  const uri = own(item, "uri")
  // A page is for the user: its source is not for the model (CP-5).
  if (typeof uri === "string" && isPage(uri)) {
    const type = own(item, "mimeType")
    return Content.uiResource(uri, typeof type === "string" ? { mimeType: type } : {})
  }
  const blob = own(item, "blob")
  if (blob === undefined) return contentOf(item)
  return medium(blob, own(item, "mimeType"), undefined) ?? omitted("resource")
}

// effect's client has decoded the bytes; a raw answer still holds them as base64.
const medium = (data: unknown, mimeType: unknown, kind: "image" | "audio" | undefined): Content.Content | undefined => {
  const bytes = typeof data === "string" ? Result.getOrUndefined(Base64.decode(data)) : data
  if (!(bytes instanceof Uint8Array)) return undefined
  const type = typeof mimeType === "string" ? mimeType : undefined
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

// Servers repeat structured content as text for clients that do not know it, or wrap their text for those that do.
const withStructured = (parts: ReadonlyArray<Content.Content>, structured: Json): ReadonlyArray<Content.Content> => {
  const text = JSON.stringify(structured)
  const rest = parts.filter((part) => part.type !== "text" || canonical(part.text) !== text)
  if (!isJsonObject(structured)) return [...rest, Content.text(text)]
  const [only, ...others] = Object.values(structured)
  const isWrapped = others.length === 0 && rest.some((part) => part.type === "text" && part.text === only)
  return isWrapped ? rest : [...rest, Content.data(structured)]
}

const canonical = (text: string): string | undefined => {
  if (!text.startsWith("{") && !text.startsWith("[")) return text
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return undefined
  }
}

/** Neighbouring texts as one, a line each. */
const joined = (parts: ReadonlyArray<Content.Content>): ReadonlyArray<Content.Content> => {
  const out: Array<Content.Content> = []
  for (const part of parts) {
    const last = out.at(-1)
    if (part.type === "text" && last?.type === "text") out[out.length - 1] = Content.text(`${last.text}\n${part.text}`)
    else out.push(part)
  }
  return out
}
