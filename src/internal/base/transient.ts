/**
 * Failures that pass: of a model call, and of a store.
 */

import { type ProviderReason, StoreError } from "../../KernelError.ts"

/** Why a call failed that may succeed a little later. */
export const passing: ReadonlySet<unknown> = new Set<ProviderReason>([
  "rate_limited",
  "overloaded",
  "server_error",
  "disconnected",
  "timeout",
  "incomplete"
])

/** Whether a store may take a little later what it did not take now. */
export const isHiccup = (error: unknown): error is StoreError =>
  error instanceof StoreError && (error.reason === "unavailable" || error.reason === "timeout")
