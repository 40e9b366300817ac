/** Reads the definition of a tool: whole for pins; bounded, and without hidden characters, for display. */

import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Block from "../../Block.ts"
import { invisible, quote, shorten, visible } from "../../kit/text.ts"
import { sha256 } from "../../kit/sha256.ts"
import type { LeaveOut } from "./listing.ts"
import { isJsonObject, isRecord, type Json, type JsonObject, jsonObject, own, plain } from "../../kit/json.ts"

/** A tool as one server defines it. */
export interface Definition {
  readonly tool: McpSchema.Tool
  /** The canonical text, equal for equal definitions whatever the order of their keys. */
  readonly text: string
  readonly hash: string
  /** The schemas and annotations as they are pinned. */
  readonly parts: JsonObject
}

export const make = (tool: McpSchema.Tool): Effect.Effect<Definition> => {
  const text = textOf(tool)
  return Effect.map(sha256(text), (hash) => ({ tool, text, hash, parts: partsOf(tool) }))
}

export const textOf = (tool: McpSchema.Tool): string => JSON.stringify(sorted(partsOf(tool)))

const partsOf = ({ annotations, description, inputSchema, name, outputSchema, title }: McpSchema.Tool): JsonObject =>
  jsonObject(plain({ annotations, description, inputSchema, name, outputSchema, title }))

const sorted = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isJsonObject(value)) return value
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, item]) => [key, sorted(item)]))
}

/** Returns the page that shows a tool's results, if it names one. */
export const pageOf = ({ _meta }: McpSchema.Tool): string | undefined => {
  if (!isRecord(_meta)) return undefined
  const ui = own(_meta, "ui")
  const uri = isRecord(ui) ? own(ui, "resourceUri") : own(_meta, "ui/resourceUri")
  return typeof uri === "string" && isPage(uri) ? uri : undefined
}

export const isPage = (uri: string): boolean => /^ui:\/\/\S+$/.test(uri)

/** Returns a text on one line, without hidden characters, which neither opens nor closes a block. */
export const line = (text: string, limit: number): string =>
  Block.escape(visible(shorten(text.trim(), limit).replace(/\s+/g, " ")))

/** Returns a schema whose descriptions are safe to read. */
export const readable = (schema: Json, limit: number): Json => {
  if (Array.isArray(schema)) return schema.map((item) => readable(item, limit))
  if (!isJsonObject(schema)) return schema
  const entries = Object.entries(schema).map(([key, item]) => {
    if (typeof item !== "string" || !explanations.has(key)) return [key, readable(item, limit)]
    return [key, Block.escape(shorten(item, limit).split("\n").map(visible).join("\n"))]
  })
  return Object.fromEntries(entries)
}

const explanations: ReadonlySet<string> = new Set(["description", "title", "$comment"])

/** Returns the JSON of a value, without hidden characters. */
export const json = (value: unknown): string =>
  JSON.stringify(value).replace(invisible, (char) =>
    Array.from({ length: char.length }, (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")
  )

/** Returns the first names of a list for a sentence, and the number of the others. */
export const firstOf = (names: ReadonlyArray<string>): string => {
  const first = names.slice(0, 5).map((name) => quote(shorten(name, 60)))
  return `${first.join(", ")}${names.length > 5 ? ` and ${names.length - 5} more` : ""}`
}

/** Returns the tools whose schemas refer to no other document, since nothing is fetched to understand a tool. */
export const usableTools = Effect.fnUntraced(function* (tools: ReadonlyArray<McpSchema.Tool>, leaveOut: LeaveOut) {
  const isUsable = (tool: McpSchema.Tool) => isSelfContained(tool.inputSchema) && isSelfContained(tool.outputSchema)
  const usable = tools.filter(isUsable)
  const others = tools.filter((tool) => !usable.includes(tool)).map(({ name }) => name)
  if (others.length > 0) yield* leaveOut("tools", others, "their schemas refer to other documents")
  return usable
})

/** Returns false for a schema that refers to other documents, or is too large to search. */
const isSelfContained = (schema: unknown): boolean => {
  const waiting = [schema]
  for (let seen = 0; waiting.length > 0; seen++) {
    if (seen > maxNodes) return false
    const node = waiting.pop()
    if (Array.isArray(node)) for (const item of node) waiting.push(item)
    if (!isRecord(node)) continue
    for (const [key, value] of Object.entries(node)) {
      if (references.has(key) && typeof value === "string" && !value.startsWith("#")) return false
      if (!examples.has(key)) waiting.push(value)
    }
  }
  return true
}

const maxNodes = 100_000
const references: ReadonlySet<string> = new Set(["$ref", "$dynamicRef", "$recursiveRef"])
// Keywords whose values are data, not schemas.
const examples: ReadonlySet<string> = new Set(["const", "enum", "default", "examples"])
