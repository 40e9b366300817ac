/**
 * What a hook or middleware fails with, as the run tells it.
 */

import { ExtensionFailed, type MiddlewareTermination } from "../../KernelError.ts"
import { redact } from "./redact.ts"

/** The failure of a hook or middleware, unless it ends the run on purpose (CP-16). */
export const extensionError = (extension: string, error: unknown): ExtensionFailed | MiddlewareTermination =>
  isTermination(error) || error instanceof ExtensionFailed
    ? error
    : new ExtensionFailed({ extension, detail: redact(error instanceof Error ? error.message : String(error)) })

const isTermination = (error: unknown): error is MiddlewareTermination =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "MiddlewareTermination"
