/**
 * What a server says about a tool: as it is held to, and as it is shown.
 *
 * A definition is pinned whole, so that no word of it can change unseen. What a
 * model and a person read of it is bounded and shows what would hide (S-8);
 * names and values inside a schema stay as they are, because calls need them.
 */

import type * as McpSchema from "effect/ai/McpSchema"
import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import * as Block from "../../Block.ts"
import { shorten, visible } from "../../internal/base/text.ts"
import { isJsonObject, isRecord, type Json, type JsonObject, jsonObject, own, plain } from "../../internal/base/json.ts"

/** A tool as one server defines it. */
export interface Definition {
  readonly tool: McpSchema.Tool
  /** The same text for the same definition, whatever the order of its keys. */
  readonly text: string
  readonly hash: string
  /** The schemas and annotations as they are pinned: nothing else of them is ever shown. */
  readonly parts: JsonObject
}

/** Reads a definition. */
export const make = (tool: McpSchema.Tool): Effect.Effect<Definition> => {
  const parts = partsOf(tool)
  const text = textOf(tool)
  return Effect.map(sha256(text), (hash) => ({ tool, text, hash, parts }))
}

/** A definition as one text; two of the same text are the same. */
export const textOf = (tool: McpSchema.Tool): string => {
  const known = texts.get(tool)
  if (known !== undefined) return known
  const text = JSON.stringify(sorted(partsOf(tool)))
  texts.set(tool, text)
  return text
}

// Every call asks again, of the same list.
const texts = new WeakMap<McpSchema.Tool, string>()

/** SHA-256 of a text, as hex. */
export const sha256 = (text: string): Effect.Effect<string> =>
  Digest.Digest.use((digest) => digest.digestHex(Digest.sha256, new TextEncoder().encode(text))).pipe(
    Effect.provide(Digest.layerWebCrypto)
  )

/** The description for a listing. */
export const describe = (tool: McpSchema.Tool, limit: number): string =>
  line(tool.description ?? tool.title ?? "", limit)

/** A text on one line that can neither open nor close a block, and in which nothing hides. */
export const line = (text: string, limit: number): string =>
  Block.escape(visible(shorten(text.trim(), limit).replace(/\s+/g, " ")))

/** A schema whose explanations are safe to read. */
export const readable = (schema: Json, limit: number): Json => {
  if (Array.isArray(schema)) return schema.map((item) => readable(item, limit))
  if (!isJsonObject(schema)) return schema
  return Object.fromEntries(
    Object.entries(schema).map(([key, item]) => [
      key,
      typeof item === "string" && explanations.has(key) ? explanation(item, limit) : readable(item, limit)
    ])
  )
}

/** JSON that decodes to the same, and in which nothing hides. */
export const json = (value: unknown): string =>
  JSON.stringify(value).replace(hidden, (char) =>
    Array.from({ length: char.length }, (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")
  )

/** The page that shows a tool's results, if it names one (CP-5). */
export const pageOf = (tool: McpSchema.Tool): string | undefined => {
  const ui = isRecord(tool._meta) ? own(tool._meta, "ui") : undefined
  const uri = isRecord(ui)
    ? own(ui, "resourceUri")
    : isRecord(tool._meta)
      ? own(tool._meta, "ui/resourceUri")
      : undefined
  return typeof uri === "string" && isPage(uri) ? uri : undefined
}

/** Does an address name a page? */
export const isPage = (uri: string): boolean => /^ui:\/\/\S+$/.test(uri)

const partsOf = ({ annotations, description, inputSchema, name, outputSchema, title }: McpSchema.Tool): JsonObject =>
  jsonObject(plain({ annotations, description, inputSchema, name, outputSchema, title }))

const explanation = (text: string, limit: number): string =>
  Block.escape(shorten(text, limit).split("\n").map(visible).join("\n"))

const explanations: ReadonlySet<string> = new Set(["description", "title", "$comment"])

const hidden = /[\p{Cf}\p{Zl}\p{Zp}\u{e0100}-\u{e01ef}]/gu

/** The keys of objects in one order, at any depth. */
const sorted = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isJsonObject(value)) return value
  return Object.fromEntries(
    Object.keys(value)
      .toSorted()
      .map((key) => [key, sorted(value[key] ?? null)])
  )
}
