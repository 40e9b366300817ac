/**
 * Errors of finding and calling a model.
 *
 * `ProviderError` is one error for all vendors, with a `reason`. Its message holds only fixed words, because a model
 * may read it. The vendor's own description is in `vendor` and `cause`, for developers.
 */

import * as Schema from "effect/Schema"
import { FailedAttempt, ProviderReason, VendorWords, asCause, isTransient } from "./failedCall.ts"

export { FailedAttempt, ProviderReason, VendorWords, isTransient }

export { withVendorWords } from "./failedCall.ts"

/**
 * A model call failed.
 *
 * The message holds fixed words, a status and a code, never a key or the body of a response. `vendor` holds the
 * vendor's own description. It is also the `cause`, so that printing the failure shows it.
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

  /** Whether the same call may succeed a little later. */
  get isRetryable(): boolean {
    return this.shouldRetry !== false && isTransient(this.reason)
  }

  /** The vendor's description as an error without a stack. Undefined if there is none. */
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

/** A model string without a provider or without a model. */
export class InvalidModel extends Schema.TaggedError<InvalidModel>()("InvalidModel", { input: Schema.String }) {
  override get message() {
    return `'${this.input}' is not a model: expected <provider>/<model>`
  }
}

/** No provider is registered under this key. */
export class UnsupportedProvider extends Schema.TaggedError<UnsupportedProvider>()("UnsupportedProvider", {
  provider: Schema.String,
  supported: Schema.Array(Schema.String)
}) {
  override get message() {
    return `unknown provider '${this.provider}'; known: ${this.supported.join(", ")}`
  }
}

/** A known provider whose adapter, package or key is missing. */
export class ProviderUnavailable extends Schema.TaggedError<ProviderUnavailable>()("ProviderUnavailable", {
  provider: Schema.String,
  /** The npm package to install, if any. */
  package: Schema.optionalKey(Schema.String),
  /** The environment variable to set, if any. */
  variable: Schema.optionalKey(Schema.String),
  /** No adapter is registered under this key. An adapter of the AI SDK would need `package` and `variable`. */
  unregistered: Schema.optionalKey(Schema.Literal(true))
}) {
  override get message() {
    if (this.unregistered === true) {
      const needs = [this.package, this.variable].filter((need) => need !== undefined).join(" and ")
      return `no adapter is registered for provider '${this.provider}': use HttpModelRegistry.layer, or AiSdkProvider.adapters with ${needs}`
    }
    const needs = [
      this.package === undefined ? undefined : `install ${this.package}`,
      this.variable === undefined ? undefined : `set ${this.variable}`
    ].filter((need) => need !== undefined)
    return `provider '${this.provider}' is not available: ${needs.join(" and ")}`
  }
}
