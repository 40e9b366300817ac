/**
 * Errors of calling a model.
 *
 * `ProviderError` is one error for all vendors, with the reason as a word. Its message holds fixed words only, since a
 * model may read it; the vendor's own words stand in `vendor` and in `cause`, for developers.
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
  "forbidden",
  "unknown"
])
/** One of the reasons for which a model call fails. */
export type ProviderReason = typeof ProviderReason.Type

/** The reasons of a failed model call that may succeed a little later. */
export const passing: ReadonlySet<unknown> = new Set<ProviderReason>([
  "rate_limited",
  "overloaded",
  "server_error",
  "disconnected",
  "timeout",
  "incomplete"
])

/**
 * A vendor's own words on a failed call, as far as its answer has them: without secrets and cut at 2,000 characters each.
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

/** Writes a vendor's words as one line, such as `Unsupported parameter (unsupported_parameter, max_tokens)`. */
export const vendorLine = ({ code, message, parameter, requestId, type }: VendorWords): string => {
  const facts = [...new Set([type, code, parameter])].filter((fact) => fact !== undefined)
  if (requestId !== undefined) facts.push(`request ${requestId}`)
  const rest = facts.length === 0 ? "" : `(${facts.join(", ")})`
  return [message, rest].filter((part) => part !== undefined && part !== "").join(" ")
}

/** Returns an error with these words, whose stack is only its message: it was not made here. */
export const asCause = (provider: string, words: VendorWords): Error => {
  const error = new Error(vendorLine(words))
  error.name = provider
  error.stack = `${provider}: ${error.message}`
  return error
}

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
 * A model call failed.
 *
 * The message holds fixed words, a status and a code, never a key or the body of a response. `vendor` holds the vendor's
 * own words; they are the `cause` as well, so that printing the failure shows them.
 */
export class ProviderError extends Schema.TaggedError<ProviderError>()("ProviderError", {
  provider: Schema.String,
  reason: ProviderReason,
  detail: Schema.String,
  status: Schema.optionalKey(Schema.Int),
  /** Milliseconds since the epoch before which another try is useless. */
  retryAt: Schema.optionalKey(Schema.Finite),
  /** How many calls were made before giving up. */
  attempts: Schema.optionalKey(Schema.Int),
  /** The calls that failed before this one, oldest first. */
  history: Schema.optionalKey(Schema.Array(FailedAttempt)),
  vendor: Schema.optionalKey(VendorWords),
  /** False if the vendor says that trying again is useless, whatever the reason. */
  shouldRetry: Schema.optionalKey(Schema.Boolean)
}) {
  override get message() {
    return `${this.provider}: ${this.detail === "" ? this.reason : this.detail}`
  }

  /** Can the same call succeed a little later? */
  get isRetryable(): boolean {
    return this.shouldRetry !== false && passing.has(this.reason)
  }

  /** The vendor's words as an error without a stack. Undefined if it gave none. */
  override get cause(): Error | undefined {
    return this.vendor === undefined ? undefined : asCause(this.provider, this.vendor)
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
