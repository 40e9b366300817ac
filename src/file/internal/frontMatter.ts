/**
 * The front matter of a SKILL.md: YAML between two `---` lines.
 *
 * It is a mapping without anchors and aliases. A scalar is the text it was written as, so that version 1.0 stays `1.0`.
 */

import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import * as Yaml from "../../kit/yaml.ts"

/** A file split into front matter and body. */
interface Parts {
  readonly head: string
  readonly body: string
}

/** Splits a file at the two `---` lines. `isWhole` is false if the text was cut. */
export const split = (text: string, isWhole: boolean): Result.Result<Parts, string> => {
  const start = /^---[ \t]*\r?\n/.exec(text)
  if (start === null) return Result.fail("the file does not begin with a '---' line")
  for (let at = start[0].length; at < text.length; at = text.indexOf("\n", at) + 1) {
    const end = /---[ \t]*(?:\r?\n|$)/y
    end.lastIndex = at
    const found = end.exec(text)
    if (found !== null)
      return Result.succeed({ head: text.slice(start[0].length, at), body: text.slice(at + found[0].length) })
    if (!text.includes("\n", at)) break
  }
  return Result.fail(isWhole ? "the front matter has no closing '---' line" : "the front matter is too large")
}

/** A field: a text, a list of texts, a mapping of texts, or null if it nests deeper. */
export type Field = string | ReadonlyArray<string> | ReadonlyMap<string, string> | null

/** Reads the fields of the front matter. Fails with a sentence. */
export const fields = (head: string, bounds: Yaml.Bounds): Result.Result<ReadonlyMap<string, Field>, string> => {
  const text = head.replaceAll("\r\n", "\n")
  return Result.flatMap(parse(text, { ...bounds, anyKey: true }), (value) => {
    if (!isMapping(value)) return Result.fail("the front matter is not a mapping")
    const lines = linesOf(text)
    const found = new Map<string, Field>()
    for (const [key, item] of value) found.set(key, fieldOf(key, item, lines))
    return Result.succeed(found)
  })
}

/**
 * Parses YAML without anchors. The parser drops an anchor from the value it precedes. So if the text means the same
 * with every `&` replaced by a letter, it has no anchor, and without an anchor there is no alias.
 */
const parse = (text: string, bounds: Yaml.Bounds): Result.Result<Yaml.Plain, string> => {
  if (!text.includes("&")) return Yaml.parse(text, bounds)
  const refused = "anchors and aliases are not allowed"
  if (text.includes(mark)) return Result.fail("the character U+E000 is not allowed")
  const marked = Yaml.parse(text.replaceAll("&", mark), bounds)
  if (Result.isFailure(marked)) return Result.fail(refused)
  return Result.filterOrFail(
    Yaml.parse(text, bounds),
    (value) => Equal.equals(unmark(marked.success), value),
    () => refused
  )
}

const mark = "\ue000"

const unmark = (value: Yaml.Plain): Yaml.Plain => {
  if (typeof value === "string") return value.replaceAll(mark, "&")
  if (isList(value)) return value.map(unmark)
  if (!isMapping(value)) return value
  return new Map(Array.from(value, ([key, item]) => [key.replaceAll(mark, "&"), unmark(item)]))
}

const fieldOf = (key: string, value: Yaml.Plain, lines: Lines): Field => {
  if (isList(value)) {
    const texts = value.map((item) => (isNested(item) ? undefined : String(item ?? "")))
    return texts.every((text) => text !== undefined) ? texts : null
  }
  if (!isMapping(value)) return written(key, value, lines)
  const texts = new Map<string, string>()
  for (const [name, item] of value) {
    if (isNested(item)) return null
    texts.set(name, written(name, item, lines))
  }
  return texts
}

/** Returns a scalar as it was written, if a line shows it. */
const written = (key: string, value: string | number | boolean | null, lines: Lines): string => {
  if (typeof value === "string") return value
  if (value === null) return ""
  const same = (text: string) => Result.getOrUndefined(Result.try(() => JSON.parse(text) === value)) === true
  return lines.get(key)?.find(same) ?? String(value)
}

/** The text after each key on its line, by key. */
type Lines = ReadonlyMap<string, ReadonlyArray<string>>

const linesOf = (text: string): Lines => {
  const lines = new Map<string, Array<string>>()
  for (const line of text.split("\n")) {
    const colon = line.indexOf(": ")
    const [, key] = /^["']?(.*?)["']?$/.exec(line.slice(0, Math.max(colon, 0)).trim()) ?? []
    const [, value] = /^([^\s#]+)\s*(?:#.*)?$/.exec(line.slice(colon + 2).trim()) ?? []
    if (key === undefined || value === undefined) continue
    const known = lines.get(key)
    if (known === undefined) lines.set(key, [value])
    else known.push(value)
  }
  return lines
}

const isMapping = (value: Yaml.Plain): value is ReadonlyMap<string, Yaml.Plain> => value instanceof Map
const isList = (value: Yaml.Plain): value is ReadonlyArray<Yaml.Plain> => Array.isArray(value)
const isNested = (value: Yaml.Plain): value is ReadonlyArray<Yaml.Plain> | ReadonlyMap<string, Yaml.Plain> =>
  isMapping(value) || isList(value)
