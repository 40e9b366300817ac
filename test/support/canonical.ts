/**
 * One text for each JSON value, whatever the order of its keys.
 */

export const canonical = (value: unknown): string => JSON.stringify(sorted(value)) ?? "undefined"

const sorted = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)])
  )
}
