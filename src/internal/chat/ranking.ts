/**
 * How well a memory fits what is asked for.
 *
 * Words and meaning each give a score between 0 and 1. Where the query has been
 * embedded, a score is the mean of both; a text that has not been has no meaning.
 */

/** The share of the asked-for words that a text has. */
export const overlap = (asked: ReadonlyArray<string>, words: ReadonlySet<string>): number => {
  let found = 0
  for (const word of asked) if (words.has(word)) found++
  return asked.length === 0 ? 0 : found / asked.length
}

/** A vector of length 1; nothing for one that has no direction. */
export const unit = (vector: ReadonlyArray<number>): Float32Array | undefined => {
  const length = Math.hypot(...vector.slice(0, maxDimensions))
  if (vector.length === 0 || vector.length > maxDimensions || !Number.isFinite(length) || length === 0) return undefined
  return Float32Array.from(vector, (value) => value / length)
}

/** More than any model gives. */
const maxDimensions = 16_384

/** How alike two directions are, from 0 to 1. What has no direction, or one of another model, is like nothing. */
export const likeness = (a: Float32Array, b: Float32Array | undefined): number => {
  if (a.length !== b?.length) return 0
  let sum = 0
  for (let index = 0; index < a.length; index++) sum += (a[index] ?? 0) * (b[index] ?? 0)
  return Math.max(0, Math.min(1, sum))
}

/** The two scores as one. */
export const blend = (words: number, meaning: number): number => (words + meaning) / 2
