/** Converts the usage in replies. */

import type { ReportedUsage } from "../../StreamPart.ts"

/** Returns the tokens of a prompt, some of which were read from a cache. Ignores a cache count above the prompt's. */
export const promptTokens = (
  total: number | undefined,
  cacheRead: number | undefined
): ReportedUsage["inputTokens"] => ({
  total,
  cacheRead,
  uncached: total !== undefined && cacheRead !== undefined && cacheRead <= total ? total - cacheRead : undefined
})
