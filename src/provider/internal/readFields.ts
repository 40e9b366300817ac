/**
 * Reads fields of a vendor's JSON without trusting it.
 *
 * A field of an unexpected type counts as absent, so decoders stay simple and hostile values go no further.
 */

/** A JSON object of unknown fields. */
export type Fields = { readonly [key: string]: unknown }

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Returns the object in a field. */
export const fields = (of: Fields | undefined, key: string): Fields | undefined => {
  const value = of?.[key]
  return isFields(value) ? value : undefined
}

/** Returns the string in a field. */
export const string = (of: Fields | undefined, key: string): string | undefined => {
  const value = of?.[key]
  return typeof value === "string" ? value : undefined
}

/** Returns the string in a field, if it is not empty. */
export const text = (of: Fields | undefined, key: string): string | undefined => {
  const value = of?.[key]
  return typeof value === "string" && value !== "" ? value : undefined
}

/** Returns the whole, non-negative number in a field. */
export const count = (of: Fields | undefined, key: string): number | undefined => {
  const value = of?.[key]
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/** Returns the objects of a list in a field, without its other elements. */
export const list = (of: Fields | undefined, key: string): ReadonlyArray<Fields> => {
  const value = of?.[key]
  return Array.isArray(value) ? value.filter(isFields) : []
}

/** Returns the strings of a list in a field, without its other elements. */
export const strings = (of: Fields | undefined, key: string): ReadonlyArray<string> => {
  const value = of?.[key]
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : []
}

/**
 * Returns the first of several alternative answers in a list. They may arrive one by one, so those with another index
 * are left out.
 */
export const firstAnswer = (of: Fields | undefined, key: string): Fields | undefined =>
  list(of, key).find(({ index }) => index === undefined || index === null || index === 0)

/** Returns the sum of counts, or undefined if none is known. */
export const sum = (...counts: ReadonlyArray<number | undefined>): number | undefined => {
  let total: number | undefined
  for (const value of counts) if (value !== undefined) total = (total ?? 0) + value
  return total
}

/** Parses a text. Returns undefined if it is not JSON. */
export const parse = (source: string): unknown => {
  try {
    return JSON.parse(source)
  } catch {
    return undefined
  }
}
