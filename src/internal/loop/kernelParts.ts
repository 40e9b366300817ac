/**
 * What a kernel was built with, for the modules that build on it.
 */

import type * as Context from "effect/Context"

const built = new WeakMap<object, Context.Context<never>>()

/** Remembers what a kernel was built with. */
export const remember = <Shape extends object>(kernel: Shape, context: Context.Context<never>): Shape => {
  built.set(kernel, context)
  return kernel
}

/** What a kernel was built with; nothing is known of one made elsewhere. */
export const partsOf = (kernel: object): Context.Context<never> | undefined => built.get(kernel)
