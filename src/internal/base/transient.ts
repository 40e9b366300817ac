/**
 * Failures that may pass: which ones, what the system says about them, and when to try again.
 */

import type { ProviderReason } from "./providerFacts.ts"
import { StoreError } from "./storeErrors.ts"
import { isRecord } from "./json.ts"

/** The reasons of a failed model call that may succeed a little later. */
export const passing: ReadonlySet<unknown> = new Set<ProviderReason>([
  "rate_limited",
  "overloaded",
  "server_error",
  "disconnected",
  "timeout",
  "incomplete"
])

/** Is this a failure of a store that may succeed a little later? */
export const isHiccup = (error: unknown): error is StoreError =>
  error instanceof StoreError && (error.reason === "unavailable" || error.reason === "timeout")

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

/** Is this the failure of a connection that was never made, so that nothing was sent? */
export const isUnconnected = (error: unknown): boolean => unconnected.has(errorCode(error) ?? "")

const unconnected: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT"
])

const codeShape = /^[A-Za-z]\w{1,63}$/

/** Reads a `retry-after` header that is a number. */
export const retryAfterNumber = (header: string | undefined): number | undefined =>
  header === undefined || !/^\s*\d+(\.\d+)?\s*$/.test(header) ? undefined : Number(header)

/** Reads a `retry-after` header that is a date, as milliseconds since the epoch. */
export const retryAfterDate = (header: string | undefined): number | undefined => {
  // `Date.parse` takes almost any word with a number for a date, so a time of day is required.
  if (header === undefined || !/\d:\d\d:\d\d/.test(header)) return undefined
  const date = Date.parse(header)
  return Number.isNaN(date) ? undefined : date
}
