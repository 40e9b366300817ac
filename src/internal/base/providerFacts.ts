/**
 * What is known of a failed model call.
 */

import * as Schema from "effect/Schema"

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
