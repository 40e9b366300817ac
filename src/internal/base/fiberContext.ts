/**
 * Services and references of the running fiber, and those of the layer that a kernel was built in.
 */

import * as Context from "effect/Context"

/** A service of the running fiber, else of the layer. */
export const service = <I, S>(
  built: Context.Context<never>,
  current: Context.Context<never>,
  key: Context.Key<I, S>
): S | undefined => Context.getOrUndefined(current, key) ?? Context.getOrUndefined(built, key)

/** A reference of the running fiber, else of the layer. */
export const reference = <A>(
  built: Context.Context<never>,
  current: Context.Context<never>,
  key: Context.Reference<A>
): A => Context.get(current.mapUnsafe.has(key.key) ? current : built, key)
