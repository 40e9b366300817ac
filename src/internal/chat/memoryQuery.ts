/**
 * A search in a memory.
 */

import type { JsonObject } from "../base/json.ts"

/**
 * What to look for.
 *
 * @category models
 * @since 0.1.0
 */
export interface Query {
  readonly query: string
  /** At most 1,000. Default: 5. */
  readonly limit?: number | undefined
  /** Fields the metadata must have, with exactly these values. */
  readonly filter?: JsonObject | undefined
  /** The least `score` that is found, from 0 to 1. Default: 0, which still leaves out what does not fit at all. */
  readonly minScore?: number | undefined
}
