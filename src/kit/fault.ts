/**
 * Faults in values from outside: the path, the reason, and the key that was probably meant.
 */

import * as JsonPointer from "effect/JsonPointer"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"

/** One fault, with the path of the innermost invalid value. */
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

/** Formats a path for people: `tickets[1].priority`. */
export const pathText = (path: ReadonlyArray<PropertyKey>): string =>
  path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : text === "" ? String(key) : `${text}.${String(key)}`),
    ""
  )

/** Returns the end of a sentence about an unknown key: the known key nearest to it, or some of them if none is near. */
export const nearestKey = (key: string, known: ReadonlyArray<string>, words = "known keys"): string => {
  const edits = (other: string) => editsBetween(key.slice(0, 60).toLowerCase(), other.toLowerCase())
  const [near = ""] = known.toSorted((a, b) => edits(a) - edits(b))
  return edits(near) <= Math.min(3, near.length / 2)
    ? `; did you mean '${near}'?`
    : `; ${words}: ${known.slice(0, 20).join(", ") || "none"}`
}

/** Returns whether a key is a user's own, such as a YAML anchor: it begins with `x-` or `x_`. */
export const isOwnKey = (key: string): boolean => /^x[-_]/.test(key)

const editsBetween = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1]
    for (const [index, other] of [...to].entries()) {
      const [left = 0, above = 0, both = 0] = [next[index], row[index + 1], row[index]]
      next.push(Math.min(left + 1, above + 1, both + (letter === other ? 0 : 1)))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
