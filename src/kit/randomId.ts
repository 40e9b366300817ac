/** Random ids. */

import type * as Random from "effect/Random"

/** Returns `words` times 32 random bits in hexadecimal. Drawn from `Random`, so tests can repeat them. */
export const randomId = (random: Random.Random, words = 1): string => {
  let id = ""
  for (let word = 0; word < words; word++) id += (random.nextIntUnsafe() >>> 0).toString(16).padStart(8, "0")
  return id
}
