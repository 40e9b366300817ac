/** Creates the chunks of an AI SDK UI message stream. */

import type { Content, MediaContent } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { CallOutcome } from "../../Call.ts"
import { isJsonObject, type Json, type JsonObject, plain } from "../../kit/json.ts"

/** A chunk with the names of the protocol. */
export type Chunk = JsonObject & { readonly type: string }

/** Creates a chunk, without undefined fields. */
export const chunk = (type: string, fields: { readonly [key: string]: Json | undefined } = {}): Chunk => {
  const made: { [key: string]: Json; type: string } = { type }
  for (const [key, value] of Object.entries(fields)) if (value !== undefined) made[key] = value
  return made
}

/** Creates a data part of the message. A later one with the same id replaces it. */
export const data = (name: string, id: string, value: JsonObject): Chunk => chunk(`data-${name}`, { id, data: value })

/** Returns the chunk for the outcome of a call. */
export const ofOutcome = (
  toolCallId: string,
  { error, output = [], skipped }: CallOutcome,
  wasAsked: boolean
): Chunk => {
  if (error === undefined) return chunk("tool-output-available", { toolCallId, output: outputOf(output) })
  return wasAsked && skipped === true
    ? chunk("tool-output-denied", { toolCallId })
    : chunk("tool-output-error", { toolCallId, errorText: error.message })
}

/** Returns the output of a call for a page: a single value or text by itself, otherwise all contents. */
const outputOf = (output: ReadonlyArray<Content>): Json => {
  const [first] = output
  if (output.length === 1 && first?.type === "data") return first.data
  if (output.length === 1 && first?.type === "text") return first.text
  return output.map((content) => plain(content))
}

/** Returns the sources that a reply names: pages as links, others by their titles. */
export const sourcesOf = (contents: ReadonlyArray<Content>): ReadonlyArray<Chunk> =>
  contents.flatMap((content, index) => {
    if (content.type !== "source") return []
    const { title, url } = content
    const sourceId = `${url ?? title ?? ""}#${index}`
    return url === undefined
      ? [chunk("source-document", { sourceId, mediaType: "application/octet-stream", title })]
      : [chunk("source-url", { sourceId, url, title })]
  })

/**
 * Returns the media among contents: documents on the web as sources, others as files. `urlOf` returns the address of a
 * stored medium.
 */
export const filesOf = (contents: ReadonlyArray<Content>, urlOf: (fileId: string) => string): ReadonlyArray<Chunk> =>
  contents.filter(Contents.isMedia).flatMap((medium) => {
    if (medium.type === "document" && medium.url !== undefined) {
      return [chunk("source-url", { sourceId: medium.url, url: medium.url, title: medium.filename })]
    }
    const url = addressOf(medium, urlOf)
    return url === undefined ? [] : [chunk("file", { url, mediaType: medium.mediaType ?? "application/octet-stream" })]
  })

const addressOf = ({ fileId, url }: MediaContent, urlOf: (fileId: string) => string): string | undefined =>
  url ?? (fileId === undefined ? undefined : urlOf(fileId))

/** Returns the finish reason of a message with the names of the protocol. */
export const finishReason = (reason: string | undefined): string =>
  reason !== undefined && known.has(reason) ? reason : "other"

const known: ReadonlySet<string> = new Set(["stop", "length", "content-filter", "tool-calls", "error"])

/** Returns the value of a field as text. */
export const wordOf = (from: JsonObject, key: string): string => {
  const value = from[key]
  return typeof value === "string" ? value : ""
}

/** Returns the value of a field as an object. */
export const objectOf = (from: JsonObject, key: string): JsonObject => {
  const value = from[key]
  return isJsonObject(value) ? value : {}
}
