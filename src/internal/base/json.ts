/**
 * JSON as a type, without the schema that checks it.
 */

import type * as Schema from "effect/Schema"

/** Any JSON value. */
export type Json = Schema.Json

/** A JSON object. */
export type JsonObject = { readonly [key: string]: Json }

/** The value as a JSON object; anything else counts as an empty one. */
export const jsonObject = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})

/** Tells whether a value that is known to be JSON is an object. */
export const isJsonObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Tells whether an object has no field: looking at one makes no list of them. */
export const isEmpty = (value: object): boolean => {
  for (const _ in value) return false
  return true
}

/** The input of a call as text: what it says to a protocol, which a native call wraps in an object, as `request` or whole. */
export const requestOf = (input: Json): string => {
  const request = isJsonObject(input) ? input["request"] : input
  return typeof request === "string" ? request : JSON.stringify(input)
}

/** About how many characters a JSON value takes: a long text is not looked at. */
export const sizeOf = (value: Json): number => {
  let size = 0
  const left: Array<Json> = [value]
  while (left.length > 0) {
    const next = left.pop()
    size += typeof next === "string" ? next.length : 1
    if (typeof next !== "object" || next === null) continue
    for (const [key, inner] of Object.entries(next)) {
      size += key.length
      left.push(inner)
    }
  }
  return size
}
