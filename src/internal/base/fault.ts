/**
 * Where a value from outside is wrong, and why: the innermost place, as a JSON pointer.
 */

import * as JsonPointer from "effect/JsonPointer"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"

/** One fault. */
export interface Fault {
  /** A JSON pointer from the value; `""` is the value itself. */
  readonly path: string
  readonly reason: string
}

/** A JSON pointer to a path of keys and indexes. */
export const pointer = (path: ReadonlyArray<PropertyKey>): string =>
  path.map((token) => `/${JsonPointer.escapeToken(String(token))}`).join("")

/** The first thing a schema found wrong. */
export const ofSchema = (error: Schema.SchemaError): Fault => {
  const [first] = SchemaIssue.makeFormatterStandardSchemaV1()(error.issue).issues
  const path = (first?.path ?? []).map((segment) => (typeof segment === "object" ? segment.key : segment))
  return { path: pointer(path), reason: first?.message ?? "invalid" }
}

/** A fault as a schema tells it. */
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
