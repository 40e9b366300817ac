/**
 * Texts as files hold them: their encoding, byte order mark and line ends survive an edit.
 */

import * as Result from "effect/Result"

/** How the bytes of a file hold its text. */
export interface TextForm {
  readonly encoding: "utf-8" | "utf-16le" | "utf-16be" | "latin1"
  readonly hasMark: boolean
  readonly lineEnd: "\n" | "\r\n"
}

/** The text of a file, with the line ends that it has. */
export interface TextFile extends TextForm {
  readonly text: string
}

/** The form of a new file. */
export const plain: TextForm = { encoding: "utf-8", hasMark: false, lineEnd: "\n" }

/** Reads bytes as text. Undefined if they hold none: a NUL byte, except in UTF-16 with its mark. */
export const decode = (bytes: Uint8Array): TextFile | undefined => {
  const [first, second] = bytes
  if (first === 0xff && second === 0xfe) return wide(bytes, "utf-16le")
  if (first === 0xfe && second === 0xff) return wide(bytes, "utf-16be")
  if (bytes.includes(0)) return undefined
  const hasMark = first === 0xef && second === 0xbb && bytes[2] === 0xbf
  const body = hasMark ? bytes.subarray(3) : bytes
  const text = Result.try(() => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body))
  return Result.isSuccess(text)
    ? formed(text.success, "utf-8", hasMark)
    : // Each byte is one character, so that all bytes survive.
      formed(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""), "latin1", false)
}

const wide = (bytes: Uint8Array, encoding: "utf-16le" | "utf-16be"): TextFile | undefined => {
  if (bytes.length % 2 !== 0) return undefined
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const units: Array<string> = []
  for (let at = 2; at < bytes.length; at += 2)
    units.push(String.fromCharCode(view.getUint16(at, encoding === "utf-16le")))
  return formed(units.join(""), encoding, true)
}

const formed = (text: string, encoding: TextForm["encoding"], hasMark: boolean): TextFile => {
  const windows = text.split("\r\n").length - 1
  const all = text.split("\n").length - 1
  return { text, encoding, hasMark, lineEnd: windows * 2 > all ? "\r\n" : "\n" }
}

/** Writes a text in the form of its file. Undefined if the encoding has no such character. */
export const encode = (text: string, { encoding, hasMark }: TextForm): Uint8Array | undefined => {
  switch (encoding) {
    case "utf-8":
      return new TextEncoder().encode(hasMark ? `\ufeff${text}` : text)
    case "latin1":
      return /[^\0-\xff]/.test(text) ? undefined : Uint8Array.from(text, (char) => char.charCodeAt(0))
    default: {
      const marked = `\ufeff${text}`
      const bytes = new Uint8Array(marked.length * 2)
      const view = new DataView(bytes.buffer)
      for (let at = 0; at < marked.length; at++) view.setUint16(at * 2, marked.charCodeAt(at), encoding === "utf-16le")
      return bytes
    }
  }
}

/** Writes the line ends of a text as a file has them. Models write `\n`. */
export const withLineEnds = (text: string, lineEnd: TextForm["lineEnd"]): string =>
  lineEnd === "\n" ? text : text.replace(/\r?\n/g, "\r\n")
