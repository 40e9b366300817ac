/**
 * Failed calls of a model, a store or a server: the reason, the vendor's message, and whether a retry may help.
 *
 * Decides which reasons are transient, for the errors of `modelErrors.ts` and for every retry.
 */

import * as Schema from "effect/Schema"
import { StoreError } from "./storeErrors.ts"

/**
 * The reason why a model call failed.
 *
 * `rate_limited`, `overloaded`, `server_error`, `disconnected`, `timeout` and `incomplete` are transient. All others
 * need a different request, key or model.
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
 * A vendor's own description of a failed call, as far as its response has one: redacted, and cut at 2,000 characters
 * per field.
 *
 * It is meant for developers and logs, and never shown to a model.
 */
export const VendorWords = Schema.Struct({
  message: Schema.optionalKey(Schema.String),
  code: Schema.optionalKey(Schema.String),
  type: Schema.optionalKey(Schema.String),
  /** The field of the request that caused the failure. */
  parameter: Schema.optionalKey(Schema.String),
  /** The vendor's id of the request, for its support. */
  requestId: Schema.optionalKey(Schema.String)
})

/** A vendor's own description of a failed call. */
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

/**
 * Formats a vendor's own description as one line for a developer, such as `Unsupported parameter
 * (unsupported_parameter, max_tokens)`.
 */
export const vendorLine = ({ code, message, parameter, requestId, type }: VendorWords): string => {
  const facts = [...new Set([type, code, parameter])].filter((fact) => fact !== undefined)
  if (requestId !== undefined) facts.push(`request ${requestId}`)
  const rest = facts.length === 0 ? "" : `(${facts.join(", ")})`
  return [message, rest].filter((part) => part !== undefined && part !== "").join(" ")
}

/**
 * Returns the message of an error, followed by the vendor's own description. For a terminal or a log, never for a
 * model.
 */
export const withVendorWords = (error: {
  readonly _tag: string
  readonly message: string
  readonly vendor?: VendorWords
}): string =>
  error._tag === "ProviderError" && error.vendor !== undefined
    ? `${error.message}: ${vendorLine(error.vendor)}`
    : error.message

/** Returns an error with the vendor's description. Its stack is only its message, because it did not originate here. */
export const asCause = (provider: string, words: VendorWords): Error => {
  const error = new Error(vendorLine(words))
  error.name = provider
  error.stack = `${provider}: ${error.message}`
  return error
}

/** Returns whether a failure for this reason may pass by itself, so that the same call may succeed a little later. */
export const isTransient = (reason: unknown): boolean => transient.has(reason)

const transient: ReadonlySet<unknown> = new Set<ProviderReason>([
  "rate_limited",
  "overloaded",
  "server_error",
  "disconnected",
  "timeout",
  "incomplete"
])

/** Returns whether an error is a transient failure of a store. */
export const isHiccup = (error: unknown): error is StoreError =>
  error instanceof StoreError && (error.reason === "unavailable" || error.reason === "timeout")
