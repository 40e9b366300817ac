/**
 * Keeps the media of a request within what its vendor accepts together: the pages and bytes of PDF files, and the bytes
 * of the request. The newest media stay.
 */

import type { PdfLimits } from "../../kit/vendorRules.ts"
import type { MediaLimits } from "./messageParts.ts"

/** The share of a request that one medium takes. */
export interface Weight {
  /** Its bytes as base64. */
  readonly bytes: number
  /** The pages of a PDF file, 0 if they are not known. */
  readonly pages: number
  /** The bytes of a PDF file. */
  readonly fileBytes: number
}

/** The media of a message that are left out, by their place, and why. */
export type Exclusions = ReadonlyMap<number, string>

export const none: Exclusions = new Map()

/** Returns why a vendor refuses a PDF file by itself. */
export const pdfRefusal = (bytes: number, pages: number | undefined, limits: PdfLimits = {}): string | undefined => {
  const { bytes: most = Infinity, pages: allowed = Infinity } = limits
  if (bytes > most) return `larger than ${most} bytes`
  return pages !== undefined && pages > allowed ? `${pages} pages, ${allowed} are allowed` : undefined
}

/** How many bytes the media of a request may have as base64, so that the whole has no more than `requestBytes`. */
export interface SizeLimit {
  readonly mediaBytes: number
  readonly requestBytes: number
}

/** The limits of one request. */
interface Allowance {
  readonly limits: MediaLimits | undefined
  readonly size: SizeLimit | undefined
  /** The context window of the model, in tokens. */
  readonly window: number | undefined
}

/**
 * Returns the media to leave out of each message, or undefined if all fit. Media are counted from the newest to the
 * oldest, and those that do not fit any more are left out.
 */
export const exclusions = (
  messages: ReadonlyArray<{ readonly weights: ReadonlyArray<Weight> }>,
  { limits, size, window }: Allowance
): ReadonlyArray<Exclusions | undefined> | undefined => {
  const pagesOfAll = pagesFor(limits?.pdf, window)
  const { bytesOfAll = Infinity } = limits?.pdf ?? {}
  const left = { bytes: size?.mediaBytes ?? Infinity, pages: pagesOfAll, fileBytes: bytesOfAll }
  const reasonOf = ({ bytes, fileBytes, pages }: Weight): string | undefined => {
    if (pages > left.pages) return `the request has more than ${pagesOfAll} pages`
    if (fileBytes > left.fileBytes) return `the files of the request are larger than ${bytesOfAll} bytes`
    if (bytes > left.bytes) return `the request is larger than ${size?.requestBytes} bytes`
    left.pages -= pages
    left.fileBytes -= fileBytes
    left.bytes -= bytes
    return undefined
  }
  const excluded: Array<Map<number, string>> = []
  for (let index = messages.length - 1; index >= 0; index--) {
    const own = messages[index]?.weights ?? []
    for (let at = own.length - 1; at >= 0; at--) {
      const weight = own[at]
      const reason = weight === undefined ? undefined : reasonOf(weight)
      if (reason !== undefined) (excluded[index] ??= new Map()).set(at, reason)
    }
  }
  return excluded.length === 0 ? undefined : excluded
}

const pagesFor = (limits: PdfLimits | undefined, window: number | undefined): number => {
  const { pagesOfAll = Infinity, pagesOfSmall } = limits ?? {}
  return pagesOfSmall !== undefined && window !== undefined && window <= pagesOfSmall.window
    ? pagesOfSmall.pages
    : pagesOfAll
}
