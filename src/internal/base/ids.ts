/**
 * Random ids, and the names skills and protocols may have.
 */

import type * as Random from "effect/Random"
import { DefinitionInvalid } from "../../KernelError.ts"

/** Returns `words` times 32 random bits in hexadecimal. Drawn from `Random`, so tests can repeat them. */
export const randomId = (random: Random.Random, words = 1): string => {
  let id = ""
  for (let word = 0; word < words; word++) id += (random.nextIntUnsafe() >>> 0).toString(16).padStart(8, "0")
  return id
}

/** Returns why a skill or protocol cannot have this name, if it cannot. */
export const misnamed = (name: string): DefinitionInvalid | undefined =>
  /^[A-Za-z0-9_-]{1,64}$/.test(name)
    ? undefined
    : new DefinitionInvalid({ name, reason: "a name has 1 to 64 letters, digits, '_' or '-'" })
