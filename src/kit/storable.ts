/**
 * JSON that stores accept: it survives a round trip through JSON text unchanged.
 *
 * Anything else (undefined, NaN, a Date, bytes, a cycle) is rejected, and so is JSON that nests too deep to be parsed
 * again. A checksum in the text detects damage, so a damaged text is never read as a different state.
 */

import * as Schema from "effect/Schema"
import * as json from "./json.ts"

/** Nesting depth of stored JSON: above any limit in use, and far from a stack overflow. */
const depth = 1_000

/** Bounds for reading stored values. Their writer applied its own limits; these only protect memory and the stack. */
export const bounds = {
  jsonDepth: depth,
  blockDepth: depth / 2,
  jsonNodes: 10_000_000
}

/** Not JSON (0), JSON (1), or JSON with a negative zero (2), which `JSON.stringify` would write as zero. */
export type Grade = 0 | 1 | 2

/** Grades a whole value. */
export const grade = (value: unknown, left: number = depth): Grade => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return 1
    case "number":
      return Object.is(value, -0) ? 2 : Number.isFinite(value) ? 1 : 0
    case "object":
      return value === null
        ? 1
        : left === 0
          ? 0
          : Array.isArray(value)
            ? gradeList(value, left)
            : gradeRecord(value, left)
    default:
      return 0
  }
}

/**
 * Returns whether a value is JSON of plain objects, which `JSON.stringify` writes unchanged. Cheaper than `grade`, which
 * says the same of such values.
 */
export const isPlain = (value: unknown, left: number = depth): boolean => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return true
    case "number":
      return Number.isFinite(value) && !Object.is(value, -0)
    case "object":
      return (
        value === null || (left > 0 && (Array.isArray(value) ? isPlainList(value, left) : isPlainObject(value, left)))
      )
    default:
      return false
  }
}

/** Returns whether the fields of a plain object are JSON as in `isPlain`, or undefined. */
export const hasPlainFields = (value: object, left: number): boolean => {
  if (!isRecord(value)) return false
  for (const field of Object.values(value)) {
    if (typeof field !== "string" && field !== undefined && !isPlain(field, left)) return false
  }
  return true
}

const isPlainList = (list: ReadonlyArray<unknown>, left: number): boolean => {
  // By index, because iteration skips holes.
  for (let index = 0; index < list.length; index++) if (!isPlain(list[index], left - 1)) return false
  return true
}

const isPlainObject = (value: object, left: number): boolean => {
  if (!isRecord(value)) return false
  for (const field of Object.values(value)) if (!isPlain(field, left - 1)) return false
  return true
}

const isRecord = (value: object): value is { readonly [key: string]: unknown } =>
  Object.getPrototypeOf(value) === Object.prototype

/** Writes JSON like `JSON.stringify`, but keeps negative zeros. */
export const stringify = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(stringify).join(",")}]`
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value)
      .map(([key, field]) => `${JSON.stringify(key)}:${stringify(field)}`)
      .join(",")}}`
  }
  return Object.is(value, -0) ? "-0" : JSON.stringify(value)
}

/** Any JSON. */
export const Json: Schema.Codec<json.Json> = Schema.declare((value): value is json.Json => grade(value) > 0, {
  expected: "a JSON value"
})

/** A JSON object. */
export const JsonObject: Schema.Codec<json.JsonObject> = Schema.declare(
  (value): value is json.JsonObject => json.isJsonObject(value) && grade(value) > 0,
  { expected: "a JSON object" }
)

/**
 * Adds a checksum to a text, as the first field.
 *
 * The text is a JSON object, or a list that begins with one. The checksum covers the text without it.
 */
export const seal = (text: string): string => {
  const start = startOf(text)
  return `${text.slice(0, start)}"sum":"${hex(crc(text, start, start))}",${text.slice(start)}`
}

/** Returns whether a text has a checksum, right or wrong. */
export const isSealed = (text: string): boolean => {
  const start = startOf(text)
  return text.startsWith('"sum":"', start) && text.startsWith('",', start + 15)
}

/** Returns whether the checksum of a text is right, wrong, or absent, as in texts written by hand. */
export const check = (text: string): "right" | "wrong" | "none" => {
  if (!isSealed(text)) return "none"
  const start = startOf(text)
  return text.slice(start + 7, start + 15) === hex(crc(text, start, start + 17)) ? "right" : "wrong"
}

const gradeList = (list: ReadonlyArray<unknown>, left: number): Grade => {
  let worst: Grade = 1
  // By index, because iteration skips holes.
  for (let index = 0; index < list.length; index++) {
    const found = grade(list[index], left - 1)
    if (found === 0) return 0
    if (found === 2) worst = 2
  }
  return worst
}

const gradeRecord = (record: object, left: number): Grade => {
  const prototype: unknown = Object.getPrototypeOf(record)
  if (prototype !== Object.prototype && prototype !== null) return 0
  if (typeof Reflect.get(record, "toJSON") === "function") return 0
  let worst: Grade = 1
  for (const key in record) {
    const found = grade(Reflect.get(record, key), left - 1)
    if (found === 0) return 0
    if (found === 2) worst = 2
  }
  return worst
}

const startOf = (text: string): number => (text.startsWith("[") ? 2 : 1)

const hex = (sum: number): string => (sum >>> 0).toString(16).padStart(8, "0")

/** Returns the CRC-32 of a text without the part between two positions, over the non-zero bytes of its UTF-16 units. */
const crc = (text: string, start: number, end: number): number => {
  let sum = -1
  for (let index = 0; index < text.length; index++) {
    if (index === start) index = end
    const unit = text.charCodeAt(index)
    sum = (table[(sum ^ unit) & 255] ?? 0) ^ (sum >>> 8)
    if (unit > 255) sum = (table[(sum ^ (unit >>> 8)) & 255] ?? 0) ^ (sum >>> 8)
  }
  return ~sum
}

const table = Int32Array.from({ length: 256 }, (_, byte) => {
  let entry = byte
  for (let bit = 0; bit < 8; bit++) entry = entry & 1 ? (entry >>> 1) ^ 0xedb88320 : entry >>> 1
  return entry
})
