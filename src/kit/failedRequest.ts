/**
 * Reads a failed request to a server: the system's error code, whether anything was sent, and when to try again.
 */

import { isRecord } from "./json.ts"

/** Returns the first system code in an error and its causes, such as `ENOTFOUND` or `CERT_HAS_EXPIRED`. */
export const errorCode = (error: unknown): string | undefined => {
  let current = error
  for (let depth = 0; depth < 8 && isRecord(current); depth++) {
    const { cause, code, errors, reason } = current
    if (typeof code === "string" && codeShape.test(code)) return code
    // Connecting to a host with several addresses fails with one error for each.
    const inner: unknown = Array.isArray(errors) ? errors[0] : undefined
    current = inner ?? reason ?? cause
  }
  return undefined
}

/** Returns whether a connection was never established, so that nothing was sent. */
export const isUnconnected = (error: unknown): boolean => unconnected.has(errorCode(error) ?? "")

/** Parses a `retry-after` header that is a number. */
export const retryAfterNumber = (header: string | undefined): number | undefined =>
  header === undefined || !/^\s*\d+(\.\d+)?\s*$/.test(header) ? undefined : Number(header)

/** Parses a `retry-after` header that is a date, as milliseconds since the epoch. */
export const retryAfterDate = (header: string | undefined): number | undefined => {
  // `Date.parse` accepts almost any word with a number, so a time of day is required.
  if (header === undefined || !/\d:\d\d:\d\d/.test(header)) return undefined
  const date = Date.parse(header)
  return Number.isNaN(date) ? undefined : date
}

const unconnected: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT"
])

const codeShape = /^[A-Za-z]\w{1,63}$/
