/**
 * Reads the parts of a JSON Schema for its grammar: merged schemas, types, bounds and formats.
 */

import type { Bounds } from "./numberRules.ts"
import { isRecord, own } from "../../../kit/json.ts"

/** A schema or a part of one, from anywhere. */
export type Part = Record<string, unknown>

/** The keywords that constrain the members of a union they stand beside. */
export const constrains: ReadonlySet<string> = new Set([
  "type",
  "enum",
  "const",
  "properties",
  "required",
  "additionalProperties",
  "items",
  "prefixItems",
  "pattern",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems"
])

/** Merges schemas that must all fit: keeps the tighter bounds, all members, and the first value of other keywords. */
export const merge = (parts: ReadonlyArray<Part>): Part => {
  const [only] = parts
  if (
    parts.length === 1 &&
    only !== undefined &&
    own(only, "anyOf") === undefined &&
    own(only, "oneOf") === undefined
  ) {
    return only
  }
  const merged = new Map<string, unknown>()
  for (const part of parts) {
    for (const [key, value] of Object.entries(part)) {
      if (key === "allOf" || key === "anyOf" || key === "oneOf") continue
      merged.set(key, merged.has(key) ? both(key, merged.get(key), value) : value)
    }
  }
  return Object.fromEntries(merged)
}

const both = (key: string, a: unknown, b: unknown): unknown => {
  if (typeof a === "number" && typeof b === "number") {
    return key.startsWith("max") || key === "exclusiveMaximum" ? Math.min(a, b) : Math.max(a, b)
  }
  if (key === "properties" && isRecord(a) && isRecord(b)) {
    return Object.fromEntries(
      [...new Set([...Object.keys(a), ...Object.keys(b)])].map((name) => {
        const [x, y] = [own(a, name), own(b, name)]
        return [name, x === undefined ? y : y === undefined ? x : { allOf: [x, y] }]
      })
    )
  }
  if (key === "required" && Array.isArray(a) && Array.isArray(b)) return [...a, ...b]
  if (key === "type" && a === "number" && b === "integer") return b
  if (key === "additionalProperties") return a === false || b === false ? false : isRecord(a) ? a : b
  return a
}

/** Returns the type of a schema that does not name one. */
export const impliedType = (schema: Part): string | undefined => {
  if (Object.hasOwn(schema, "properties") || Object.hasOwn(schema, "additionalProperties")) return "object"
  return Object.hasOwn(schema, "items") || Object.hasOwn(schema, "prefixItems") ? "array" : undefined
}

/** Returns the bounds of a number. */
export const boundsOf = (schema: Part): Bounds => ({
  minimum: finite(schema, "minimum"),
  maximum: finite(schema, "maximum"),
  exclusiveMinimum: finite(schema, "exclusiveMinimum"),
  exclusiveMaximum: finite(schema, "exclusiveMaximum")
})

const finite = (schema: Part, key: string): number | undefined => {
  const value = own(schema, key)
  return typeof value === "number" && Number.isFinite(value) ? value : undefined
}

/** Returns a count of characters, items or members, if the schema has one. */
export const count = (schema: Part, key: string): number | undefined => {
  const value = finite(schema, key)
  return value === undefined || value < 0 ? undefined : Math.ceil(value)
}

const digits = (count: number) => `\\d{${count}}`
const date = `${digits(4)}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\\d|2[0-8])`
const time = `(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d{1,9})?`

/** Patterns of the known formats, by name. */
export const formats: ReadonlyMap<string, string> = new Map([
  ["date", `^${date}$`],
  ["time", `^${time}Z$`],
  ["date-time", `^${date}T${time}Z$`],
  ["byte", "^(?:[0-9A-Za-z+/]{4})*(?:[0-9A-Za-z+/][AQgw]==|[0-9A-Za-z+/]{2}[AEIMQUYcgkosw048]=)?$"],
  ["uuid", "^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"]
])
