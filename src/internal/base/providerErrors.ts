/**
 * Errors of calling a model.
 *
 * `ProviderError` is one error for all vendors, with the reason as a word. Its texts never contain a key or the body of
 * a vendor's response.
 */

import * as Schema from "effect/Schema"

/**
 * Why a model call failed.
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
  "unknown"
])
/** One of the reasons for which a model call fails. */
export type ProviderReason = typeof ProviderReason.Type

/** A model call failed. The texts never contain a key or the body of a vendor's response. */
export class ProviderError extends Schema.TaggedError<ProviderError>()("ProviderError", {
  provider: Schema.String,
  reason: ProviderReason,
  detail: Schema.String,
  status: Schema.optionalKey(Schema.Int),
  /** Milliseconds since the epoch before which another try is useless. */
  retryAt: Schema.optionalKey(Schema.Finite),
  /** How many calls were made before giving up. */
  attempts: Schema.optionalKey(Schema.Int)
}) {
  override get message() {
    return `${this.provider}: ${this.detail === "" ? this.reason : this.detail}`
  }
}

/** The prompt is too long: `limit` is the agent's context window minus its `reservedOutputTokens`. No call was made. */
export class ContextWindowExceeded extends Schema.TaggedError<ContextWindowExceeded>()("ContextWindowExceeded", {
  estimated: Schema.Int,
  limit: Schema.Int
}) {
  override get message() {
    return `the prompt needs about ${this.estimated} tokens, ${this.limit} fit beside reservedOutputTokens`
  }
}
