/** Makes a vendor's own text about a failed call safe: bounded, and without the key or any piece of it, however encoded. */

import type { VendorWords } from "../../KernelError.ts"
import { withoutPieces } from "../../kit/encodedSecrets.ts"
import { redact } from "../../kit/redact.ts"
import { shorten } from "../../kit/text.ts"
import { type Fields, fields, isFields, list, text } from "./readFields.ts"

/** Reads the text of an error document, which is an object in one of the vendors' forms or plain text. */
export const wordsOf = (document: unknown): VendorWords => {
  if (typeof document === "string") return plainWords(document)
  const outer = isFields(document) ? document : undefined
  // A failed response contains its error.
  const error = fields(outer, "error") ?? fields(fields(outer, "response"), "error") ?? outer
  return defined({
    message: messageOf(outer, error),
    code: wordOf(error, "code"),
    type: text(error, "type") ?? text(error, "status"),
    parameter: text(error, "param") ?? violationOf(error),
    requestId: text(outer, "request_id") ?? text(error, "request_id")
  })
}

/** Returns the vendor's id of a request, from the headers of its response. */
export const requestIdOf = (headers: { readonly [name: string]: string | undefined }): string | undefined =>
  idHeaders.map((name) => headers[name]).find((id) => id !== undefined && id !== "")

const idHeaders = ["request-id", "x-request-id", "apim-request-id", "x-goog-request-id", "x-amzn-requestid"]

/** Cuts the texts and removes secrets from them. Returns undefined if nothing is left. */
export const safeWords = (words: VendorWords | undefined, secrets: ReadonlyArray<string>): VendorWords | undefined => {
  const entries = Object.entries(words ?? {}).flatMap(([key, value]) => {
    const safe = shorten(redact(withoutPieces(value.slice(0, readLength), secrets)), wordLength)
    return safe.trim() === "" ? [] : [[key, safe]]
  })
  return entries.length === 0 ? undefined : Object.fromEntries(entries)
}

const wordLength = 2000
const readLength = 2 * wordLength

// Ignores an HTML page, which holds nothing about the call.
const plainWords = (said: string): VendorWords => (/^\s*(<|$)/.test(said) ? {} : { message: said.trim() })

const messageOf = (outer: Fields | undefined, error: Fields | undefined): string | undefined => {
  const said = text(error, "message") ?? text(outer, "error") ?? text(outer, "message") ?? text(outer, "detail")
  // A gateway puts the text of the service behind it into a field of its own.
  const raw = text(fields(error, "metadata"), "raw")
  return raw === undefined ? said : [said, raw].filter((part) => part !== undefined).join(": ")
}

const violationOf = (error: Fields | undefined): string | undefined =>
  list(error, "details")
    .flatMap((detail) => list(detail, "fieldViolations"))
    .map((violation) => text(violation, "field"))
    .find((field) => field !== undefined)

// A code may be a number, like a status.
const wordOf = (of: Fields | undefined, key: string): string | undefined => {
  const value = of?.[key]
  return typeof value === "number" ? String(value) : text(of, key)
}

const defined = (words: { readonly [K in keyof VendorWords]: string | undefined }): VendorWords =>
  Object.fromEntries(Object.entries(words).filter(([, value]) => value !== undefined))
