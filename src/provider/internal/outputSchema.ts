/**
 * Writes the JSON Schema of a typed answer in the part of the language that a vendor takes.
 *
 * Constraints that the vendor does not know are left out, because every answer is decoded anyway. A schema whose shape
 * it cannot express, such as a record, a tuple or a part that may be anything, has no such form.
 */

import { type Json, type JsonObject, isJsonObject, own } from "../../kit/json.ts"
import { perObject } from "../../kit/perObject.ts"
import type { SchemaRules, VendorRules } from "../../kit/vendorRules.ts"
import { holdsSchema } from "../../Model.ts"
import type { Request } from "../../Provider.ts"

/**
 * Returns the schema to which a reply is held. Undefined if the request has none, its model cannot be held to one, or
 * the vendor cannot express it.
 */
export const outputSchema = (
  { grammar, model, tools }: Request,
  { schemas }: Pick<VendorRules, "schemas">
): JsonObject | undefined =>
  grammar?._tag !== "Json" || schemas === undefined || !holdsSchema(model, tools.length > 0)
    ? undefined
    : formsIn(schemas)(grammar.schema).form

/** Returns whether a request asks a model that can be held to a schema for a typed answer. */
export const isStructured = ({ grammar, model }: Request): boolean =>
  grammar?._tag === "Json" && model.structuredOutput !== undefined

// A schema stays the same object between the requests of an agent.
const formsIn = perObject((rules: SchemaRules) =>
  perObject((schema: JsonObject): { readonly form: JsonObject | undefined } => ({
    form: new Writing(rules, schema).whole()
  }))
)

/** One schema that is being written. */
class Writing {
  readonly #rules: SchemaRules
  readonly #root: JsonObject
  readonly #definitions = new Map<string, JsonObject | undefined>()
  #properties = 0
  #optional = 0
  #unions = 0

  constructor(rules: SchemaRules, root: JsonObject) {
    this.#rules = rules
    this.#root = root
  }

  whole(): JsonObject | undefined {
    if (this.#root["type"] !== "object" || unionOf(this.#root) !== undefined) return undefined
    const root = this.#part(this.#root, 1)
    if (root === undefined || this.#isBeyond()) return undefined
    const definitions: { [name: string]: Json } = {}
    for (const [name, definition] of this.#definitions) {
      if (definition === undefined) return undefined
      definitions[name] = definition
    }
    return this.#definitions.size === 0 ? root : { ...root, $defs: definitions }
  }

  #isBeyond(): boolean {
    const { optional = Infinity, properties, unions = Infinity } = this.#rules
    return this.#properties > properties || this.#optional > optional || this.#unions > unions
  }

  #part(schema: Json | undefined, depth: number): JsonObject | undefined {
    if (!isJsonObject(schema) || depth > this.#rules.depth) return undefined
    const { $ref, description, type } = schema
    const form = $ref !== undefined ? this.#reference($ref, depth) : this.#shape(schema, type, depth)
    return form === undefined || typeof description !== "string" || $ref !== undefined ? form : { description, ...form }
  }

  #shape(schema: JsonObject, type: Json | undefined, depth: number): JsonObject | undefined {
    const union = unionOf(schema) ?? (Array.isArray(type) ? type.map((one: Json) => ({ ...schema, type: one })) : [])
    if (union.length > 0) return this.#union(union, depth)
    if (schema["enum"] !== undefined || schema["const"] !== undefined) return words(schema)
    switch (type) {
      case "object":
        return this.#object(schema, depth)
      case "array":
        return this.#list(schema, depth)
      case "string":
      case "number":
      case "integer":
      case "boolean":
      case "null":
        return { type, ...this.#constraints(schema) }
      default:
        return undefined
    }
  }

  #reference(reference: Json, depth: number): JsonObject | undefined {
    const name = typeof reference === "string" ? /^#\/\$defs\/([^/~%]+)$/.exec(reference)?.[1] : undefined
    const table = own(this.#root, "$defs")
    if (name === undefined || !isJsonObject(table)) return undefined
    if (!this.#definitions.has(name)) {
      this.#definitions.set(name, undefined)
      const definition = this.#part(table[name], depth)
      if (definition === undefined) return undefined
      this.#definitions.set(name, definition)
    } else if (this.#definitions.get(name) === undefined && !this.#rules.recursive) return undefined
    return { $ref: `#/$defs/${name}` }
  }

  #union(members: ReadonlyArray<Json>, depth: number): JsonObject | undefined {
    this.#unions++
    const forms = this.#all(members, depth)
    return forms === undefined ? undefined : { anyOf: forms }
  }

  #object(schema: JsonObject, depth: number): JsonObject | undefined {
    const { additionalProperties, patternProperties, properties, required } = schema
    // An object that may have other keys is closed. One that declares their values is a record.
    const isRecord = isJsonObject(additionalProperties) || patternProperties !== undefined
    if (isRecord || !isJsonObject(properties)) return undefined
    const needed = new Set(Array.isArray(required) ? required : [])
    const forms: { [key: string]: JsonObject } = {}
    for (const [key, property] of Object.entries(properties)) {
      const form = this.#part(property, depth + 1)
      if (form === undefined || key === "__proto__") return undefined
      this.#properties++
      const isOptional = !needed.has(key)
      if (isOptional && !this.#rules.allRequired) this.#optional++
      forms[key] = isOptional && this.#rules.allRequired ? this.#orNull(form) : form
    }
    const keys = Object.keys(forms)
    return {
      type: "object",
      properties: forms,
      required: this.#rules.allRequired ? keys : keys.filter((key) => needed.has(key)),
      additionalProperties: false
    }
  }

  /** Lets a value be null in place of its absence. An answer may have null for a key that may be absent. */
  #orNull(form: JsonObject): JsonObject {
    const members = Array.isArray(form["anyOf"]) ? form["anyOf"] : undefined
    const isNull = (member: Json) => isJsonObject(member) && member["type"] === "null"
    if (members?.some(isNull) || isNull(form)) return form
    this.#unions++
    return members === undefined
      ? { anyOf: [form, { type: "null" }] }
      : { ...form, anyOf: [...members, { type: "null" }] }
  }

  #list(schema: JsonObject, depth: number): JsonObject | undefined {
    if (schema["prefixItems"] !== undefined) return undefined
    const items = this.#part(schema["items"], depth + 1)
    return items === undefined ? undefined : { type: "array", items, ...this.#constraints(schema) }
  }

  #all(parts: ReadonlyArray<Json>, depth: number): ReadonlyArray<JsonObject> | undefined {
    const forms = parts.map((part) => this.#part(part, depth))
    const written = forms.filter((form) => form !== undefined)
    return written.length === forms.length && forms.length > 0 ? written : undefined
  }

  #constraints(schema: JsonObject): JsonObject {
    const { constraints, formats } = this.#rules
    const { format } = schema
    return {
      ...(typeof format === "string" && formats.includes(format) ? { format } : {}),
      ...Object.fromEntries(
        constraints.flatMap((key) => {
          const value = schema[key]
          return typeof value === "number" ? [[key, value]] : []
        })
      )
    }
  }
}

const unionOf = ({ anyOf, oneOf }: JsonObject): ReadonlyArray<Json> | undefined => {
  const union = anyOf ?? oneOf
  return Array.isArray(union) ? union : undefined
}

/** Returns a schema of fixed values. Undefined if they are not all of one simple type. */
const words = (schema: JsonObject): JsonObject | undefined => {
  const values: Json = schema["enum"] ?? [schema["const"] ?? null]
  if (!Array.isArray(values)) return undefined
  const types = new Set(values.map((value: Json) => (value === null ? "null" : typeof value)))
  const [type] = types
  return types.size !== 1 || type === undefined || type === "object" ? undefined : { type, enum: values }
}
