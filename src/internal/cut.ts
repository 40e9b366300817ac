/**
 * Cutting texts by bytes.
 *
 * @since 0.1.0
 */

/** The start of a text, in at most so many bytes of UTF-8; never half a character. */
export const cut = (text: string, bytes: number): string => {
  // A UTF-16 unit is at most three bytes: most texts need no measuring.
  if (text.length * 3 <= bytes) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(Math.max(0, bytes)))
  return read === text.length ? text : text.slice(0, read)
}
