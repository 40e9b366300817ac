/**
 * Reading what somebody else wrote, without trusting its shape.
 *
 * Only own keys count, so a prototype is never anybody's data (S-10); text is
 * measured before anything is built from it; nothing here recurses further over
 * input than it is told.
 */

import * as Result from "effect/Result"

/** Reads strict JSON no deeper than `depth`; a failure says in words what is wrong. */
export const parseJson = (text: string, depth: number): Result.Result<unknown, string> =>
  isDeeperThan(text, depth)
    ? Result.fail(`it nests deeper than ${depth} levels`)
    : Result.try({
        try: (): unknown => JSON.parse(text),
        catch: (error) => (error instanceof Error ? error.message : "it cannot be read")
      })

/** Is this an object with keys, not a list? */
export const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value under a key of the object's own. */
export const own = (record: Record<string, unknown>, key: string): unknown =>
  Object.hasOwn(record, key) ? record[key] : undefined

/** The value, if it is one of the words. */
export const oneOf = <A extends string>(words: ReadonlyArray<A>, value: unknown, otherwise: A): A =>
  words.find((word) => word === value) ?? otherwise

/** A text as it is, nothing as `""`, anything else as JSON. */
export const textOf = (value: unknown): string => {
  if (typeof value === "string") return value
  return value === null ? "" : (JSON.stringify(value) ?? "")
}

/** What kind of value this is, for a sentence. */
export const kindOf = (value: unknown): string => {
  if (value === null) return "null"
  return Array.isArray(value) ? "a list" : `a ${typeof value}`
}

/** Whether a JSON value nests deeper than this; never looks further down. */
export const isDeeper = (value: unknown, depth: number): boolean => {
  if (typeof value !== "object" || value === null) return false
  if (depth === 0) return true
  return Object.values(value).some((item) => isDeeper(item, depth - 1))
}

/** Counts brackets outside strings: exact for JSON, harmless for the rest. */
const isDeeperThan = (text: string, limit: number): boolean => {
  let depth = 0
  let quoted = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) quoted = !quoted
    else if (quoted && code === 0x5c) at++
    else if (quoted) continue
    else if (code === 0x5b || code === 0x7b) depth++
    else if (code === 0x5d || code === 0x7d) depth--
    if (depth > limit) return true
  }
  return false
}

/** Removes NUL, TAB, LF, VT, FF, CR and SPACE from both ends. Other Unicode space stays. */
export const strip = (text: string): string => {
  let start = 0
  let end = text.length
  while (start < end && isStripped(text.charCodeAt(start))) start++
  while (end > start && isStripped(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

const isStripped = (code: number) => code === 32 || code === 0 || (code >= 9 && code <= 13)
