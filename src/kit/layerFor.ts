/**
 * Layers of a module that depend on what their user provides.
 *
 * A layer is built once for all places of a program that provide it, so a constant layer would answer every place with
 * the services of the first one.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { perObject } from "./perObject.ts"

/** Creates a layer that is built once for each value of a service, and shared by the places that provide this value. */
export const layerFor = <I, S, A, E, R>(
  key: Context.Key<I, S>,
  make: () => Layer.Layer<A, E, R>
): Layer.Layer<A, E, R | I> => {
  const none = make()
  const layerOf = perObject(make)
  return Layer.fromBuild((memoMap, scope) =>
    Effect.flatMap(key, (service) =>
      Layer.buildWithMemoMap(isObject(service) ? layerOf(service) : none, memoMap, scope)
    )
  )
}

const isObject = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function"
