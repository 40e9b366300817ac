/**
 * Texts from outside as keys of a database.
 *
 * Databases drop or refuse U+0000 and lone surrogates, and limit the size of index entries. Almost every id is its own
 * key. Other ids are escaped, and long ones end in their digest. Two ids never share a key.
 */

import { Buffer } from "node:buffer"
import { createHash } from "node:crypto"

/** The key of an id. */
export const make = (id: string): string => {
  const escaped = escape(id)
  return escaped.length <= longest && Buffer.byteLength(escaped) <= 2 * longest
    ? escaped
    : `${escaped.slice(0, 64).toWellFormed()}%h${createHash("sha256").update(escaped).digest("hex")}`
}

/** A text without what a database may refuse. */
export const escape = (text: string): string =>
  text.isWellFormed() && !text.includes("%") && !text.includes("\u0000")
    ? text
    : text.replace(/[%\0]|\p{Surrogate}/gu, (char) => `%${char.charCodeAt(0).toString(16).padStart(4, "0")}`)

/** The text that was escaped. */
export const unescape = (text: string): string =>
  text.includes("%")
    ? text.replace(/%([0-9a-f]{4})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 16)))
    : text

// PostgreSQL has room for two of 1,024 bytes in an entry of an index.
const longest = 512
