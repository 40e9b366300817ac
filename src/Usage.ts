/**
 * Tokens a run used, as numbers that add up (CP-14).
 *
 * @since 0.1.0
 */

/** Tokens of one or more model calls: cached is part of input, reasoning part of output. */
export interface Usage {
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly outputTokens: number
  readonly reasoningTokens: number
}
