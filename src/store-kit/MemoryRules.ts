/**
 * The rules shared by all memories: queries, limits of stored values, and scores.
 *
 * Words and meaning each give a score between 0 and 1. If the query has a vector, the score is their mean, and the order
 * is that of both ranks; a text without a vector has a meaning score of 0.
 *
 * @since 0.1.0
 */

import * as Equal from "effect/Equal"
import type { JsonObject } from "../kit/json.ts"
import * as Storable from "../kit/storable.ts"
import { wordsOf } from "../kit/text.ts"

/**
 * A query for memories.
 *
 * @category models
 * @since 0.1.0
 */
export interface Query {
  readonly query: string
  /** The largest number of results, at most 1,000. Default: 5. */
  readonly limit?: number | undefined
  /** Fields that the metadata must have, with exactly these values. */
  readonly filter?: JsonObject | undefined
  /** The smallest `score` of a result, from 0 to 1. Default: 0, which still excludes texts without any match. */
  readonly minScore?: number | undefined
}

/**
 * A parsed query.
 *
 * @category models
 * @since 0.1.0
 */
export interface Asked {
  readonly words: ReadonlyArray<string>
  readonly limit: number
  readonly minScore: number
}

/**
 * Parses a query.
 *
 * @category getters
 * @since 0.1.0
 */
export const asked = ({ limit = 5, minScore = 0, query }: Query): Asked => ({
  words: wordsOf(query.slice(0, 16_384), maxWords),
  limit: limit > 0 ? Math.min(Math.ceil(limit), maxLimit) : 0,
  minScore
})

/**
 * Returns whether metadata has all fields of a filter, with the same values.
 *
 * @category guards
 * @since 0.1.0
 */
export const passes = (metadata: JsonObject, filter: JsonObject | undefined): boolean =>
  filter === undefined ||
  Object.entries(filter).every(([key, value]) => Object.hasOwn(metadata, key) && Equal.equals(metadata[key], value))

/**
 * Returns whether a text has more than this many bytes.
 *
 * @category guards
 * @since 0.1.0
 */
export const isLonger = (text: string, bytes: number): boolean =>
  text.length > bytes || (text.length * 3 > bytes && new TextEncoder().encode(text).byteLength > bytes)

/**
 * Returns whether metadata can be stored as JSON.
 *
 * @category guards
 * @since 0.1.0
 */
export const isStorable = (metadata: JsonObject): boolean => Storable.grade(metadata) > 0

/**
 * Returns canonical JSON text, independent of the order of fields.
 *
 * @category codecs
 * @since 0.1.0
 */
export const canonical = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`
  if (typeof value !== "object" || value === null) return Storable.stringify(value)
  const fields = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join(",")}}`
}

/**
 * Scales a vector to length 1. Returns undefined if it has no direction.
 *
 * @category getters
 * @since 0.1.0
 */
export const unit = (vector: ReadonlyArray<number>): Float32Array | undefined => {
  const length = Math.hypot(...vector.slice(0, maxDimensions))
  if (vector.length === 0 || vector.length > maxDimensions || !Number.isFinite(length) || length === 0) return undefined
  return Float32Array.from(vector, (value) => value / length)
}

/**
 * Returns the similarity of two unit vectors, from 0 to 1. Zero if one is missing or from another model.
 *
 * @category getters
 * @since 0.1.0
 */
export const likeness = (a: Float32Array, b: Float32Array | undefined): number => {
  if (a.length !== b?.length) return 0
  let sum = 0
  for (let index = 0; index < a.length; index++) sum += (a[index] ?? 0) * (b[index] ?? 0)
  return Math.max(0, Math.min(1, sum))
}

/**
 * Returns how many of the best matches by words, and by meaning, are ranked together.
 *
 * @category getters
 * @since 0.1.0
 */
export const depth = ({ limit }: Pick<Asked, "limit">): number => Math.max(50, limit * 2)

/**
 * Returns the best matches, given their scores by words and, if the query has a vector, by meaning. Ids grow with time.
 *
 * The order is that of reciprocal rank fusion: a text counts by its ranks in both lists, not by scores of two kinds. The
 * score is the mean of both.
 *
 * @category combinators
 * @since 0.1.0
 */
export const ranked = (
  words: ReadonlyMap<number, number>,
  meanings: ReadonlyMap<number, number> | undefined,
  asked: Pick<Asked, "limit" | "minScore">
): ReadonlyArray<{ readonly id: number; readonly score: number }> => {
  const lists = (meanings === undefined ? [words] : [words, meanings]).map((scores) => ({
    scores,
    parts: rankParts(scores, depth(asked))
  }))
  return [...new Set(lists.flatMap(({ parts }) => [...parts.keys()]))]
    .map((id) => ({
      id,
      rank: lists.reduce((sum, { parts }) => sum + (parts.get(id) ?? 0), 0),
      score: lists.reduce((sum, { scores }) => sum + (scores.get(id) ?? 0), 0) / lists.length
    }))
    .filter(({ score }) => score > 0 && score >= asked.minScore)
    .toSorted((a, b) => b.rank - a.rank || b.score - a.score || a.id - b.id)
    .slice(0, asked.limit)
    .map(({ id, score }) => ({ id, score }))
}

/** Returns what each of the best matches adds to a rank. Equal scores have equal ranks. */
const rankParts = (scores: ReadonlyMap<number, number>, count: number): ReadonlyMap<number, number> => {
  const best = [...scores].toSorted((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, count)
  const parts = new Map<number, number>()
  let rank = 0
  for (const [index, [id, score]] of best.entries()) {
    if (score !== best[index - 1]?.[1]) rank = index + 1
    parts.set(id, 1 / (rankOffset + rank))
  }
  return parts
}

/** The usual constant of reciprocal rank fusion. */
const rankOffset = 60

/** The largest number of words of a query. More would make it slower, not better. */
const maxWords = 64

const maxLimit = 1_000

/** The largest number of dimensions, more than any model returns. */
const maxDimensions = 16_384
