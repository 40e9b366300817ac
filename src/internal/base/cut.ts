/**
 * Cutting texts, never inside a character.
 */

/** The start of a text, in at most so many bytes of UTF-8; never half a character. */
export const cut = (text: string, bytes: number): string => {
  // A UTF-16 unit is at most three bytes: most texts need no measuring.
  if (text.length * 3 <= bytes) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(Math.max(0, bytes)))
  return read === text.length ? text : text.slice(0, read)
}

/** The start of a text, in at most so many UTF-16 units; never half a character. */
const clip = (text: string, length: number): string => {
  const end = Math.max(0, length)
  return text.slice(0, /[\ud800-\udbff]/.test(text.charAt(end - 1)) ? end - 1 : end)
}

/** A text, or its start and `…` where it is longer than this. */
export const shorten = (text: string, length: number): string =>
  text.length <= length ? text : `${clip(text, length)}…`
