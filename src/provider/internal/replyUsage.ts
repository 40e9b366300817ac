/**
 * Usage as replies report it.
 */

import type { ReportedUsage } from "../../StreamPart.ts"

/** The tokens of a prompt, of which some were read from a cache; a cache larger than its prompt tells nothing. */
export const promptTokens = (
  total: number | undefined,
  cacheRead: number | undefined
): ReportedUsage["inputTokens"] => ({
  total,
  cacheRead,
  uncached: total !== undefined && cacheRead !== undefined && cacheRead <= total ? total - cacheRead : undefined
})
