/**
 * Converts ids to keys of a database.
 *
 * Databases drop or refuse U+0000 and lone surrogates, and limit the size of index entries. Almost every id is its own
 * key. Other ids are escaped, and long ones end in their digest. Two ids never share a key.
 */

import { Buffer } from "node:buffer"
import { createHash } from "node:crypto"
import { isHighSurrogate } from "../../kit/text.ts"

/** Returns the key of an id. */
export const make = (id: string): string => {
  const escaped = escape(id)
  return escaped.length <= longest && Buffer.byteLength(escaped) <= 2 * longest
    ? escaped
    : `${beginning(escaped)}%h${createHash("sha256").update(escaped).digest("hex")}`
}

/** Returns the part of a long id that its key keeps. */
const beginning = (escaped: string): string => escaped.slice(0, kept).toWellFormed()

/**
 * Returns the ranges of keys that hold all ids beginning with a text. They may also hold a few keys of other long ids.
 */
export const rangesOf = (prefix: string): ReadonlyArray<Range> => {
  // A high surrogate at the end may be half of a pair in an id, where it is not escaped.
  const start = escape(isHighSurrogate(prefix.charCodeAt(prefix.length - 1)) ? prefix.slice(0, -1) : prefix)
  const whole = rangeOf(start)
  return start.length <= kept ? [whole] : [whole, rangeOf(`${beginning(start)}%h`)]
}

/** The keys from `from` up to an excluded end, or up to the last key without one. */
export interface Range {
  readonly from: string
  readonly to: string | undefined
}

const rangeOf = (from: string): Range => {
  const chars = Array.from(from)
  for (let last = chars.pop(); last !== undefined; last = chars.pop()) {
    const code = last.codePointAt(0) ?? 0
    if (code < 0x10ffff) return { from, to: chars.join("") + String.fromCodePoint(code === 0xd7ff ? 0xe000 : code + 1) }
  }
  return { from, to: undefined }
}

/** Escapes the characters of a text that a database may reject. */
export const escape = (text: string): string =>
  text.isWellFormed() && !text.includes("%") && !text.includes("\u0000")
    ? text
    : text.replace(/[%\0]|\p{Surrogate}/gu, (char) => `%${char.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** Returns the original text of an escaped key. */
export const unescape = (text: string): string =>
  text.includes("%")
    ? text.replace(/%([0-9a-f]{4})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
    : text

// PostgreSQL fits two keys of 1,024 bytes into an index entry.
const longest = 512
const kept = 64
