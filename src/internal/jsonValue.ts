/**
 * Turning what somebody else's code returned into plain JSON, or saying where it cannot.
 *
 * The copy holds no getter, prototype or reference of the original. Whatever
 * JSON would drop, change or choke on is a fault with its path, not a guess.
 *
 * @since 0.1.0
 */
import * as Result from "effect/Result"
import { defaults } from "../Limits.ts"
import type { Json, JsonObject } from "./json.ts"

/** Where and why a value is no JSON. */
export interface Fault {
  readonly path: ReadonlyArray<string | number>
  readonly reason: string
}

/** Copies a value as JSON. */
export const toJson = (value: unknown): Result.Result<Json, Fault> => {
  const reader: Reader = { path: [], above: [] }
  try {
    return Result.succeed(copy(value, reader))
  } catch (thrown) {
    // Getters and toJSON are foreign code; the path still says which one threw.
    return Result.fail({
      path: reader.path,
      reason: thrown instanceof Refused ? thrown.reason : "unreadable: it throws"
    })
  }
}

/** Copies an object as a JSON object. */
export const toJsonObject = (value: object): Result.Result<JsonObject, Fault> =>
  Result.flatMap(toJson(value), (json) =>
    isObject(json) ? Result.succeed(json) : Result.fail({ path: [], reason: "not an object" })
  )

interface Reader {
  /** Not unwound when something throws, so that it names the place. */
  readonly path: Array<string | number>
  readonly above: Array<object>
}

class Refused extends Error {
  readonly reason: string
  constructor(reason: string) {
    super(reason)
    this.reason = reason
  }
}

const isObject = (value: Json): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const copy = (value: unknown, reader: Reader): Json => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value
    case "number":
      if (!Number.isFinite(value)) throw new Refused(String(value))
      // JSON has no -0: what is told now must equal what is read back later.
      return value === 0 ? 0 : value
    case "object":
      return value === null ? null : nested(value, reader)
    case "bigint":
      throw new Refused("a BigInt")
    case "undefined":
      throw new Refused("undefined")
    default:
      throw new Refused(`a ${typeof value}`)
  }
}

const nested = (value: object, reader: Reader): Json => {
  if (reader.above.includes(value)) throw new Refused("a cycle")
  if (reader.above.length >= defaults.jsonDepth) throw new Refused(`nested deeper than ${defaults.jsonDepth} levels`)
  reader.above.push(value)
  const json = Array.isArray(value) ? items(value, reader) : members(value, reader)
  reader.above.pop()
  return json
}

const items = (values: ReadonlyArray<unknown>, reader: Reader): Json => {
  const json: Array<Json> = []
  for (let index = 0; index < values.length; index++) {
    reader.path.push(index)
    json.push(copy(values[index], reader))
    reader.path.pop()
  }
  return json
}

const members = (value: object, reader: Reader): Json => {
  const foreign = foreignKind(value)
  if (foreign !== undefined) throw new Refused(foreign)
  if ("toJSON" in value && typeof value.toJSON === "function") {
    const replaced: unknown = value.toJSON()
    // A value that answers with itself is read as it is; anything else goes the same way as any value.
    if (replaced !== value) return copy(replaced, reader)
  }
  const entries: Array<readonly [string, Json]> = []
  for (const key of Object.keys(value)) {
    reader.path.push(key)
    const member: unknown = Reflect.get(value, key)
    entries.push([key, copy(member, reader)])
    reader.path.pop()
  }
  // fromEntries defines own properties, so a key like __proto__ is plain data (S-10).
  return Object.fromEntries(entries)
}

/** Objects that JSON would write as something they are not. */
const foreignKind = (value: object): string | undefined => {
  if (value instanceof Error) return `an Error (${value.name})`
  if (value instanceof Date) return "a Date"
  if (value instanceof Map || value instanceof WeakMap) return "a Map"
  if (value instanceof Set || value instanceof WeakSet) return "a Set"
  if (value instanceof RegExp) return "a RegExp"
  if (value instanceof Promise) return "a Promise"
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return "binary data"
  return undefined
}
