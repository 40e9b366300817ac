/**
 * Holds the JSON Schema of a typed answer against the part of the language that a vendor takes.
 */

import { isRecord } from "../../kit/json.ts"
import type { SchemaRules, Wire } from "../../kit/vendorRules.ts"

type Fields = Readonly<Record<string, unknown>>
type Report = (path: string, detail: string) => void

/** Checks the schema of a body, if it has one that the vendor holds a reply to. */
export const checkSchema = (wire: Wire, rules: SchemaRules | undefined, body: Fields, report: Report): void => {
  const found = places[wire]?.(body)
  if (found === undefined) return
  if (rules === undefined) report(found.path, "is a schema where none can be sent")
  else new Check(rules, found.schema, report).whole(found.path)
}

interface Place {
  readonly schema: unknown
  readonly path: string
}

const inner = (value: unknown, ...keys: ReadonlyArray<string>): Fields | undefined => {
  const found = keys.reduce<unknown>((fields, key) => (isRecord(fields) ? fields[key] : undefined), value)
  return isRecord(found) ? found : undefined
}

/** OpenAI holds a reply to a schema only if it is strict. Another one is advice. */
const strictAt = (fields: Fields | undefined, path: string): Place | undefined =>
  fields?.["strict"] === true ? { schema: fields["schema"], path: `${path}.schema` } : undefined

const chat = (body: Fields): Place | undefined =>
  strictAt(inner(body, "response_format", "json_schema"), "response_format.json_schema")

const places: { readonly [wire in Wire]?: (body: Fields) => Place | undefined } = {
  anthropic: (body) => {
    const format = inner(body, "output_config", "format")
    return format === undefined ? undefined : { schema: format["schema"], path: "output_config.format.schema" }
  },
  chat,
  mistral: chat,
  responses: (body) => strictAt(inner(body, "text", "format"), "text.format"),
  "ai-sdk": (body) => {
    const schema = inner(body, "responseFormat")?.["schema"]
    return schema === undefined ? undefined : { schema, path: "responseFormat.schema" }
  },
  "gemini-interactions": (body) => {
    const schema = inner(body, "response_format")?.["schema"]
    return schema === undefined ? undefined : { schema, path: "response_format.schema" }
  },
  gemini: (body) => {
    const schema = inner(body, "generationConfig")?.["responseJsonSchema"]
    return schema === undefined ? undefined : { schema, path: "generationConfig.responseJsonSchema" }
  }
}

const known = ["type", "title", "description", "enum", "const", "anyOf", "$ref", "$defs"]
const ofObjects = ["properties", "required", "additionalProperties"]

/** The check of one schema. */
class Check {
  readonly #rules: SchemaRules
  readonly #root: unknown
  readonly #report: Report
  readonly #allowed: ReadonlySet<string>
  #properties = 0
  #optional = 0
  #unions = 0

  constructor(rules: SchemaRules, root: unknown, report: Report) {
    this.#rules = rules
    this.#root = root
    this.#report = report
    this.#allowed = new Set([...known, ...ofObjects, "items", "format", ...rules.constraints])
  }

  whole(path: string): void {
    const root = inner(this.#root)
    if (root?.["type"] !== "object" || root["anyOf"] !== undefined) this.#report(path, "is not the schema of an object")
    this.#part(root, path, 1)
    for (const [name, definition] of Object.entries(inner(root, "$defs") ?? {})) {
      this.#part(definition, `${path}.$defs.${name}`, 1)
      if (!this.#rules.recursive && this.#refersTo(name, definition, new Set())) {
        this.#report(`${path}.$defs.${name}`, "refers to itself")
      }
    }
    const { optional = Infinity, properties, unions = Infinity } = this.#rules
    if (this.#properties > properties) this.#report(path, `has ${this.#properties} properties`)
    if (this.#optional > optional) this.#report(path, `has ${this.#optional} properties that are not required`)
    if (this.#unions > unions) this.#report(path, `has ${this.#unions} unions`)
  }

  #part(schema: unknown, path: string, depth: number): void {
    if (!isRecord(schema)) return this.#report(path, "is no schema")
    if (depth > this.#rules.depth) return this.#report(path, `is nested ${depth} levels deep`)
    for (const key of Object.keys(schema)) if (!this.#allowed.has(key)) this.#report(path, `has '${key}'`)
    const { anyOf, format, items, properties, type } = schema
    if (type === undefined && anyOf === undefined && schema["$ref"] === undefined) this.#report(path, "has no type")
    if (typeof format === "string" && !this.#rules.formats.includes(format))
      this.#report(path, `has format '${format}'`)
    if (Array.isArray(anyOf) || Array.isArray(type)) this.#unions++
    if (Array.isArray(anyOf)) anyOf.forEach((one, at) => this.#part(one, `${path}.anyOf[${at}]`, depth))
    if (type === "array") this.#part(items, `${path}.items`, depth + 1)
    if (type !== "object") return
    if (schema["additionalProperties"] !== false) this.#report(path, "is open")
    const required = Array.isArray(schema["required"]) ? schema["required"] : []
    for (const [key, property] of Object.entries(inner(properties) ?? {})) {
      this.#properties++
      if (!required.includes(key)) this.#leaves(path, key)
      this.#part(property, `${path}.properties.${key}`, depth + 1)
    }
  }

  #leaves(path: string, key: string): void {
    this.#optional++
    if (this.#rules.allRequired) this.#report(path, `does not require '${key}'`)
  }

  /** Returns whether a part leads to a definition by its references. */
  #refersTo(name: string, part: unknown, seen: Set<unknown>): boolean {
    if (typeof part !== "object" || part === null || seen.has(part)) return false
    seen.add(part)
    const reference: unknown = Reflect.get(part, "$ref")
    if (reference === `#/$defs/${name}`) return true
    const led = typeof reference === "string" ? inner(this.#root, "$defs")?.[reference.slice("#/$defs/".length)] : null
    return [led, ...Object.values(part)].some((value) => this.#refersTo(name, value, seen))
  }
}
