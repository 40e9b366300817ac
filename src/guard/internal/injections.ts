/**
 * Finds instructions to a model in texts that should hold data only. A strong rule is enough; of the weak ones, two
 * different must match.
 */

import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import type { Finding } from "../Detector.ts"
import { comparable } from "./comparableText.ts"
import * as Rules from "./injectionRules.ts"

/** Returns where instructions stand: all matches of strong rules, and of weak rules if at least two of them match. */
export const injectionsIn = (text: string): ReadonlyArray<Finding> =>
  [...instructionsIn(text), ...encodedIn(text), ...Array.from(text.matchAll(tags), placeOf)].sort(
    (a, b) => a.start - b.start
  )

const instructionsIn = (original: string): ReadonlyArray<Finding> => {
  const { places, text } = comparable(original)
  const matches = (rules: ReadonlyArray<RegExp>) => rules.map((rule) => Array.from(text.matchAll(rule), placeOf))
  const certain = matches(Rules.strong).flat()
  const hints = matches(Rules.weak).filter((found) => found.length > 0)
  const all = hints.length > 1 ? [...certain, ...hints.flat()] : certain
  return all.map(({ end, kind, start }) => ({
    kind,
    start: places[start] ?? 0,
    end: places[end] ?? original.length
  }))
}

/** Returns the words in Base64 behind which instructions stand. */
const encodedIn = (text: string): ReadonlyArray<Finding> =>
  Array.from(text.matchAll(/(?<![\w+/=])[A-Za-z0-9+/]{20,4096}={0,2}(?![\w+/=])/g))
    .filter(([word]) => {
      const decoded = Base64.decodeString(word)
      return Result.isSuccess(decoded) && instructionsIn(decoded.success).length > 0
    })
    .map(placeOf)

/** Characters that no reader sees and that models read as letters. Flags have fewer of them. */
const tags = /[\u{e0020}-\u{e007e}]{6,}/gu

const placeOf = ({ 0: match, index }: RegExpExecArray): Finding => ({
  kind: "injection",
  start: index,
  end: index + match.length
})
