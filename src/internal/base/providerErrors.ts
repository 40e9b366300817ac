/**
 * A model that was asked, or was about to be, and did not answer.
 *
 * `ProviderError` is one error for every vendor, with the reason as a word; its
 * texts never hold a key or what a vendor's body said.
 */

import * as Schema from "effect/Schema"

/**
 * Why a model call failed.
 *
 * `rate_limited`, `overloaded`, `server_error`, `disconnected`, `timeout` and `incomplete` may pass;
 * the rest needs a change of request, key or model.
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

/** A model call failed (BP-44, AC-3). The texts never hold a key or a vendor's body. */
export class ProviderError extends Schema.TaggedError<ProviderError>()("ProviderError", {
  provider: Schema.String,
  reason: ProviderReason,
  detail: Schema.String,
  status: Schema.optionalKey(Schema.Int),
  /** Milliseconds since the epoch before which trying again is useless. */
  retryAt: Schema.optionalKey(Schema.Finite),
  /** How many calls were made before giving up. */
  attempts: Schema.optionalKey(Schema.Int)
}) {
  override get message() {
    return `${this.provider}: ${this.detail === "" ? this.reason : this.detail}`
  }
}

/**
 * The prompt does not fit the window (AC-9): `limit` is what the agent's `reservedOutputTokens` leave of it. No call was
 * made.
 */
export class ContextWindowExceeded extends Schema.TaggedError<ContextWindowExceeded>()("ContextWindowExceeded", {
  estimated: Schema.Int,
  limit: Schema.Int
}) {
  override get message() {
    return `the prompt needs about ${this.estimated} tokens, ${this.limit} fit beside reservedOutputTokens`
  }
}
