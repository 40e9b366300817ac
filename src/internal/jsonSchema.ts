/**
 * Reading JSON Schemas for people and models: names of types, parts by path.
 *
 * Works on any JSON Schema, our own or a foreign server's, so nothing here
 * trusts a shape: what it does not understand is `any`. References are
 * followed a bounded number of times.
 *
 * @since 0.1.0
 */
import type { JsonObject } from "./json.ts"
import { isRecord, own } from "./untrusted.ts"

/** How far references and nesting are followed before a type is just `any`. */
const maxDepth = 8

/** The schema behind `$ref`s. */
export const resolve = (schema: unknown, root: JsonObject): Record<string, unknown> => {
  let current = schema
  for (let hops = 0; hops < maxDepth; hops++) {
    if (!isRecord(current)) return {}
    const reference = own(current, "$ref")
    if (typeof reference !== "string") return current
    const name = /^#\/(?:\$defs|definitions)\/(.+)$/.exec(reference)?.[1]
    const table = own(root, "$defs") ?? own(root, "definitions")
    current = name !== undefined && isRecord(table) ? own(table, unescape(name)) : undefined
  }
  return {}
}

/** The properties of an object schema, in order. */
export const properties = (schema: Record<string, unknown>): ReadonlyArray<readonly [string, unknown]> => {
  const declared = own(schema, "properties")
  return isRecord(declared) ? Object.entries(declared) : []
}

/** The properties an object must have. */
export const required = (schema: Record<string, unknown>): ReadonlySet<string> => {
  const names = own(schema, "required")
  return new Set(Array.isArray(names) ? names.filter((name) => typeof name === "string") : [])
}

/** The name of a type for a list: `array<string>`, `object{a: integer}`, `string|null` (BP-94). */
export const typeName = (schema: unknown, root: JsonObject): string => detailed(schema, root, 0)

/** The types a value may have, without their parts: `["array", "null"]`. */
export const typeNames = (schema: unknown, root: JsonObject): ReadonlyArray<string> =>
  Array.from(new Set(plain(schema, root, 0)))

/** The schemas a path may lead to: several where a union has several members with that part. */
export const at = (schema: JsonObject, path: ReadonlyArray<PropertyKey>): ReadonlyArray<unknown> =>
  path.reduce<ReadonlyArray<unknown>>((found, key) => found.flatMap((part) => step(part, key, schema, 0)), [schema])

const unescape = (name: string) => name.replaceAll("~1", "/").replaceAll("~0", "~")

const members = (schema: Record<string, unknown>): ReadonlyArray<unknown> | undefined => {
  const any = own(schema, "anyOf") ?? own(schema, "oneOf")
  return Array.isArray(any) ? any : undefined
}

const step = (schema: unknown, key: PropertyKey, root: JsonObject, depth: number): ReadonlyArray<unknown> => {
  if (depth > maxDepth) return []
  const here = resolve(schema, root)
  const union = members(here)
  if (union !== undefined) return union.flatMap((member) => step(member, key, root, depth + 1))
  if (typeof key === "number") {
    const prefix = own(here, "prefixItems")
    const item: unknown = Array.isArray(prefix) ? prefix[key] : undefined
    return [item ?? own(here, "items")].filter((part) => part !== undefined)
  }
  const declared = own(here, "properties")
  const part = isRecord(declared) ? own(declared, String(key)) : undefined
  return [part ?? own(here, "additionalProperties")].filter(isRecord)
}

const plain = (schema: unknown, root: JsonObject, depth: number): ReadonlyArray<string> => {
  if (depth > maxDepth) return ["any"]
  const here = resolve(schema, root)
  const union = members(here)
  if (union !== undefined) {
    const names = union.filter((member) => !isSpecialNumber(member)).flatMap((member) => plain(member, root, depth + 1))
    return names.length === 0 ? ["any"] : names
  }
  if (own(here, "format") === "media") return ["media"]
  if (Object.hasOwn(here, "const")) return [literal(here["const"])]
  const values = own(here, "enum")
  if (Array.isArray(values) && values.length > 0 && values.length <= maxDepth) return values.map(literal)
  const type = own(here, "type")
  if (typeof type === "string") return [type]
  if (Array.isArray(type) && type.length > 0) return type.map(String)
  return [Object.hasOwn(here, "properties") ? "object" : "any"]
}

const detailed = (schema: unknown, root: JsonObject, depth: number): string => {
  const names = typeNames(schema, root)
  if (depth > maxDepth || names.length !== 1) return names.join("|")
  const here = resolve(schema, root)
  if (names[0] === "array") {
    const items = own(here, "items")
    const element = isRecord(items) ? detailed(items, root, depth + 1) : "any"
    return element === "any" ? "array" : `array<${element}>`
  }
  if (names[0] === "object") {
    const parts = properties(here).map(([name, part]) => `${name}: ${detailed(part, root, depth + 1)}`)
    return parts.length === 0 ? "object" : `object{${parts.join(", ")}}`
  }
  return names.join("|")
}

/** The three texts that stand for the numbers JSON cannot write; nobody needs to be told of them. */
const isSpecialNumber = (schema: unknown) => {
  const values = isRecord(schema) ? own(schema, "enum") : undefined
  return Array.isArray(values) && values.length === 3 && values.includes("NaN") && values.includes("-Infinity")
}

const literal = (value: unknown): string => JSON.stringify(value) ?? "any"
