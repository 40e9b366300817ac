/** Finds the phrases of a list. */

import type { Finding } from "../Detector.ts"

/**
 * Returns a search for phrases as whole words, the longer one where two begin at the same place. An `ending` may follow
 * that is no part of the phrase.
 */
export const phrasesIn = (
  kind: string,
  list: ReadonlyArray<string>,
  ending = ""
): ((text: string) => ReadonlyArray<Finding>) => {
  const phrases = list.map((phrase) => phrase.trim()).filter((phrase) => phrase !== "")
  if (phrases.length === 0) return () => []
  const sources = phrases
    .toSorted((a, b) => b.length - a.length)
    .map((phrase) =>
      phrase
        .split(/\s+/)
        .map((word) => word.replace(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`))
        .join(String.raw`\s{1,8}`)
    )
  const expression = new RegExp(
    String.raw`(?<![\p{L}\p{N}_])(?:${sources.join("|")})(?=(?:${ending})(?![\p{L}\p{N}_]))`,
    "giu"
  )
  return (text) =>
    Array.from(text.matchAll(expression), ({ 0: match, index }) => ({ kind, start: index, end: index + match.length }))
}
