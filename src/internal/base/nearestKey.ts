/**
 * Names the key that was probably meant.
 */

/** Returns the end of a sentence about an unknown key: the known key nearest to it, or all of them if none is near. */
export const nearestKey = (key: string, known: ReadonlyArray<string>): string => {
  const edits = (other: string) => editsBetween(key.slice(0, 60).toLowerCase(), other.toLowerCase())
  const [near = ""] = known.toSorted((a, b) => edits(a) - edits(b))
  return edits(near) <= Math.min(3, near.length / 2) ? `; did you mean '${near}'?` : `; known keys: ${known.join(", ")}`
}

/** Keys of a user's own, such as anchors of YAML, begin with `x-` or `x_`. */
export const isOwnKey = (key: string): boolean => /^x[-_]/.test(key)

const editsBetween = (from: string, to: string): number => {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1]
    for (const [index, other] of [...to].entries()) {
      const [left = 0, above = 0, both = 0] = [next[index], row[index + 1], row[index]]
      next.push(Math.min(left + 1, above + 1, both + (letter === other ? 0 : 1)))
    }
    row = next
  }
  return row.at(-1) ?? 0
}
