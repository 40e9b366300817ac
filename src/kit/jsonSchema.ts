/**
 * Reads JSON Schemas for people and models: names of types, and parts by path. Also marks the dates in the JSON Schema
 * of a Schema.
 *
 * Works on any JSON Schema, including those of foreign servers, so no shape is assumed: an unknown part is `any`.
 * References are followed a bounded number of times.
 */

import * as DateTime from "effect/DateTime"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaParser from "effect/SchemaParser"
import { type JsonObject, isRecord, jsonObject, own } from "./json.ts"
import { shorten } from "./text.ts"

/** Follows `$ref`s to the schema they lead to. */
export const resolve = (schema: unknown, root: JsonObject): Record<string, unknown> => {
  let current = schema
  for (let hops = 0; hops < maxDepth; hops++) {
    if (!isRecord(current)) return {}
    const reference = own(current, "$ref")
    if (typeof reference !== "string") return current
    const name = definitionOf(reference)
    const table = own(root, "$defs") ?? own(root, "definitions")
    current = name !== undefined && isRecord(table) ? own(table, name) : undefined
  }
  return {}
}

/**
 * Adds the definitions that a schema refers to, and no others. Definitions that `resolve` has inlined are not repeated.
 */
export const withDefinitions = (
  schema: Record<string, unknown>,
  definitions: Record<string, unknown>
): Record<string, unknown> => {
  const used = new Set<string>()
  const parts = new Set<unknown>([schema])
  for (const part of parts) {
    if (typeof part !== "object" || part === null) continue
    for (const inner of Object.values(part)) parts.add(inner)
    const reference: unknown = Reflect.get(part, "$ref")
    const name = typeof reference === "string" ? definitionOf(reference) : undefined
    if (name === undefined) continue
    used.add(name)
    parts.add(own(definitions, name))
  }
  const $defs = Object.fromEntries(Object.entries(definitions).filter(([name]) => used.has(name)))
  return used.size === 0 ? schema : { ...schema, $defs }
}

/** Returns the properties of an object schema, in order. */
export const properties = (schema: Record<string, unknown>): ReadonlyArray<readonly [string, unknown]> => {
  const declared = own(schema, "properties")
  return isRecord(declared) ? Object.entries(declared) : []
}

/** Returns the names of the required properties. */
export const required = (schema: Record<string, unknown>): ReadonlySet<string> => {
  const names = own(schema, "required")
  return new Set(Array.isArray(names) ? names.filter((name) => typeof name === "string") : [])
}

/** Names a type for a listing: `array<string>`, `object{a: integer}`, `string|null`. */
export const typeName = (schema: unknown, root: JsonObject): string => detailed(schema, startWalk(root), 0)

/** Returns the types a value may have, without their parts: `["array", "null"]`. */
export const typeNames = (schema: unknown, root: JsonObject): ReadonlyArray<string> => distinct(schema, startWalk(root))

/** Returns the schemas that a path may lead to. There are several if members of a union share that part. */
export const at = (schema: JsonObject, path: ReadonlyArray<PropertyKey>): ReadonlyArray<unknown> => {
  const walk = startWalk(schema)
  return path.reduce<ReadonlyArray<unknown>>(
    (found, key) => found.flatMap((part) => step(part, key, walk, 0)),
    [schema]
  )
}

/** The title of a string that is a media id, which models see as the name of its type. */
export const mediaId = "media id"

/** Adds `format: "date-time"` to every string that is read as an instant, such as a `Schema.Date`. */
export const withDates = (schema: Schema.Constraint, { definitions, schema: root }: Document): Document => {
  const copy = structuredClone({ schema: root, definitions })
  mark(schema.ast, copy.schema, { definitions: copy.definitions, seen: new Set() })
  return copy
}

/** Returns the JSON Schema of a value. Some servers require a `type` at its root, so the root is no reference. */
export const valueSchema = (schema: Schema.Constraint): Record<string, unknown> => {
  const document = withDates(schema, Schema.toJsonSchemaDocument(schema))
  return withDefinitions(resolve(document.schema, { $defs: jsonObject(document.definitions) }), document.definitions)
}

/** How deep references and nesting are followed. Deeper parts are `any`. */
const maxDepth = 8

/** How many parts of a schema one call visits, because references can multiply without end. */
const maxParts = 1000

interface Walk {
  readonly root: JsonObject
  left: number
}

const startWalk = (root: JsonObject): Walk => ({ root, left: maxParts })

const isOver = (walk: Walk, depth: number): boolean => depth > maxDepth || walk.left-- <= 0

/** Returns the name of the definition a reference points to. */
const definitionOf = (reference: string): string | undefined => {
  const name = /^#\/(?:\$defs|definitions)\/(.+)$/.exec(reference)?.[1]
  return name === undefined ? undefined : unescape(name)
}

/** Decodes a JSON pointer in a URI fragment: percent escapes first, then the escapes of the pointer. */
const unescape = (name: string): string => {
  let plain = name
  try {
    plain = decodeURIComponent(name)
  } catch {
    // Not percent-encoded.
  }
  return plain.replaceAll("~1", "/").replaceAll("~0", "~")
}

const members = (schema: Record<string, unknown>): ReadonlyArray<unknown> | undefined => {
  const any = own(schema, "anyOf") ?? own(schema, "oneOf")
  return Array.isArray(any) ? any : undefined
}

const step = (schema: unknown, key: PropertyKey, walk: Walk, depth: number): ReadonlyArray<unknown> => {
  if (isOver(walk, depth)) return []
  const here = resolve(schema, walk.root)
  const union = members(here)
  if (union !== undefined) return union.flatMap((member) => step(member, key, walk, depth + 1))
  if (typeof key === "number") {
    const prefix = own(here, "prefixItems")
    const item: unknown = Array.isArray(prefix) ? prefix[key] : undefined
    return [item ?? own(here, "items")].filter(isRecord)
  }
  const declared = own(here, "properties")
  const part = isRecord(declared) ? own(declared, String(key)) : undefined
  return [part ?? own(here, "additionalProperties")].filter(isRecord)
}

const distinct = (schema: unknown, walk: Walk): ReadonlyArray<string> => Array.from(new Set(plain(schema, walk, 0)))

const plain = (schema: unknown, walk: Walk, depth: number): ReadonlyArray<string> => {
  if (isOver(walk, depth)) return ["any"]
  const here = resolve(schema, walk.root)
  const union = members(here)
  if (union !== undefined) {
    const names = union.filter((member) => !isSpecialNumber(member)).flatMap((member) => plain(member, walk, depth + 1))
    return names.length === 0 ? ["any"] : names
  }
  if (own(here, "format") === "media") return ["media"]
  if (own(here, "title") === mediaId) return [mediaId]
  if (Object.hasOwn(here, "const")) return [literal(here["const"])]
  const values = own(here, "enum")
  if (Array.isArray(values) && values.length > 0 && values.length <= maxDepth) return values.map(literal)
  const type = own(here, "type")
  if (typeof type === "string") return [type]
  if (Array.isArray(type) && type.length > 0) return type.slice(0, maxDepth).map(String)
  return [Object.hasOwn(here, "properties") ? "object" : "any"]
}

const detailed = (schema: unknown, walk: Walk, depth: number): string => {
  const names = distinct(schema, walk)
  if (names.length !== 1 || isOver(walk, depth)) return names.join("|")
  const here = resolve(schema, walk.root)
  if (names[0] === "array") {
    const items = own(here, "items")
    const element = isRecord(items) ? detailed(items, walk, depth + 1) : "any"
    return element === "any" ? "array" : `array<${element}>`
  }
  if (names[0] === "object") {
    const parts = properties(here)
      .slice(0, maxParts)
      .map(([name, part]) => `${name}: ${detailed(part, walk, depth + 1)}`)
    return parts.length === 0 ? "object" : `object{${parts.join(", ")}}`
  }
  return names.join("|")
}

/** Returns whether a schema is the enum of strings that encode `NaN` and the infinities, which models need not see. */
const isSpecialNumber = (schema: unknown) => {
  const values = isRecord(schema) ? own(schema, "enum") : undefined
  return Array.isArray(values) && values.length === 3 && values.includes("NaN") && values.includes("-Infinity")
}

const literal = (value: unknown): string => shorten(JSON.stringify(value) ?? "any", 100)

interface Document {
  readonly schema: Record<string, unknown>
  readonly definitions: Record<string, unknown>
}

interface DateWalk {
  readonly definitions: Record<string, unknown>
  readonly seen: Set<SchemaAST.AST>
}

const mark = (ast: SchemaAST.AST, part: unknown, walk: DateWalk): void => {
  const here = referred(part, walk)
  if (here === undefined) return
  if (isInstant(ast)) return markString(here, walk)
  const [link] = ast.encoding?.slice(-1) ?? []
  if (link !== undefined) return mark(link.to, here, walk)
  if (SchemaAST.isSuspend(ast)) {
    if (walk.seen.has(ast)) return
    walk.seen.add(ast)
    return mark(ast.thunk(), here, walk)
  }
  if (SchemaAST.isUnion(ast)) return markUnion(ast, here, walk)
  if (SchemaAST.isDeclaration(ast)) return ast.typeParameters.forEach((type) => mark(type, here, walk))
  if (SchemaAST.isArrays(ast)) return markArray(ast, here, walk)
  if (SchemaAST.isObjects(ast)) markObject(ast, here, walk)
}

const markUnion = (ast: SchemaAST.Union, here: Record<string, unknown>, walk: DateWalk): void => {
  const members = own(here, "anyOf") ?? own(here, "oneOf")
  const parts: ReadonlyArray<unknown> = Array.isArray(members) ? members : [here]
  // A separate member for any string would be marked as a date, too, so instants are skipped then.
  const isText = ast.types.some((type) => SchemaAST.isString(type))
  for (const type of ast.types) {
    if (isText && isInstant(type)) continue
    for (const part of parts) mark(type, part, walk)
  }
}

const markArray = (ast: SchemaAST.Arrays, here: Record<string, unknown>, walk: DateWalk): void => {
  const prefix = own(here, "prefixItems")
  ast.elements.forEach((type, index) => mark(type, Array.isArray(prefix) ? prefix[index] : undefined, walk))
  for (const type of ast.rest.slice(0, 1)) mark(type, own(here, "items"), walk)
}

const markObject = (ast: SchemaAST.Objects, here: Record<string, unknown>, walk: DateWalk): void => {
  const properties = own(here, "properties")
  for (const { name, type } of ast.propertySignatures) {
    if (isRecord(properties)) mark(type, own(properties, String(name)), walk)
  }
  for (const { type } of ast.indexSignatures) mark(type, own(here, "additionalProperties"), walk)
}

const markString = (here: Record<string, unknown>, walk: DateWalk): void => {
  const members = own(here, "anyOf") ?? own(here, "oneOf")
  if (Array.isArray(members)) {
    for (const member of members) {
      const part = referred(member, walk)
      if (part !== undefined) markString(part, walk)
    }
  } else if (own(here, "type") === "string" && here["format"] === undefined && here["enum"] === undefined) {
    here["format"] = "date-time"
  }
}

const referred = (part: unknown, { definitions }: DateWalk): Record<string, unknown> | undefined => {
  if (!isRecord(part)) return undefined
  const name = /^#\/\$defs\/(.+)$/.exec(String(own(part, "$ref") ?? ""))?.[1]
  if (name === undefined) return part
  const found = own(definitions, decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~"))
  return isRecord(found) ? found : undefined
}

/** Returns whether a Schema encodes instants as ISO 8601. */
const isInstant = (ast: SchemaAST.AST): boolean => {
  if (!SchemaAST.isDeclaration(ast)) return false
  const encode = SchemaParser.encodeUnknownEffect(Schema.toCodecJson(Schema.make<Schema.Codec<unknown, unknown>>(ast)))
  return samples.some((sample) => {
    const written = encode(sample)
    if (!Exit.isExit(written) || !Exit.isSuccess(written)) return false
    return typeof written.value === "string" && isoInstant.test(written.value)
  })
}

const isoInstant = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

// Several samples, because a check may reject some.
const samples: ReadonlyArray<unknown> = [0, 946_684_800_000, 2_000_000_000_000, 7_000_000_000_000].flatMap((time) => [
  new Date(time),
  DateTime.makeUnsafe(time)
])
