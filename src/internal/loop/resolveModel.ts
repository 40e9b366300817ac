/**
 * Finds the model and the provider of a run.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { ModelError } from "../../KernelError.ts"
import { ProviderError } from "../../KernelError.ts"
import type { Model } from "../../Model.ts"
import { ModelRegistry, modelOf as modelByName } from "../../ModelRegistry.ts"
import { Provider, type ProviderShape } from "../../Provider.ts"
import type { AnyAgent } from "./run.ts"

/**
 * The given provider, else the one that the agent's model string names, else the provider in context. The provider that a
 * run was given is that of its first agent: others that name theirs have their own.
 */
export const modelOf = (
  built: Context.Context<never>,
  current: Context.Context<never>,
  { model: named }: AnyAgent,
  given: ProviderShape | undefined,
  isFirst: boolean
): Effect.Effect<{ readonly provider: ProviderShape; readonly model: Model }, ModelError> => {
  const find = <I, S>(key: Context.Key<I, S>): S | undefined =>
    Context.getOrUndefined(current, key) ?? Context.getOrUndefined(built, key)
  const from = (provider: ProviderShape) => ({ provider, model: modelFor(named, provider) })
  const registry = find(ModelRegistry)
  if (given !== undefined && isFirst) return Effect.succeed(from(given))
  if (typeof named === "string" && named.includes("/") && registry !== undefined) return registry.resolve(named)
  if (given !== undefined) return Effect.succeed(from(given))
  const provider = find(Provider)
  if (provider !== undefined) return Effect.succeed(from(provider))
  return typeof named !== "string" && named.provider !== undefined && registry !== undefined
    ? Effect.map(registry.provider(named.provider), from)
    : Effect.fail(
        new ProviderError({
          provider: "none",
          reason: "not_configured",
          detail: "No provider configured: provide one, or a ModelRegistry for <provider>/<model>"
        })
      )
}

/** A model by name. A prefix that names the provider itself is not sent to the vendor. */
const modelFor = (named: Model | string, provider: ProviderShape): Model => {
  if (typeof named !== "string") return named
  const own = `${provider.name}/`
  return modelByName(provider.name, named.startsWith(own) ? named.slice(own.length) : named)
}
