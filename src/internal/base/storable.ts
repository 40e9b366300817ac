/**
 * JSON that stores accept: written as JSON text, it reads back equal.
 *
 * Anything else (undefined, NaN, a Date, bytes, a cycle) is refused, and so is JSON that nests too deep to be read
 * again.
 */

import * as Schema from "effect/Schema"
import * as json from "./json.ts"

/** How deep stored JSON may nest: more than any limit in use, and far from a stack overflow. */
const depth = 1_000

/** Bounds for reading stored values. Their writer applied its own limits; these only protect memory and the stack. */
export const bounds = {
  jsonDepth: depth,
  blockDepth: depth / 2,
  jsonNodes: 10_000_000
}

/** Not JSON (0), JSON (1), or JSON with a negative zero (2), which `JSON.stringify` would write as zero. */
export type Grade = 0 | 1 | 2

/** Grades a whole value. */
export const grade = (value: unknown, left: number = depth): Grade => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return 1
    case "number":
      return Object.is(value, -0) ? 2 : Number.isFinite(value) ? 1 : 0
    case "object":
      return value === null
        ? 1
        : left === 0
          ? 0
          : Array.isArray(value)
            ? gradeList(value, left)
            : gradeRecord(value, left)
    default:
      return 0
  }
}

/** `JSON.stringify` that keeps negative zeros. */
export const stringify = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(stringify).join(",")}]`
  if (typeof value === "object" && value !== null) {
    return `{${Object.entries(value)
      .map(([key, field]) => `${JSON.stringify(key)}:${stringify(field)}`)
      .join(",")}}`
  }
  return Object.is(value, -0) ? "-0" : JSON.stringify(value)
}

/** Any JSON. */
export const Json: Schema.Codec<json.Json> = Schema.declare((value): value is json.Json => grade(value) > 0, {
  expected: "a JSON value"
})

/** A JSON object. */
export const JsonObject: Schema.Codec<json.JsonObject> = Schema.declare(
  (value): value is json.JsonObject => json.isJsonObject(value) && grade(value) > 0,
  { expected: "a JSON object" }
)

const gradeList = (list: ReadonlyArray<unknown>, left: number): Grade => {
  let worst: Grade = 1
  // By index, because iteration skips holes.
  for (let index = 0; index < list.length; index++) {
    const found = grade(list[index], left - 1)
    if (found === 0) return 0
    if (found === 2) worst = 2
  }
  return worst
}

const gradeRecord = (record: object, left: number): Grade => {
  const prototype: unknown = Object.getPrototypeOf(record)
  if (prototype !== Object.prototype && prototype !== null) return 0
  if (typeof Reflect.get(record, "toJSON") === "function") return 0
  let worst: Grade = 1
  for (const key in record) {
    const found = grade(Reflect.get(record, key), left - 1)
    if (found === 0) return 0
    if (found === 2) worst = 2
  }
  return worst
}
