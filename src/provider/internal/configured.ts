/**
 * Builds a provider from the key and the address in the configuration.
 *
 * Without a key, building the layer fails with `ProviderUnavailable`, which names the variable, so a program that could
 * not reach its model does not start.
 */

import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import type { HttpClient } from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import { findKey, findText } from "../../kit/variables.ts"
import { ProviderUnavailable } from "../../KernelError.ts"
import { Provider, type ProviderShape } from "../../Provider.ts"

/** Builds a provider from the environment: its key and, if its variable is set, its address. */
export const fromEnvironment = <Key, E>(options: {
  readonly key: () => Effect.Effect<Key, E>
  readonly address: string
  readonly make: (found: {
    readonly apiKey: Key
    readonly baseUrl: string | undefined
  }) => Effect.Effect<ProviderShape, never, HttpClient>
}): Effect.Effect<ProviderShape, E, HttpClient> =>
  Effect.gen(function* () {
    const apiKey = yield* options.key()
    const baseUrl = yield* findText(options.address)
    return yield* options.make({ apiKey, baseUrl })
  })

/** A provider that reads its settings from the configuration. */
interface Configured<Options, E> {
  readonly fromConfig: Effect.Effect<ProviderShape, E, HttpClient>
  readonly layer: Layer.Layer<Provider, E, HttpClient>
  readonly layerConfig: (options: Config.Wrap<Options>) => Layer.Layer<Provider, Config.ConfigError, HttpClient>
}

/** Builds the effect and the layers of a provider from its constructor, and from how its key and address are found. */
export const configured = <Options, Key, E>(options: {
  readonly key: () => Effect.Effect<Key, E>
  readonly address: string
  readonly make: (
    found: Options | { readonly apiKey: Key; readonly baseUrl: string | undefined }
  ) => Effect.Effect<ProviderShape, never, HttpClient>
}): Configured<Options, E> => {
  const fromConfig = fromEnvironment(options)
  return { fromConfig, layer: Layer.effect(Provider, fromConfig), layerConfig: layerOf<Options>(options.make) }
}

/** Creates the layer of a provider whose options come from a `Config`. */
export const layerOf =
  <Options>(make: (options: Options) => Effect.Effect<ProviderShape, never, HttpClient>) =>
  (options: Config.Wrap<Options>): Layer.Layer<Provider, Config.ConfigError, HttpClient> =>
    Layer.effect(Provider, Effect.flatMap(Config.unwrap(options), make))

/** Returns the first of `variables` that is set and not empty. If none is, fails with an error that names the first. */
export const requireKey = (
  provider: string,
  variables: readonly [string, ...Array<string>]
): Effect.Effect<Redacted.Redacted, ProviderUnavailable> =>
  Effect.filterOrFail(
    findKey(variables),
    (key) => key !== undefined,
    () => new ProviderUnavailable({ provider, variable: variables[0] })
  )
