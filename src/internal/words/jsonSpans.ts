/**
 * Finds JSON inside a text: behind a sentence, in a code fence, after thinking.
 */

import * as Result from "effect/Result"
import { parseJson } from "../../kit/json.ts"

/**
 * Returns the outermost JSON objects and lists of a text, in order. Braces that do not enclose JSON are skipped.
 *
 * The work is linear in the length of the text: braces that never close are only tried a few times.
 */
export const jsonSpans = (text: string, depth: number): ReadonlyArray<string> => {
  const spans: Array<string> = []
  let left = readings * text.length
  opening.lastIndex = 0
  for (let found = opening.exec(text); found !== null && left > 0; found = opening.exec(text)) {
    const end = endOf(text, found.index)
    left -= (end ?? text.length) - found.index
    if (end === undefined) continue
    const span = text.slice(found.index, end)
    if (Result.isFailure(parseJson(span, depth))) continue
    spans.push(span)
    opening.lastIndex = end
  }
  return spans
}

/** How often a part of a text may be read. */
const readings = 8

const opening = /[{[]/g

/** Returns the index behind the bracket that closes the one at `start`. Brackets in strings do not count. */
const endOf = (text: string, start: number): number | undefined => {
  let open = 0
  let isString = false
  for (let at = start; at < text.length; at++) {
    const char = text[at]
    if (isString) {
      if (char === "\\") at++
      else if (char === '"') isString = false
    } else if (char === '"') isString = true
    else if (char === "{" || char === "[") open++
    else if ((char === "}" || char === "]") && --open === 0) return at + 1
  }
  return undefined
}

/** Returns the contents of the code fences of a text, in order. */
export const fences = (text: string): ReadonlyArray<string> =>
  text
    .split("```")
    .filter((_, index) => index % 2 === 1)
    // The first line holds the language.
    .map((inner) => inner.slice(inner.indexOf("\n") + 1).trim())
    .filter((inner) => inner !== "")
