/**
 * Bytes that nobody can change (CP-4).
 *
 * A byte array cannot be frozen, so it is copied when it is put in and again at
 * each read.
 */

/** Puts bytes on an object as a field that gives a copy. */
export const defineBytes = (target: object, key: string, bytes: Uint8Array): void => {
  // Not `bytes.slice()`: that of a Node `Buffer` is a view of the same memory.
  const own = new Uint8Array(bytes)
  Object.defineProperty(target, key, { get: () => own.slice(), enumerable: true, configurable: true })
}
