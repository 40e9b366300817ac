/**
 * A vendor's own words on a failed call, written for a developer.
 */

import { type ProviderError, vendorLine } from "./providerErrors.ts"

/** The message of an error, with a vendor's own words behind it. For a terminal or a log, never for a model. */
export const withVendorWords = (error: { readonly _tag: string; readonly message: string }): string =>
  isProviderError(error) && error.vendor !== undefined ? `${error.message}: ${vendorLine(error.vendor)}` : error.message

const isProviderError = (error: { readonly _tag: string }): error is ProviderError => error._tag === "ProviderError"
