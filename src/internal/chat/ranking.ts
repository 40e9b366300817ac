/**
 * Scores how well a memory matches a query.
 *
 * Words and meaning each give a score between 0 and 1. If the query has a vector, the score is their mean; a text
 * without a vector has a meaning score of 0.
 */

/** The share of the query's words that a text contains. */
export const overlap = (asked: ReadonlyArray<string>, words: ReadonlySet<string>): number => {
  let found = 0
  for (const word of asked) if (words.has(word)) found++
  return asked.length === 0 ? 0 : found / asked.length
}

/** The vector scaled to length 1. Undefined if it has no direction. */
export const unit = (vector: ReadonlyArray<number>): Float32Array | undefined => {
  const length = Math.hypot(...vector.slice(0, maxDimensions))
  if (vector.length === 0 || vector.length > maxDimensions || !Number.isFinite(length) || length === 0) return undefined
  return Float32Array.from(vector, (value) => value / length)
}

/** More than any model returns. */
const maxDimensions = 16_384

/** The similarity of two directions, from 0 to 1. Zero if one is missing or from another model. */
export const likeness = (a: Float32Array, b: Float32Array | undefined): number => {
  if (a.length !== b?.length) return 0
  let sum = 0
  for (let index = 0; index < a.length; index++) sum += (a[index] ?? 0) * (b[index] ?? 0)
  return Math.max(0, Math.min(1, sum))
}

/** Combines the two scores. */
export const blend = (words: number, meaning: number): number => (words + meaning) / 2
