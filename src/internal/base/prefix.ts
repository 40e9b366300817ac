/**
 * Common beginnings of lists.
 */

/** Returns how many items two lists share at their beginning. Shared values are the same object, by default. */
export const commonPrefix = <A>(
  before: ReadonlyArray<A>,
  after: ReadonlyArray<A>,
  isSame: (a: A | undefined, b: A | undefined) => boolean = (a, b) => a === b
): number => {
  if (before === after) return before.length
  const end = Math.min(before.length, after.length)
  let index = 0
  while (index < end && isSame(before[index], after[index])) index++
  return index
}
