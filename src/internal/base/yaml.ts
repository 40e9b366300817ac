/**
 * YAML and plain values from outside, made harmless before anyone looks at them (S-3).
 *
 * Aliases are shared by the parser and only become many when a reader walks
 * them, so the walk here counts as it goes and stops at the limit. What comes
 * out is data: mappings, lists, strings, numbers, booleans and null, with no
 * tag, no key of a prototype, and nothing shared or cyclic.
 */

import * as Yaml from "effect/encoding/Yaml"
import * as Result from "effect/Result"
import { shorten } from "./text.ts"

/** Plain data: what a config file may hold. */
export type Plain = string | number | boolean | null | ReadonlyArray<Plain> | ReadonlyMap<string, Plain>

/** How much a document may hold. */
export interface Bounds {
  readonly nodes: number
  readonly depth: number
  /** Take keys such as `__proto__` as the data they are, where nothing is ever looked up by them. */
  readonly anyKey?: boolean
}

const maxBytes = 256 * 1024

// The parser folds scalars with patterns that look at such a run once per character of it.
const longRun = /[ \t]{512}|[\d_]{512}|\\{512}/
// It copies what it has of a collection in brackets once per line of it. No document that people write is near this.
const maxCopied = 2 ** 30

/** Reads one YAML document. The failure is a sentence. */
export const parse = (text: string, bounds: Bounds): Result.Result<Plain, string> => {
  if (text.length > maxBytes) return Result.fail(`the document is longer than ${maxBytes} characters`)
  if (longRun.test(text)) return Result.fail("the document holds a run of more than 511 blanks, digits or backslashes")
  if (/[[{]/.test(text) && text.split("\n").length * text.length > maxCopied) {
    return Result.fail("the document has brackets, and too many lines for them")
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

/** Copies a value as plain data, or says why it is none. */
export const plain = (value: unknown, bounds: Bounds): Result.Result<Plain, string> => {
  let nodes = 0
  // Where a value stands, its names in order.
  const names: Array<string> = []
  const copy = (value: unknown, depth: number): Plain => {
    if (++nodes > bounds.nodes) throw new Refused(`it holds more than ${bounds.nodes} nodes`)
    if (depth > bounds.depth) throw new Refused(`it nests deeper than ${bounds.depth} levels`)
    if (value === null || typeof value === "string" || typeof value === "boolean") return value
    if (typeof value === "number") {
      if (Number.isFinite(value)) return value
      const place = names.length === 0 ? "" : `at '${shorten(names.join("."), 200)}' `
      throw new Refused(`${place}it holds ${value}, which is no number a config can have`)
    }
    const inside = (name: string, item: unknown): Plain => {
      names.push(name)
      const taken = copy(item, depth + 1)
      names.pop()
      return taken
    }
    if (Array.isArray(value)) return value.map((item, index) => inside(`${index}`, item))
    if (typeof value !== "object") throw new Refused(`it holds a ${typeof value}`)
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype !== null && prototype !== Object.prototype) throw new Refused("it holds an object that is not plain")
    const map = new Map<string, Plain>()
    for (const [key, item] of Object.entries(value)) {
      if (bounds.anyKey !== true && reserved.has(key)) throw new Refused(`'${key}' is not allowed as a key`)
      if (item !== undefined) map.set(key, inside(key, item))
    }
    return map
  }
  return Result.try({
    try: () => copy(value, 0),
    // A getter of the caller's value may throw anything; its text is not ours to show.
    catch: (cause) => (cause instanceof Refused ? cause.message : "it cannot be read")
  })
}

class Refused extends Error {}

const reserved: ReadonlySet<string> = new Set(["__proto__", "constructor", "prototype"])

// The parser keeps a tag as the start of the scalar it was written before. A quoted
// text may begin with "!" too: then the quote stands right before it in the source, or
// the line before it ends in the sign of a block of text. That is looked for at the end
// of each line alone, and from there: from each such sign on, a line of them would be read as often.
const textBegins = /["']!|\n(?<=[|>][+-]?\d?[+-]?[ \t]*(?:#[^\n]*)?\n)\s*!/

const hasMark = (value: Plain): boolean => {
  if (typeof value === "string") return value.startsWith("!")
  if (Array.isArray(value)) return value.some(hasMark)
  if (value instanceof Map) {
    for (const [key, item] of value) if (hasMark(key) || hasMark(item)) return true
  }
  return false
}
