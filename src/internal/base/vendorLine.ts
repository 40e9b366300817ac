/**
 * A vendor's own words on a failed call, written for a developer.
 */

import type { VendorWords } from "./providerFacts.ts"

/** Writes them as one line, such as `Unsupported parameter (unsupported_parameter, max_tokens)`. */
export const vendorLine = ({ code, message, parameter, requestId, type }: VendorWords): string => {
  const facts = [...new Set([type, code, parameter])].filter((fact) => fact !== undefined)
  if (requestId !== undefined) facts.push(`request ${requestId}`)
  const rest = facts.length === 0 ? "" : `(${facts.join(", ")})`
  return [message, rest].filter((part) => part !== undefined && part !== "").join(" ")
}

/** The message of an error, with a vendor's own words behind it. For a terminal or a log, never for a model. */
export const withVendorWords = (error: {
  readonly _tag: string
  readonly message: string
  readonly vendor?: VendorWords
}): string =>
  error._tag === "ProviderError" && error.vendor !== undefined
    ? `${error.message}: ${vendorLine(error.vendor)}`
    : error.message

/** Returns an error with these words, whose stack is only its message: it was not made here. */
export const asCause = (provider: string, words: VendorWords): Error => {
  const error = new Error(vendorLine(words))
  error.name = provider
  error.stack = `${provider}: ${error.message}`
  return error
}
