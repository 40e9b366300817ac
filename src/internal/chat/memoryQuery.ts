/**
 * A search in a memory.
 */

import type { JsonObject } from "../base/json.ts"

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
