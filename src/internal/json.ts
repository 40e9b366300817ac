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
