/**
 * Finding runs by words: what was asked and what was answered (not all that was said on the way).
 */

import type { RunState } from "../../RunState.ts"
import { answer } from "../../RunState.ts"

/**
 * What a search looks at: the answer, then what was asked, at most 65,536 characters, in lower case, without what a
 * database may refuse.
 */
export const words = (state: RunState): string => {
  const asked = state.input.slice(state.history).flatMap((message) => message.content)
  const texts = asked.map((content) => (content.type === "text" ? content.text : ""))
  return clean([answer(state) ?? "", ...texts].join("\n").slice(0, 65_536))
}

/** The single words a search asks for. */
export const wanted = (search: string | undefined): ReadonlyArray<string> =>
  search === undefined
    ? []
    : clean(search)
        .split(/\s+/)
        .filter((word) => word !== "")

/** Tells whether all words occur in what was asked and answered. */
export const mentions = (state: RunState, wanted: ReadonlyArray<string>): boolean => {
  if (wanted.length === 0) return true
  const text = words(state)
  return wanted.every((word) => text.includes(word))
}

const clean = (text: string): string => text.toLowerCase().replaceAll("\u0000", " ").toWellFormed()
