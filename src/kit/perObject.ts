/**
 * Remembers values with the immutable objects they are computed from.
 */

/** Returns a function that computes its value once per object, and again only while that is undefined. */
export const perObject = <Key extends object, A>(make: (key: Key) => A): ((key: Key) => A) => {
  const known = new WeakMap<Key, A>()
  return (key) => {
    const before = known.get(key)
    if (before !== undefined) return before
    const value = make(key)
    known.set(key, value)
    return value
  }
}
