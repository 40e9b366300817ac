/**
 * Errors raised by a host's code: whether one can be read and stored as it is, and the error that wraps all others.
 */

import * as KernelError from "../../KernelError.ts"
import { ExtensionFailed, MiddlewareTermination } from "../../KernelError.ts"
import { attempt, field, hasTag, messageOf } from "../../kit/foreignCode.ts"

/** Wraps the failure of a hook or middleware, except for `MiddlewareTermination`. */
export const extensionError = (extension: string, error: unknown): ExtensionFailed | MiddlewareTermination => {
  if (hasTag(error, "MiddlewareTermination")) {
    return new MiddlewareTermination({ reason: messageOf(field(error, "reason")) })
  }
  return isSound(error) && error._tag === "ExtensionFailed"
    ? error
    : new ExtensionFailed({ extension, detail: messageOf(error) })
}

/** Returns whether a value is an error of the kernel that can be read and stored. */
export const isSound = (error: unknown): error is KernelError.KernelError =>
  attempt(() => KernelError.isKernelError(error) && typeof error.message === "string", false)
