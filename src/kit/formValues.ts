/**
 * Decodes the values of a form, which is described by a JSON Schema: an object of texts, numbers, booleans and choices.
 */

import * as Result from "effect/Result"
import { type Json, type JsonObject, own, plain } from "./json.ts"
import { misfit } from "./jsonFit.ts"
import { properties, resolve } from "./jsonSchema.ts"
import * as Pattern from "./pattern.ts"
import { flat, shorten } from "./text.ts"

/**
 * Returns the values of the form's fields, with defaults for absent ones and without any other values. Fails with a
 * sentence about a value that does not fit.
 *
 * Keywords outside of forms are ignored.
 */
export const decode = (form: JsonObject, values: JsonObject): Result.Result<JsonObject, string> => {
  const given = completed(form, values)
  const reason = misfit(given, { ...form, type: "object" })
  if (reason !== undefined) return Result.fail(shorten(flat(reason), longest))
  const unmatched = fieldsOf(form).find(([name, field]) => !matches(field, own(given, name)))
  return unmatched === undefined
    ? Result.succeed(given)
    : Result.fail(`'${shorten(flat(unmatched[0]), 100)}' does not match its pattern`)
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

const matches = (field: Record<string, unknown>, value: unknown): boolean => {
  const pattern = own(field, "pattern")
  if (typeof value !== "string" || typeof pattern !== "string") return true
  const matcher = Pattern.regex(pattern)
  return Result.isFailure(matcher) || matcher.success(value)
}

const longest = 500
