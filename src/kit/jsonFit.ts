/**
 * Compares JSON values with a JSON Schema: types, choices, bounds and parts. Other keywords are ignored, and so are
 * patterns, since a foreign server may have written them.
 */

import * as Equal from "effect/Equal"
import * as Numbers from "effect/Number"
import { type Json, type JsonObject, isJsonObject, own } from "./json.ts"
import { properties, required, resolve, typeNames } from "./jsonSchema.ts"

/** Returns a sentence about the first part of a value that does not fit a schema, or undefined if the value fits. */
export const misfit = (value: Json, schema: JsonObject): string | undefined =>
  misfitAt("", value, schema, { root: schema, left: maxComparisons, depth: 0 })

/** Bounds the work, because references multiply: a schema may compare each part of a value many times, or without end. */
const maxComparisons = 10_000

/** Bounds how deep comparisons nest, in parts of the value and members of the schema. */
const maxDepth = 200

interface Walk {
  readonly root: JsonObject
  left: number
  depth: number
}

type Schema = Record<string, unknown>

const misfitAt = (path: string, value: Json, part: unknown, walk: Walk): string | undefined => {
  if (walk.depth >= maxDepth) walk.left = 0
  if (walk.left === 0) return `Expected ${fewer}`
  walk.left--
  walk.depth++
  const reason = misfitOf(path, value, part, walk)
  walk.depth--
  return walk.left === 0 ? `Expected ${fewer}` : reason
}

const fewer = "a schema with fewer parts"

const misfitOf = (path: string, value: Json, part: unknown, walk: Walk): string | undefined => {
  const schema = resolve(part, walk.root)
  const expected = part === false ? "never" : expectedOf(path, value, schema, walk)
  if (expected !== undefined) return `Expected ${expected}${path === "" ? "" : ` at ${path}`}`
  for (const member of listOf(schema, "allOf") ?? []) {
    const reason = misfitAt(path, value, member, walk)
    if (reason !== undefined) return reason
  }
  if (Array.isArray(value)) return misfitItem(path, value, schema, walk)
  return isJsonObject(value) ? misfitProperty(path, value, schema, walk) : undefined
}

const misfitItem = (path: string, items: ReadonlyArray<Json>, schema: Schema, walk: Walk): string | undefined => {
  const first = listOf(schema, "prefixItems") ?? []
  for (const [index, item] of items.entries()) {
    const reason = misfitAt(`${path}[${index}]`, item, first[index] ?? own(schema, "items"), walk)
    if (reason !== undefined) return reason
  }
  return undefined
}

const misfitProperty = (path: string, value: JsonObject, schema: Schema, walk: Walk): string | undefined => {
  const at = (name: string) => `${path}[${JSON.stringify(name)}]`
  for (const name of required(schema)) if (!Object.hasOwn(value, name)) return `Missing key at ${at(name)}`
  const declared = new Map(properties(schema))
  const others = own(schema, "additionalProperties")
  for (const [name, inner] of Object.entries(value)) {
    // Keys that a schema does not declare are ignored, even if it forbids them.
    const part = declared.has(name) ? declared.get(name) : others === false ? undefined : others
    const reason = misfitAt(at(name), inner, part, walk)
    if (reason !== undefined) return reason
  }
  return undefined
}

/** Returns what a schema expects of a value, apart from the parts of the value, if the value is something else. */
const expectedOf = (path: string, value: Json, schema: Schema, walk: Walk): string | undefined => {
  const fits = (part: unknown) => misfitAt(path, value, part, walk) === undefined
  const [any, one] = [listOf(schema, "anyOf"), listOf(schema, "oneOf")]
  const fitting = one?.filter(fits).length
  if (walk.left === 0) return fewer
  if (!isOfType(value, schema) || !isChoice(value, schema) || any?.some(fits) === false || fitting === 0) {
    const integer = typeof value === "number" ? "an integer" : "number"
    const names = typeNames(schema, walk.root)
    return names.map((name) => (name === "integer" ? integer : name)).join(" | ")
  }
  if (fitting !== undefined && fitting > 1) return "exactly one member to match"
  return expectedSize(value, schema)
}

const isOfType = (value: Json, schema: Schema): boolean => {
  const type = own(schema, "type")
  const names = Array.isArray(type) ? type : [type]
  const kind = value === null ? "null" : Array.isArray(value) ? "array" : typeof value
  return type === undefined || names.some((name) => (name === "integer" ? Number.isSafeInteger(value) : name === kind))
}

const isChoice = (value: Json, schema: Schema): boolean => {
  const choices = Object.hasOwn(schema, "const") ? [schema["const"]] : listOf(schema, "enum")
  return choices === undefined || choices.some((choice) => Equal.equals(choice, value))
}

const expectedSize = (value: Json, schema: Schema): string | undefined => {
  for (const { fits, keyword, sizeOf, words } of bounds) {
    const [size, limit] = [sizeOf(value), own(schema, keyword)]
    if (size !== undefined && typeof limit === "number" && !fits(size, limit)) return words(limit)
  }
  if (!Array.isArray(value) || own(schema, "uniqueItems") !== true) return undefined
  const items = new Set(value.map((item) => JSON.stringify(item)))
  return items.size === value.length ? undefined : "an array with unique items"
}

/** A keyword that bounds the size of values of one kind. */
interface Bound {
  readonly keyword: string
  readonly sizeOf: (value: Json) => number | undefined
  readonly fits: (size: number, limit: number) => boolean
  readonly words: (limit: number) => string
}

const number = (value: Json) => (typeof value === "number" ? value : undefined)
const codePoints = (value: Json) => (typeof value === "string" ? [...value].length : undefined)
const length = (value: Json) => (Array.isArray(value) ? value.length : undefined)

const bounds: ReadonlyArray<Bound> = [
  {
    keyword: "minimum",
    sizeOf: number,
    fits: (size, limit) => size >= limit,
    words: (limit) => `a value greater than or equal to ${limit}`
  },
  {
    keyword: "maximum",
    sizeOf: number,
    fits: (size, limit) => size <= limit,
    words: (limit) => `a value less than or equal to ${limit}`
  },
  {
    keyword: "exclusiveMinimum",
    sizeOf: number,
    fits: (size, limit) => size > limit,
    words: (limit) => `a value greater than ${limit}`
  },
  {
    keyword: "exclusiveMaximum",
    sizeOf: number,
    fits: (size, limit) => size < limit,
    words: (limit) => `a value less than ${limit}`
  },
  {
    keyword: "multipleOf",
    sizeOf: number,
    fits: (size, limit) => limit === 0 || Numbers.remainder(size, limit) === 0,
    words: (limit) => `a value that is a multiple of ${limit}`
  },
  {
    keyword: "minLength",
    sizeOf: codePoints,
    fits: (size, limit) => size >= limit,
    words: (limit) => `a string with at least ${limit} code points`
  },
  {
    keyword: "maxLength",
    sizeOf: codePoints,
    fits: (size, limit) => size <= limit,
    words: (limit) => `a string with at most ${limit} code points`
  },
  {
    keyword: "minItems",
    sizeOf: length,
    fits: (size, limit) => size >= limit,
    words: (limit) => `a value with a length of at least ${limit}`
  },
  {
    keyword: "maxItems",
    sizeOf: length,
    fits: (size, limit) => size <= limit,
    words: (limit) => `a value with a length of at most ${limit}`
  }
]

const listOf = (schema: Schema, keyword: string): ReadonlyArray<unknown> | undefined => {
  const list = own(schema, keyword)
  return Array.isArray(list) ? list : undefined
}
