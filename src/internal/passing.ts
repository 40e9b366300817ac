/**
 * Failures of a model call that pass.
 *
 * @since 0.1.0
 */
import type { ProviderReason } from "../KernelError.ts"

/** Why a call failed that may succeed a little later. */
export const passing: ReadonlySet<unknown> = new Set<ProviderReason>([
  "rate_limited",
  "overloaded",
  "server_error",
  "disconnected",
  "timeout",
  "incomplete"
])
