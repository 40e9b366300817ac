/**
 * Decodes the values of a form, which is described by a JSON Schema: an object of texts, numbers, booleans and choices.
 */

import * as JsonSchema from "effect/JsonSchema"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaRepresentation from "effect/SchemaRepresentation"
import { type Json, type JsonObject, own, plain } from "./json.ts"
import { properties, resolve } from "./jsonSchema.ts"
import * as Pattern from "./pattern.ts"
import { flat, shorten } from "./text.ts"

/**
 * Returns the values of the form's fields, with defaults for absent ones and without any other values. Fails with a
 * sentence about a value that does not fit.
 *
 * A form that cannot be read as a schema, because it uses keywords outside of forms, accepts any values of its fields.
 */
export const decode = (form: JsonObject, values: JsonObject): Result.Result<JsonObject, string> => {
  const given = completed(form, values)
  const reason = misfitOf(form, given)
  if (reason !== undefined) return Result.fail(shorten(flat(reason), longest))
  const misfit = fieldsOf(form).find(([name, field]) => !matches(field, own(given, name)))
  return misfit === undefined
    ? Result.succeed(given)
    : Result.fail(`'${shorten(flat(misfit[0]), 100)}' does not match its pattern`)
}

/** Returns the values of the form's fields, with defaults for absent ones and without any other values. */
export const completed = (form: JsonObject, values: JsonObject): JsonObject => {
  const found: { [name: string]: Json } = Object.create(null)
  for (const [name, field] of fieldsOf(form)) {
    const value = own(values, name) ?? own(field, "default")
    if (value !== undefined && value !== null) found[name] = plain(value)
  }
  return { ...found }
}

/** Returns the name of the only field of a form, if it is a text. Plain text answers such a form. */
export const onlyText = (form: JsonObject): string | undefined => {
  const [only, ...rest] = properties(form)
  if (only === undefined || rest.length > 0) return undefined
  const field = resolve(only[1], form)
  return own(field, "type") === "string" ? only[0] : undefined
}

const fieldsOf = (form: JsonObject) => properties(form).map(([name, field]) => [name, resolve(field, form)] as const)

/** Returns why values do not fit the schema of a form. Undefined if they fit, or if the form cannot be read as a schema. */
const misfitOf = (form: JsonObject, values: JsonObject): string | undefined =>
  Result.getOrUndefined(
    // Reading a schema fails with an exception, and so does one that refers to itself, once it decodes.
    Result.try(() => {
      // Patterns are matched in linear time instead, because a foreign server may have written them.
      const document = JsonSchema.fromSchemaDraft2020_12({ ...form, type: "object" })
      const schema = SchemaRepresentation.fromJsonSchemaDocument(document, { patterns: "ignore" })
      // The schema is built from JSON Schema only, so it needs no services.
      const decoded = Schema.decodeUnknownResult(schema as unknown as Schema.ConstraintDecoder<unknown>)(values)
      return Result.isFailure(decoded) ? decoded.failure.message : undefined
    })
  )

const matches = (field: Record<string, unknown>, value: unknown): boolean => {
  const pattern = own(field, "pattern")
  if (typeof value !== "string" || typeof pattern !== "string") return true
  const matcher = Pattern.regex(pattern)
  return Result.isFailure(matcher) || matcher.success(value)
}

const longest = 500
