/**
 * Any value as JSON that can be shown, whatever it is.
 *
 * For telling, not for storing: nothing is refused, and what is no JSON becomes
 * a word in brackets. Bytes are never copied, a getter that throws harms nobody,
 * and the size is bounded.
 */

import * as Bounds from "./bounds.ts"
import type { Json } from "./json.ts"
import { holdsJson } from "./redact.ts"

/**
 * Copies a value as JSON; `text` is applied to every string in it, and to its keys. Where `isJson` is false the keys
 * are names of ours and stay as they are, but for those in what others said.
 */
export const plain = (value: unknown, text: (text: string) => string = same, isJson = true): Json =>
  copy(value, { text, above: [], left: maxNodes }, isJson)

interface Walk {
  readonly text: (text: string) => string
  readonly above: Array<object>
  left: number
}

const maxNodes = 100_000

const same = (text: string): string => text

const copy = (value: unknown, walk: Walk, isJson: boolean): Json => {
  switch (typeof value) {
    case "string":
      return walk.text(value)
    case "boolean":
      return value
    case "number":
      return Number.isFinite(value) ? value : String(value)
    case "bigint":
      return String(value)
    case "object":
      return value === null ? null : nested(value, walk, isJson)
    default:
      return `[${typeof value}]`
  }
}

const nested = (value: object, walk: Walk, isJson: boolean): Json => {
  if (walk.above.includes(value)) return "[cycle]"
  if (walk.above.length >= Bounds.jsonDepth || walk.left-- <= 0) return "[more]"
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`
  walk.above.push(value)
  try {
    if (Array.isArray(value)) return value.map((item) => copy(item, walk, isJson))
    if (value instanceof Error) return walk.text(`${value.name}: ${value.message}`)
    if (value instanceof Map || value instanceof Set) return Array.from(value, (item) => copy(item, walk, isJson))
    if ("toJSON" in value && typeof value.toJSON === "function") return copy(value.toJSON(), walk, isJson)
    // fromEntries defines own properties, so a key like __proto__ is plain data (S-10).
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .map(([key, item]) => [isJson ? walk.text(key) : key, copy(item, walk, isJson || holdsJson(key))])
    )
  } catch {
    return "[unreadable]"
  } finally {
    walk.above.pop()
  }
}
