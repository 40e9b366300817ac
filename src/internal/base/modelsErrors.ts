/**
 * Errors of looking up a model by its name, before any call.
 */

import * as Schema from "effect/Schema"

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
