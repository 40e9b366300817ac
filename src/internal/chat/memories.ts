/**
 * Checks shared by all memories.
 */

import * as Equal from "effect/Equal"
import type { Query } from "./memoryQuery.ts"
import type { JsonObject } from "../base/json.ts"
import * as Storable from "../base/storable.ts"
import { wordsOf } from "../base/text.ts"

/** A parsed query. */
export interface Asked {
  readonly words: ReadonlyArray<string>
  readonly limit: number
  readonly minScore: number
}

/** More words make a search slower, not better. */
const maxWords = 64
const maxLimit = 1_000

/** Parses a query. */
export const asked = ({ limit = 5, minScore = 0, query }: Query): Asked => ({
  words: wordsOf(query.slice(0, 16_384), maxWords),
  limit: limit > 0 ? Math.min(Math.ceil(limit), maxLimit) : 0,
  minScore
})

/** Tells whether metadata has all fields of a filter, with the same values. */
export const passes = (metadata: JsonObject, filter: JsonObject | undefined): boolean =>
  filter === undefined ||
  Object.entries(filter).every(([key, value]) => Object.hasOwn(metadata, key) && Equal.equals(metadata[key], value))

/** Tells whether a text has more than so many bytes. */
export const isLonger = (text: string, bytes: number): boolean =>
  text.length > bytes || (text.length * 3 > bytes && new TextEncoder().encode(text).byteLength > bytes)

/** Tells whether metadata can be kept as JSON. */
export const isStorable = (metadata: JsonObject): boolean => Storable.grade(metadata) > 0

/** JSON as one text, whatever the order its fields were written in. */
export const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (typeof value !== "object" || value === null) return Storable.stringify(value)
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join(",")}}`
}
