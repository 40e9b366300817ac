/**
 * The context that a kernel was built with, for the modules that build on it.
 */

import type { Built } from "./environment.ts"

const built = new WeakMap<object, Built>()

/** Remembers the context that a kernel was built with. */
export const remember = <Shape extends object>(kernel: Shape, context: Built): Shape => {
  built.set(kernel, context)
  return kernel
}

/** The context that a kernel was built with. Undefined for a kernel that was made elsewhere. */
export const partsOf = (kernel: object): Built | undefined => built.get(kernel)
