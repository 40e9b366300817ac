/**
 * Finds secrets in texts of other programs: as they are, with changed case, and in the encodings in which a service may
 * repeat them: base64 and base64url, alone and inside of a larger text such as Basic credentials, hexadecimal digits,
 * percent encoding, and the escapes of JSON and HTML.
 */

import * as Base64 from "effect/encoding/Base64"
import * as Hex from "effect/encoding/Hex"
import * as Result from "effect/Result"
import { redact } from "./redact.ts"

const hidden = "<redacted>"

// ---------------------------------------------------------------- whole secrets

/**
 * Returns a function that replaces secrets in all their forms. Secrets of fewer than `shortest` characters are replaced
 * only as they are, since their other forms occur in ordinary text.
 */
export const remover = (secrets: Iterable<string>): ((text: string) => string) => {
  // Longer secrets first, since one may be part of another.
  const known = [...new Set(secrets)].filter((secret) => secret !== "").toSorted((a, b) => b.length - a.length)
  const long = known.filter((secret) => secret.length >= shortest)
  if (long.length === 0) return (text) => withoutPlain(text, known)
  const encoded = new RegExp(long.flatMap(encodedPatterns).join("|"), "gi")
  const escaped = new RegExp(long.map(escapedPattern).join("|"), "gi")
  return (text) => {
    const clean = withoutRuns(withoutPlain(text, known), encoded)
    return /[%\\&]/.test(clean) ? clean.replace(escaped, hidden) : clean
  }
}

const shortest = 8

const withoutPlain = (text: string, secrets: ReadonlyArray<string>): string => {
  let clean = text
  for (const secret of secrets) if (clean.includes(secret)) clean = clean.replaceAll(secret, hidden)
  return clean
}

/** Replaces matches together with up to four letters of base64 around them, which also hold bits of the secret. */
const withoutRuns = (text: string, pattern: RegExp): string => {
  let clean = ""
  let end = 0
  for (const { 0: found, index } of text.matchAll(pattern)) {
    let from = index
    while (from > Math.max(end, index - around) && isLetter(text, from - 1)) from--
    clean += text.slice(end, Math.max(from, end)) + hidden
    end = index + found.length
    for (let more = 0; more < around && isLetter(text, end); more++) end++
  }
  return clean + text.slice(end)
}

const around = 4

const isLetter = (text: string, at: number): boolean => /[\w+/=-]/.test(text.charAt(at))

/** Returns patterns of a secret with changed case, as base64 and as hexadecimal digits. */
const encodedPatterns = (secret: string): ReadonlyArray<string> => {
  const bytes = new TextEncoder().encode(secret)
  const digits = Array.from(bytes, hexOf).join("[\\s:,-]{0,2}(?:0x|\\\\x)?")
  const cores = coresOf(secret).map((core) => core.replaceAll("+", "(?:[+-]|%2b)").replaceAll("/", "(?:\\\\?[/_]|%2f)"))
  return [literal(secret), digits, ...cores]
}

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&")

/** Returns the pattern of a secret whose characters are escaped, all or some of them. */
const escapedPattern = (secret: string): string => Array.from(secret, characterPattern).join("")

/** Returns the pattern of a character as it is, or escaped by a URL, JSON or HTML. */
const characterPattern = (character: string): string => {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
  const percent = Array.from(new TextEncoder().encode(character), (byte) => `%(?:25){0,3}${hexOf(byte)}`).join("")
  const escaped = units.map((unit) => `\\\\{1,8}u${unit.toString(16).padStart(4, "0")}`).join("")
  const code = character.codePointAt(0) ?? 0
  const entity = `&#(?:0{0,5}${code}|x0{0,4}${code.toString(16)});`
  return `(?:${[names[character] ?? literal(character), percent, escaped, entity].join("|")})`
}

// Escapes of escapes are bounded, so that the pattern takes linear time.
const names: { readonly [character: string]: string } = {
  '"': '\\\\{0,8}"|&quot;',
  "/": "\\\\{0,8}/",
  "\\": "\\\\{1,8}",
  "\n": "\\n|\\\\{1,8}n",
  "\t": "\\t|\\\\{1,8}t",
  "&": "&amp;|&",
  "<": "&lt;|<",
  ">": "&gt;|>",
  "'": "&apos;|'"
}

const hexOf = (byte: number): string => byte.toString(16).padStart(2, "0")

/**
 * Returns the base64 of a text, without the letters that depend on its neighbours, for each of the three places at which
 * it may begin in an encoded text.
 */
const coresOf = (text: string): ReadonlyArray<string> => {
  const bytes = new TextEncoder().encode(text)
  return [0, 1, 2].map((before) => {
    const padded = new Uint8Array(before + bytes.length)
    padded.set(bytes, before)
    return Base64.encode(padded).slice(Math.ceil((before * 8) / 6), Math.floor((padded.length * 8) / 6))
  })
}

// ---------------------------------------------------------------- pieces of secrets

/**
 * Replaces every word that holds a piece of a secret in any form, or whose content looks like a key once it is decoded.
 * Meant for short texts that matter less than the secret.
 */
export const withoutPieces = (text: string, secrets: ReadonlyArray<string>): string => {
  const { digits, letters } = piecesOf(secrets)
  return text.replace(words, (word) => {
    const plain = unescaped(word)
    const isFound =
      holds(leveled(plain), letters, pieceLength) ||
      holds(plain.toLowerCase().replace(/0x|[^0-9a-f]/g, ""), digits, digitsLength) ||
      [word.toLowerCase(), plain, ...decodings(plain)].some((content) => redact(content) !== content)
    return isFound ? hidden : word
  })
}

/** Returns whether a text holds a piece of a secret in any form. */
export const holdsPiece = (text: string, secrets: ReadonlyArray<string>): boolean =>
  withoutPieces(text, secrets) !== text

// A word, or bytes as digits with separators.
const words = /(?:\b(?:0x)?[0-9a-f]{2}[\s:,-]{1,2}){4,}(?:0x)?[0-9a-f]{2}\b|\S+/gi

const pieceLength = 5
const digitsLength = 10

const piecesOf = (secrets: ReadonlyArray<string>) => {
  const letters = new Set<string>()
  const digits = new Set<string>()
  for (const secret of secrets) {
    if (secret.length < pieceLength) continue
    for (const form of [secret, ...coresOf(secret)]) addPieces(letters, leveled(form), pieceLength)
    addPieces(digits, Hex.encode(secret), digitsLength)
  }
  return { letters, digits }
}

const addPieces = (pieces: Set<string>, text: string, length: number): void => {
  for (let at = 0; at + length <= text.length; at++) pieces.add(text.slice(at, at + length))
}

const holds = (text: string, pieces: ReadonlySet<string>, length: number): boolean => {
  if (pieces.size === 0) return false
  for (let at = 0; at + length <= text.length; at++) if (pieces.has(text.slice(at, at + length))) return true
  return false
}

/** Makes texts comparable whatever their case, and whichever alphabet of base64 they use. */
const leveled = (text: string): string => text.toLowerCase().replaceAll("-", "+").replaceAll("_", "/")

/** Decodes the escapes of URLs, JSON and HTML, also where they are escaped again. */
const unescaped = (word: string): string => {
  let text = word
  for (let round = 0; round < 3 && /[%\\&]/.test(text); round++) {
    text = text
      .replace(/(?:%[0-9a-f]{2})+/gi, (run) => utf8(run.replaceAll("%", "")) ?? run)
      .replace(/\\+u\{?([0-9a-f]{4})\}?|\\+x([0-9a-f]{2})/gi, (_, unit, byte) =>
        String.fromCharCode(parseInt(unit ?? byte, 16))
      )
      .replace(/&#(?:x([0-9a-f]{1,6})|([0-9]{1,7}));/gi, (found, hex, decimal) => {
        const code = hex === undefined ? Number(decimal) : parseInt(hex, 16)
        return code > 0x10ffff ? found : String.fromCodePoint(code)
      })
      .replace(/\\+([/"\\])/g, "$1")
  }
  return text
}

/** Returns the texts that a word holds as base64 or as hexadecimal digits. */
const decodings = (word: string): ReadonlyArray<string> =>
  [
    ...Array.from(word.matchAll(/[\w+/-]{16,}/g), ([run]) =>
      Result.getOrUndefined(Base64.decode(padded(run.replaceAll("-", "+").replaceAll("_", "/"))))
    ).map((bytes) => (bytes === undefined ? undefined : new TextDecoder().decode(bytes))),
    ...Array.from(word.matchAll(/(?:[0-9a-f]{2}[\s:,-]{0,2}(?:0x|\\x)?){12,}/gi), ([run]) =>
      utf8(run.replace(/0x|[^0-9a-f]/gi, ""))
    )
  ].filter((text) => text !== undefined)

const padded = (run: string): string => run.padEnd(Math.ceil(run.length / 4) * 4, "=")

const utf8 = (digits: string): string | undefined =>
  Result.getOrUndefined(Result.map(Hex.decode(digits), (bytes) => new TextDecoder().decode(bytes)))
