/**
 * A failed call of a model, a store or a server: why it failed, in whose words, and when another try may help.
 *
 * The reasons that may pass are decided here, for the errors of `modelErrors.ts` and for every retry.
 */

import * as Schema from "effect/Schema"
import { isRecord } from "./json.ts"
import { StoreError } from "./storeErrors.ts"

/**
 * The reason why a model call failed.
 *
 * `rate_limited`, `overloaded`, `server_error`, `disconnected`, `timeout` and `incomplete` may pass. All others need a
 * different request, key or model.
 */
export const ProviderReason = Schema.Literals([
  "not_configured",
  "authentication",
  "permission",
  "invalid_request",
  "not_found",
  "rate_limited",
  "quota_exhausted",
  "overloaded",
  "server_error",
  "disconnected",
  "timeout",
  "incomplete",
  "invalid_response",
  "content_filter",
  "refusal",
  "context_length",
  "redirect",
  "limit_exceeded",
  "forbidden",
  "unknown"
])

/** One of the reasons for which a model call fails. */
export type ProviderReason = typeof ProviderReason.Type

/**
 * A vendor's own words on a failed call, as far as its response has them: without secrets and cut at 2,000 characters each.
 *
 * They are for developers and logs. No model reads them.
 */
export const VendorWords = Schema.Struct({
  message: Schema.optionalKey(Schema.String),
  code: Schema.optionalKey(Schema.String),
  type: Schema.optionalKey(Schema.String),
  /** The field of the request that is meant. */
  parameter: Schema.optionalKey(Schema.String),
  /** The vendor's id of the request, for its support. */
  requestId: Schema.optionalKey(Schema.String)
})

/** A vendor's own words on a failed call. */
export type VendorWords = typeof VendorWords.Type

/** A call that failed and was made again. */
export const FailedAttempt = Schema.Struct({
  provider: Schema.String,
  reason: ProviderReason,
  detail: Schema.String,
  status: Schema.optionalKey(Schema.Int),
  vendor: Schema.optionalKey(VendorWords),
  /** When it failed, in milliseconds since the epoch. */
  failedAt: Schema.Finite
})

/** A call that failed and was made again. */
export type FailedAttempt = typeof FailedAttempt.Type

/** Writes a vendor's own words as one line for a developer, such as `Unsupported parameter (unsupported_parameter, max_tokens)`. */
export const vendorLine = ({ code, message, parameter, requestId, type }: VendorWords): string => {
  const facts = [...new Set([type, code, parameter])].filter((fact) => fact !== undefined)
  if (requestId !== undefined) facts.push(`request ${requestId}`)
  const rest = facts.length === 0 ? "" : `(${facts.join(", ")})`
  return [message, rest].filter((part) => part !== undefined && part !== "").join(" ")
}

/** The message of an error, with a vendor's own words behind it. For a terminal or a log, never for a model. */
export const withVendorWords = (error: {
  readonly _tag: string
  readonly message: string
  readonly vendor?: VendorWords
}): string =>
  error._tag === "ProviderError" && error.vendor !== undefined
    ? `${error.message}: ${vendorLine(error.vendor)}`
    : error.message

/** Returns an error with these words, whose stack is only its message: it was not made here. */
export const asCause = (provider: string, words: VendorWords): Error => {
  const error = new Error(vendorLine(words))
  error.name = provider
  error.stack = `${provider}: ${error.message}`
  return error
}

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

const unconnected: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT"
])

const codeShape = /^[A-Za-z]\w{1,63}$/
