/**
 * Reads what a `retry-after` header asks for: a number of seconds, or a date (R-13, RFC 9110).
 */

/** The number a header is, if it is one. */
export const numberOf = (header: string | undefined): number | undefined =>
  header === undefined || !/^\s*\d+(\.\d+)?\s*$/.test(header) ? undefined : Number(header)

/** The date a header is, if it is one, in milliseconds since the epoch. */
export const dateOf = (header: string | undefined): number | undefined => {
  // A lenient reader takes almost any word with a number for a date.
  if (header === undefined || !/\d:\d\d:\d\d/.test(header)) return undefined
  const date = Date.parse(header)
  return Number.isNaN(date) ? undefined : date
}
