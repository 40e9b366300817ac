/**
 * JSON: its types, parsing untrusted text, and converting any value to JSON for display.
 *
 * Only own keys count, so a member of a prototype is never read as data. Text is measured before anything is built from
 * it, and no recursion goes deeper than a given depth.
 */

import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Bounds from "./bounds.ts"
import { holdsJson } from "./redact.ts"

/** Any JSON value. */
export type Json = Schema.Json

/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json }

// ---------------------------------------------------------------- reading

/** Parses strict JSON that nests no deeper than `depth`. Fails with a clause that says what is wrong. */
export const parseJson = (text: string, depth: number): Result.Result<unknown, string> =>
  isDeeperThan(text, depth)
    ? Result.fail(`it nests deeper than ${depth} levels`)
    : Result.try({
        try: (): unknown => JSON.parse(text),
        catch: (error) => (error instanceof Error ? error.message : "it cannot be read")
      })

/** Returns whether a value is an object and not a list. */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Returns whether a value known to be JSON is an object. */
export const isJsonObject = (value: unknown): value is JsonObject => isRecord(value)

/** Returns a value known to be JSON if it is an object, else an empty object. */
export const jsonObject = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})

/** Returns the value of an own key. */
export const own = (record: Record<string, unknown>, key: string): unknown =>
  Object.hasOwn(record, key) ? record[key] : undefined

/** Returns the value if it is one of the words, else `otherwise`. */
export const oneOf = <A extends string>(words: ReadonlyArray<A>, value: unknown, otherwise: A): A =>
  words.find((word) => word === value) ?? otherwise

/** Returns whether an object has no fields, without creating a list of its keys. */
export const isEmpty = (value: object): boolean => {
  for (const _ in value) return false
  return true
}

// ---------------------------------------------------------------- measuring

/** Returns the approximate size of a value in bytes. */
export const weigh = (value: unknown): number => {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 8
  if (value instanceof Uint8Array) return value.byteLength
  let bytes = 16
  if (Array.isArray(value)) for (const item of value) bytes += weigh(item)
  else for (const key in value) bytes += 8 + weigh(Reflect.get(value, key))
  return bytes
}

/** Returns whether a JSON value nests deeper than `depth` levels. */
export const isDeeper = (value: unknown, depth: number): boolean => {
  if (typeof value !== "object" || value === null) return false
  if (depth === 0) return true
  return Object.values(value).some((item) => isDeeper(item, depth - 1))
}

/** Counts brackets outside strings: exact for JSON, harmless for any other text. */
const isDeeperThan = (text: string, limit: number): boolean => {
  let depth = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) quoted = !quoted
    else if (quoted && code === 0x5c) at++
    else if (quoted) continue
    else if (code === 0x5b || code === 0x7b) depth++
    else if (code === 0x5d || code === 0x7d) depth--
    if (depth > limit) return true
  }
  return false
}

/** Returns roughly how many characters a JSON value takes, without looking into its texts. */
export const sizeOf = (value: Json): number => {
  let size = 0
  const left: Array<Json> = [value]
  while (left.length > 0) {
    const next = left.pop()
    size += typeof next === "string" ? next.length : 1
    if (typeof next !== "object" || next === null) continue
    for (const [key, inner] of Object.entries(next)) {
      size += key.length
      left.push(inner)
    }
  }
  return size
}

// ---------------------------------------------------------------- showing

/** Returns a string as it is, null as `""`, and anything else as JSON text. */
export const textOf = (value: unknown): string => {
  if (typeof value === "string") return value
  return value === null ? "" : (JSON.stringify(value) ?? "")
}

/** Names the kind of a value for a sentence: `null`, `a list`, `a string`. */
export const kindOf = (value: unknown): string => {
  if (value === null) return "null"
  return Array.isArray(value) ? "a list" : `a ${typeof value}`
}

/** Returns the input of a protocol call as text. A native call wraps that text in an object, under `request`. */
export const requestOf = (input: Json): string => {
  const request = isJsonObject(input) ? input["request"] : input
  return typeof request === "string" ? request : JSON.stringify(input)
}

/**
 * Copies any value as JSON for logs and events, not for storing: no value is rejected.
 *
 * A value that is not JSON becomes a word in brackets, such as `[cycle]`, `[12 bytes]` or `[unreadable]`. Beyond a
 * bounded depth and size, values become `[more]`. `text` is applied to every string and key. With `isJson` false, keys
 * are field names and stay unchanged, except inside fields that hold foreign JSON.
 */
export const plain = (value: unknown, text: (text: string) => string = same, isJson = true): Json =>
  copy(value, { text, above: [], left: maxNodes }, isJson)

interface Walk {
  readonly text: (text: string) => string
  readonly above: Array<object>
  left: number
}

const maxNodes = 100_000

const same = (text: string): string => text

const copy = (value: unknown, walk: Walk, isJson: boolean): Json => {
  switch (typeof value) {
    case "string":
      return walk.text(value)
    case "boolean":
      return value
    case "number":
      return Number.isFinite(value) ? value : String(value)
    case "bigint":
      return String(value)
    case "object":
      return value === null ? null : copyNested(value, walk, isJson)
    default:
      return `[${typeof value}]`
  }
}

const copyNested = (value: object, walk: Walk, isJson: boolean): Json => {
  if (walk.above.includes(value)) return "[cycle]"
  if (walk.above.length >= Bounds.jsonDepth || walk.left-- <= 0) return "[more]"
  walk.above.push(value)
  try {
    if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`
    if (Array.isArray(value)) return value.map((item) => copy(item, walk, isJson))
    if (value instanceof Error) return walk.text(`${value.name}: ${value.message}`)
    if (value instanceof Map || value instanceof Set) return Array.from(value, (item) => copy(item, walk, isJson))
    if ("toJSON" in value && typeof value.toJSON === "function") return copy(value.toJSON(), walk, isJson)
    // `fromEntries` defines own properties, so a key such as `__proto__` is plain data.
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .map(([key, item]) => [isJson ? walk.text(key) : key, copy(item, walk, isJson || holdsJson(key))])
    )
  } catch {
    // A getter or `toJSON` may throw.
    return "[unreadable]"
  } finally {
    walk.above.pop()
  }
}
