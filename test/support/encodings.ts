/** The forms in which a service may repeat a key, and what is left of one in a text. */
import { randomOf } from "./random.ts"

const bytes = (text: string) => [...Buffer.from(text)].map((byte) => byte.toString(16).padStart(2, "0"))
const base64 = (text: string) => Buffer.from(text).toString("base64")
const swapped = (text: string) =>
  [...text].map((c) => (c === c.toUpperCase() ? c.toLowerCase() : c.toUpperCase())).join("")

export const encodings: { readonly [name: string]: (key: string) => string } = {
  plain: (key) => key,
  upper: (key) => key.toUpperCase(),
  lower: (key) => key.toLowerCase(),
  swapped,
  base64,
  "base64 without padding": (key) => base64(key).replace(/=+$/, ""),
  "base64 with changed case": (key) => swapped(base64(key)),
  base64url: (key) => Buffer.from(key).toString("base64url"),
  "base64 in JSON": (key) => base64(key).replaceAll("/", "\\/"),
  "base64 in a URL": (key) => encodeURIComponent(base64(key)),
  "Basic of a user": (key) => `Basic ${base64(`user:${key}`)}`,
  "Basic of a password": (key) => `Basic ${base64(`${key}:`)}`,
  "Basic of no user": (key) => `Basic ${base64(`:${key}`)}`,
  "base64 of a document": (key) => base64(JSON.stringify({ auth: { bearer: key }, more: true })),
  hex: (key) => bytes(key).join(""),
  "hex capitals": (key) => bytes(key).join("").toUpperCase(),
  "hex with colons": (key) => bytes(key).join(":"),
  "hex with spaces": (key) => bytes(key).join(" "),
  "percent, every character": (key) =>
    bytes(key)
      .map((byte) => `%${byte.toUpperCase()}`)
      .join(""),
  "percent, some characters": (key) =>
    [...key].map((c, at) => (at % 3 === 0 ? `%${c.charCodeAt(0).toString(16)}` : c)).join(""),
  "percent, twice": (key) =>
    bytes(key)
      .map((byte) => `%25${byte}`)
      .join(""),
  "JSON escapes": (key) =>
    bytes(key)
      .map((byte) => `\\u00${byte}`)
      .join(""),
  "HTML entities": (key) => [...key].map((c) => `&#${c.charCodeAt(0)};`).join("")
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=.~"

/** Keys of 16 to 64 characters, some with the beginning of a vendor. */
export const keys = (count: number, seed = 7): ReadonlyArray<string> => {
  const random = randomOf(seed)
  return Array.from({ length: count }, (_, at) => {
    const length = 16 + Math.floor(random() * 48)
    const letters = Array.from({ length }, () => alphabet[Math.floor(random() * alphabet.length)]!)
    return `${["", "sk-", "AIza", "sk-ant-"][at % 4]}${letters.join("")}`
  })
}

/** The longest piece of an encoded key that a text still holds, if it is longer than a piece that says nothing. */
export const leftOf = (text: string, encoded: string): string | undefined => {
  const [said, form] = [text.toLowerCase(), encoded.replace(/^Basic /, "").toLowerCase()]
  const width = /^(?:%|\\u|&#)/.test(form) ? 24 : 12
  for (let at = 0; at + width <= form.length; at++) {
    const piece = form.slice(at, at + width)
    if (said.includes(piece)) return piece
  }
  return undefined
}
