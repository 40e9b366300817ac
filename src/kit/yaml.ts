/**
 * Parses untrusted YAML, and copies untrusted values, as plain data.
 *
 * The parser shares aliased values, which multiply only when they are traversed. The traversal here counts nodes and
 * stops at the limit. The result holds mappings, lists, strings, numbers, booleans and null, without tags, prototype
 * keys, sharing or cycles.
 */

import * as Yaml from "effect/encoding/Yaml"
import * as Result from "effect/Result"
import { shorten } from "./text.ts"

/** Plain data, as a config file may hold it. */
export type Plain = string | number | boolean | null | ReadonlyArray<Plain> | ReadonlyMap<string, Plain>

/** The largest size of a document. */
export interface Bounds {
  readonly nodes: number
  readonly depth: number
  /** Whether to accept keys such as `__proto__`. Only for documents whose keys are never looked up. */
  readonly anyKey?: boolean
}

const maxBytes = 256 * 1024

// The parser's patterns for scalars take quadratic time on such runs.
const longRun = /[ \t]{512}|[\d_]{512}|\\{512}/
// The parser copies a flow collection once per line of it. Documents written by people stay far below this.
const maxCopied = 2 ** 30

/** Parses one YAML document. Fails with a sentence. */
export const parse = (text: string, bounds: Bounds): Result.Result<Plain, string> => {
  if (text.length > maxBytes) return Result.fail(`the document is longer than ${maxBytes} characters`)
  if (longRun.test(text))
    return Result.fail("the document contains a run of more than 511 blanks, digits or backslashes")
  if (/[[{]/.test(text) && text.split("\n").length * text.length > maxCopied) {
    return Result.fail("the document has too many lines for the brackets in it")
  }
  return Result.flatMap(
    Result.try({
      try: () => Yaml.parse(text),
      catch: (cause) => (cause instanceof SyntaxError ? cause.message : "the document nests too deeply")
    }),
    (value) =>
      Result.filterOrFail(
        plain(value, bounds),
        (value) => !hasMark(value) || textBegins.test(text),
        () => "tags are not allowed"
      )
  )
}

/** Copies a value as plain data. Fails with a sentence. */
export const plain = (value: unknown, bounds: Bounds): Result.Result<Plain, string> => {
  let nodes = 0
  // The keys that lead to the current value.
  const names: Array<string> = []
  const copy = (value: unknown, depth: number): Plain => {
    if (++nodes > bounds.nodes) throw new Refused(`it has more than ${bounds.nodes} nodes`)
    if (depth > bounds.depth) throw new Refused(`it nests deeper than ${bounds.depth} levels`)
    if (value === null || typeof value === "string" || typeof value === "boolean") return value
    if (typeof value === "number") {
      if (Number.isFinite(value)) return value
      const place = names.length === 0 ? "" : `at '${shorten(names.join("."), 200)}' `
      throw new Refused(`${place}it contains ${value}, which is not a valid number`)
    }
    const inside = (name: string, item: unknown): Plain => {
      names.push(name)
      const taken = copy(item, depth + 1)
      names.pop()
      return taken
    }
    if (Array.isArray(value)) return value.map((item, index) => inside(`${index}`, item))
    if (typeof value !== "object") throw new Refused(`it contains a ${typeof value}`)
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype !== null && prototype !== Object.prototype)
      throw new Refused("it contains an object that is not plain")
    const map = new Map<string, Plain>()
    for (const [key, item] of Object.entries(value)) {
      if (bounds.anyKey !== true && reserved.has(key)) throw new Refused(`'${key}' is not allowed as a key`)
      if (item !== undefined) map.set(key, inside(key, item))
    }
    return map
  }
  return Result.try({
    try: () => copy(value, 0),
    // The exception of a getter may hold anything, so its message is left out.
    catch: (cause) => (cause instanceof Refused ? cause.message : "it cannot be read")
  })
}

class Refused extends Error {}

const reserved: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"])

// The parser keeps a tag as the start of the scalar behind it, so a scalar that starts with "!" had a tag, unless the
// text itself starts with "!". Then it is quoted, or it is a block scalar: the line before it ends in `|` or `>`. That
// header is matched backwards from each line end only; matched from every such sign on, a line of them would take
// quadratic time.
const textBegins = /["']!|\n(?<=[|>][+-]?\d?[+-]?[ \t]*(?:#[^\n]*)?\n)\s*!/

const hasMark = (value: Plain): boolean => {
  if (typeof value === "string") return value.startsWith("!")
  if (Array.isArray(value)) return value.some(hasMark)
  if (value instanceof Map) {
    for (const [key, item] of value) if (hasMark(key) || hasMark(item)) return true
  }
  return false
}
