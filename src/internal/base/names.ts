/**
 * What skills and protocols may be called.
 */

import { DefinitionInvalid } from "../../KernelError.ts"

/** Tells why no skill and no protocol can have a name, if so (AC-12). */
export const misnamed = (name: string): DefinitionInvalid | undefined =>
  /^[A-Za-z0-9_-]{1,64}$/.test(name)
    ? undefined
    : new DefinitionInvalid({ name, reason: "a name has 1 to 64 letters, digits, '_' or '-'" })
