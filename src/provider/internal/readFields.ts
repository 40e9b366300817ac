/**
 * Reads fields of a vendor's JSON without trusting it.
 *
 * A field of an unexpected type counts as absent, so decoders stay simple and no hostile value gets further.
 */

/** A JSON object of unknown fields. */
export type Fields = { readonly [key: string]: unknown }

/** Tells whether a value is a JSON object. */
export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The object in a field. */
export const fields = (of: Fields | undefined, key: string): Fields | undefined => {
  const value = of?.[key]
  return isFields(value) ? value : undefined
}

/** The string in a field. */
export const string = (of: Fields | undefined, key: string): string | undefined => {
  const value = of?.[key]
  return typeof value === "string" ? value : undefined
}

/** The string in a field, if it is not empty. */
export const text = (of: Fields | undefined, key: string): string | undefined => {
  const value = of?.[key]
  return typeof value === "string" && value !== "" ? value : undefined
}

/** The whole, non-negative number in a field. */
export const count = (of: Fields | undefined, key: string): number | undefined => {
  const value = of?.[key]
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined
}

/** The objects of a list in a field, without its other elements. */
export const list = (of: Fields | undefined, key: string): ReadonlyArray<Fields> => {
  const value = of?.[key]
  return Array.isArray(value) ? value.filter(isFields) : []
}

/** The strings of a list in a field, without its other elements. */
export const strings = (of: Fields | undefined, key: string): ReadonlyArray<string> => {
  const value = of?.[key]
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : []
}

/** The first of several answers in a list, which may arrive one by one: those with another index are left out. */
export const firstAnswer = (of: Fields | undefined, key: string): Fields | undefined =>
  list(of, key).find(({ index }) => index === undefined || index === null || index === 0)

/** The sum of counts, absent when none is known. */
export const sum = (...counts: ReadonlyArray<number | undefined>): number | undefined => {
  let total: number | undefined
  for (const value of counts) if (value !== undefined) total = (total ?? 0) + value
  return total
}

/** The JSON value of a text, or undefined if it is not JSON. */
export const parse = (source: string): unknown => {
  try {
    return JSON.parse(source)
  } catch {
    return undefined
  }
}
