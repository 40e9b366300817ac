/**
 * Writes JSON Schemas as types of TypeScript, for models that write code.
 *
 * Works on any JSON Schema, including those of foreign servers: an unknown part is `unknown`, and so is a part that is
 * too deep or one too many.
 */

import { isRecord, type JsonObject, own } from "../../kit/json.ts"
import { properties, required, resolve } from "../../kit/jsonSchema.ts"
import { flat, shorten } from "../../kit/text.ts"

/** Returns the type of values that a JSON Schema describes. */
export const typeText = (schema: JsonObject): string => typeOf(schema, { root: schema, left: mostParts }, 0)

/** Returns a description as a comment that nothing in it can end. */
export const comment = (description: string): string => `/** ${flat(description).replaceAll("*/", "* /")} */`

/** Returns whether a name can be used for a variable or an unquoted field. */
export const isIdentifier = (name: string): boolean => /^[A-Za-z_$][\w$]*$/.test(name)

const mostParts = 300
const mostLevels = 8
const longestLiteral = 100

interface Walk {
  readonly root: JsonObject
  left: number
}

const typeOf = (schema: unknown, walk: Walk, depth: number): string => {
  if (depth > mostLevels || walk.left-- <= 0) return "unknown"
  const here = resolve(schema, walk.root)
  const union = own(here, "anyOf") ?? own(here, "oneOf")
  if (Array.isArray(union)) return unionOf(union.map((member) => typeOf(member, walk, depth + 1)))
  if (Object.hasOwn(here, "const")) return literal(here["const"])
  const values = own(here, "enum")
  if (Array.isArray(values)) return unionOf(values.map(literal))
  const type = own(here, "type")
  if (Array.isArray(type)) return unionOf(type.map((one) => typeOf({ ...here, type: one }, walk, depth + 1)))
  return named(type, here, walk, depth)
}

const named = (type: unknown, here: Record<string, unknown>, walk: Walk, depth: number): string => {
  switch (type) {
    case "string":
    case "boolean":
    case "null":
      return type
    case "integer":
    case "number":
      return "number"
    case "array":
      return arrayOf(here, walk, depth)
    default:
      return type === "object" || Object.hasOwn(here, "properties") ? objectOf(here, walk, depth) : "unknown"
  }
}

const arrayOf = (here: Record<string, unknown>, walk: Walk, depth: number): string => {
  const prefix = own(here, "prefixItems")
  const items = own(here, "items")
  if (Array.isArray(prefix)) {
    const parts = prefix.map((part) => typeOf(part, walk, depth + 1))
    const rest = isRecord(items) ? [`...${elements(typeOf(items, walk, depth + 1))}`] : []
    return `[${[...parts, ...rest].join(", ")}]`
  }
  return elements(isRecord(items) ? typeOf(items, walk, depth + 1) : "unknown")
}

const elements = (type: string): string => (/^[\w$]+$/.test(type) ? `${type}[]` : `Array<${type}>`)

const objectOf = (here: Record<string, unknown>, walk: Walk, depth: number): string => {
  const needed = required(here)
  const fields = properties(here).map(([name, part]) => {
    const type = typeOf(part, walk, depth + 1)
    return `${isIdentifier(name) ? name : JSON.stringify(name)}${needed.has(name) ? "" : "?"}: ${type}`
  })
  if (fields.length > 0) return `{ ${fields.join("; ")} }`
  const rest = own(here, "additionalProperties")
  return isRecord(rest)
    ? `Record<string, ${typeOf(rest, walk, depth + 1)}>`
    : Object.hasOwn(here, "properties") || rest === false
      ? "{}"
      : "object"
}

const unionOf = (types: ReadonlyArray<string>): string => [...new Set(types)].join(" | ") || "unknown"

const literal = (value: unknown): string => shorten(JSON.stringify(value) ?? "unknown", longestLiteral)
