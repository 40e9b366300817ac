/**
 * JSON as a type, without the schema that checks it.
 *
 * @since 0.1.0
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
