/**
 * The system's code of an error, such as `ENOTFOUND` or `CERT_HAS_EXPIRED`.
 */

import { isRecord } from "./untrusted.ts"

/** The first code down the causes of an error. */
export const errorCode = (error: unknown): string | undefined => {
  let current = error
  for (let depth = 0; depth < 8 && isRecord(current); depth++) {
    const { cause, code, errors, reason } = current
    if (typeof code === "string" && shape.test(code)) return code
    // A host with several addresses fails with one error for each.
    const inner: unknown = Array.isArray(errors) ? errors[0] : undefined
    current = inner ?? reason ?? cause
  }
  return undefined
}

const shape = /^[A-Za-z]\w{1,63}$/
