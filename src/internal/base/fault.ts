/**
 * Where a value from outside is wrong, and why.
 */

import * as JsonPointer from "effect/JsonPointer"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"

/** One fault, at the innermost place that is wrong. */
export interface Fault {
  /** A JSON pointer from the value; `""` is the value itself. */
  readonly path: string
  readonly reason: string
}

/** Returns a JSON pointer to a path of keys and indexes. */
export const pointer = (path: ReadonlyArray<PropertyKey>): string =>
  path.map((token) => `/${JsonPointer.escapeToken(String(token))}`).join("")

/** Returns the first fault of a schema error. */
export const ofSchema = (error: Schema.SchemaError): Fault => {
  const [first] = SchemaIssue.makeFormatterStandardSchemaV1()(error.issue).issues
  const path = (first?.path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment))
  return { path: pointer(path), reason: first?.message ?? "invalid" }
}

/** Returns a fault as a schema issue. */
export const toIssue = (fault: Fault): SchemaIssue.Issue =>
  new SchemaIssue.Pointer(
    fault.path.split("/").slice(1).map(JsonPointer.unescapeToken),
    new SchemaIssue.InvalidValue({ message: fault.reason })
  )

/** Writes a path for people: `tickets[1].priority`. */
export const pathText = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : text === "" ? String(key) : `${text}.${String(key)}`),
    ""
  )
