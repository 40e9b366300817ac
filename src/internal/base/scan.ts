/**
 * Small questions a reader of long texts asks about characters and slices.
 */

/** White space in tags, narrower than `\s` (BP-2). */
export const isSpace = (code: number): boolean => code === 32 || (code >= 9 && code <= 13)

/** The first half of a surrogate pair. */
export const isHighSurrogate = (code: number): boolean => (code & 0xfc00) === 0xd800

/** A slice that does not keep a much larger text alive. */
export const own = (text: string, start: number, end: number): string =>
  end - start < 16 || text.length < 16_384 || (end - start) * 2 > text.length
    ? text.slice(start, end)
    : [text.slice(start, start + 1), text.slice(start + 1, end)].join("")
