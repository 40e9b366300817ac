/**
 * Snapshots of outside values as frozen JSON.
 *
 * `take` copies a value, or fails with the path at which it is not JSON. The copy shares nothing with the original, is
 * frozen at every depth and nests no deeper than the limit, so recursion over it is safe. `freeze` is for JSON that is
 * already ours.
 */

import * as Result from "effect/Result"
import { jsonDepth, jsonNodes } from "./bounds.ts"
import { type Fault, pointer } from "./fault.ts"
import type { Json } from "./json.ts"

/** The largest depth and size of a copy. */
export interface Bounds {
  readonly jsonDepth: number
  readonly jsonNodes: number
}

const usual: Bounds = { jsonDepth, jsonNodes }

/**
 * Copies a value as frozen JSON.
 *
 * Instances of classes are read by their own enumerable fields, unless they have a `toJSON`. Dates, maps, errors and
 * similar objects are rejected.
 */
export const take = (value: unknown, bounds: Bounds = usual): Result.Result<Json, Fault> => {
  const walk: Walk = { path: [], left: bounds.jsonNodes }
  return Result.try({
    try: () => copy(value, bounds.jsonDepth, walk),
    // The exception of a getter or a `toJSON` may hold secrets, so it is left out.
    catch: (error) => ({ path: pointer(walk.path), reason: error instanceof Misfit ? error.message : "cannot be read" })
  })
}

/** Freezes JSON at every depth, in place. A frozen value is assumed to be frozen throughout. */
export const freeze = <A>(value: A): A => {
  const pending: Array<unknown> = [value]
  while (pending.length > 0) {
    const next = pending.pop()
    if (!isTree(next) || Object.isFrozen(next)) continue
    Object.freeze(next)
    for (const child of Object.values(next)) pending.push(child)
  }
  return value
}

/** Sets an own field with any name, even `__proto__`, which an assignment would treat as the prototype. */
export const define = (target: { [key: string]: unknown }, key: string, value: unknown): void => {
  if (key === "__proto__") {
    Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true })
  } else target[key] = value
}

/** Defines a field that returns a copy of the bytes at every read, because a byte array cannot be frozen. */
export const defineBytes = (target: object, key: string, bytes: Uint8Array): void => {
  // Not `bytes.slice()`: for a Node `Buffer` that is a view of the same memory.
  const own = new Uint8Array(bytes)
  Object.defineProperty(target, key, { get: () => own.slice(), enumerable: true, configurable: true })
}

class Misfit extends Error {}

interface Walk {
  readonly path: Array<PropertyKey>
  left: number
}

const copy = (value: unknown, depth: number, walk: Walk): Json => {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value
    case "number":
      if (Number.isFinite(value)) return value
      throw new Misfit(`${value} is not a JSON number`)
    case "object":
      if (value === null) return null
      if (depth === 0) throw new Misfit("nested too deeply")
      if (walk.left-- === 0) throw new Misfit("too large")
      return Array.isArray(value) ? copyArray(value, depth, walk) : copyObject(value, depth, walk)
    default:
      throw new Misfit(`${typeof value} is not JSON`)
  }
}

const copyArray = (value: ReadonlyArray<unknown>, depth: number, walk: Walk): Json => {
  const out: Array<Json> = []
  for (let index = 0; index < value.length; index++) {
    walk.path.push(index)
    out.push(copy(value[index], depth - 1, walk))
    walk.path.pop()
  }
  return Object.freeze(out)
}

const copyObject = (value: object, depth: number, walk: Walk): Json => {
  const kind = Object.prototype.toString.call(value).slice(8, -1)
  if (kind !== "Object") throw new Misfit(`${kind} is not JSON`)
  if ("toJSON" in value && typeof value.toJSON === "function") return copy(value.toJSON(), depth - 1, walk)
  const out: { [key: string]: Json } = {}
  for (const key of Object.keys(value)) {
    walk.path.push(key)
    define(out, key, copy(Reflect.get(value, key), depth - 1, walk))
    walk.path.pop()
  }
  return Object.freeze(out)
}

const isTree = (value: unknown): value is object => {
  if (typeof value !== "object" || value === null) return false
  const prototype: unknown = Object.getPrototypeOf(value)
  return Array.isArray(value) || prototype === Object.prototype || prototype === null
}
