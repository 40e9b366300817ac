/**
 * Finds the model and the provider of a run.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { ModelError } from "../../KernelError.ts"
import { ProviderError } from "../../KernelError.ts"
import type { DialectName } from "../../Dialect.ts"
import type { Model } from "../../Model.ts"
import * as Models from "../../Model.ts"
import { ModelRegistry, modelOf as modelByName } from "../../ModelRegistry.ts"
import { Provider, type ProviderShape } from "../../Provider.ts"
import type { AnyAgent, Served } from "./run.ts"

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
): Effect.Effect<Served, ModelError> => {
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

/**
 * Finds the provider of a model that was chosen for one turn: the run's own, unless the model names another by its
 * `provider`, or as `<provider>/<model>` where a `ModelRegistry` is provided.
 */
export const chooser = (built: Context.Context<never>, current: Context.Context<never>) => {
  const registry = Context.getOrUndefined(current, ModelRegistry) ?? Context.getOrUndefined(built, ModelRegistry)
  return (chosen: Model, own: Served): Effect.Effect<Served, ModelError> => {
    const { provider } = own
    const key = chosen.provider ?? prefixOf(chosen, own, registry !== undefined)
    if (key === undefined) return Effect.succeed({ provider, model: chosen })
    if (key === provider.name || key === own.model.provider) {
      const model = chosen.provider === undefined ? modelFor(chosen.id, provider) : chosen
      return Effect.succeed({ provider, model })
    }
    if (registry === undefined) {
      const detail = `the model '${chosen.id}' is of '${key}': provide a ModelRegistry`
      return Effect.fail(new ProviderError({ provider: key, reason: "not_configured", detail }))
    }
    return chosen.provider === undefined
      ? registry.resolve(chosen.id)
      : Effect.map(registry.provider(key), (provider) => ({ provider, model: chosen }))
  }
}

/** The provider that an id names. Some providers have a slash in the ids of their models. */
const prefixOf = ({ id }: Model, own: Served, hasRegistry: boolean): string | undefined => {
  const slash = id.indexOf("/")
  return hasRegistry && slash > 0 && !own.model.id.includes("/") ? id.slice(0, slash) : undefined
}

/** The dialect of an agent, which may depend on its model. */
export const dialectOf = ({ dialect }: AnyAgent, model: Model, provider: string): DialectName =>
  dialect === "auto" ? Models.dialectOf({ provider, ...model }) : dialect

/** A model by name. A prefix that names the provider itself is not sent to the vendor. */
const modelFor = (named: Model | string, provider: ProviderShape): Model => {
  if (typeof named !== "string") return named
  const own = `${provider.name}/`
  return modelByName(provider.name, named.startsWith(own) ? named.slice(own.length) : named)
}
