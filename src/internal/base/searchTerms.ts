/**
 * The words of a text, as a search sees them.
 *
 * Letters, digits and marks in lower case and one form. A script that writes no
 * spaces is taken character by character, so that a part of a sentence is found.
 */

const word =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]\p{M}*|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}])[\p{L}\p{N}]\p{M}*)+/gu

/** Longer ones are no words. */
const longest = 64

/** The different words of a text, in order; at most `limit` of them. */
export const wordsOf = (text: string, limit = Infinity): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (const [match] of text.normalize("NFKC").toLowerCase().matchAll(word)) {
    if (found.size >= limit) break
    if (match.length <= longest) found.add(match)
  }
  return [...found]
}
