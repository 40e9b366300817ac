/**
 * Ids drawn from `Random`, so that tests repeat them.
 */

import type * as Random from "effect/Random"

/** So many times 32 random bits, in hexadecimal. */
export const randomId = (random: Random.Random, words = 1): string => {
  let id = ""
  for (let word = 0; word < words; word++) id += (random.nextIntUnsafe() >>> 0).toString(16).padStart(8, "0")
  return id
}
