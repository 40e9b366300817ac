/**
 * Usage as replies report it.
 */

import type { ReportedUsage } from "../../StreamPart.ts"

/** The tokens of a prompt, some of which were read from a cache. A cache count above the prompt's is ignored. */
export const promptTokens = (
  total: number | undefined,
  cacheRead: number | undefined
): ReportedUsage["inputTokens"] => ({
  total,
  cacheRead,
  uncached: total !== undefined && cacheRead !== undefined && cacheRead <= total ? total - cacheRead : undefined
})
