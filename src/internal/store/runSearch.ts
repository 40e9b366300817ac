/**
 * Finds runs by the words of their question and answer. Nothing in between is searched.
 */

import type { RunState } from "../../RunState.ts"
import { answer } from "../../RunState.ts"

/**
 * The text that is searched: the answer, then the question, at most 65,536 characters, in lower case and without
 * characters that databases reject.
 */
export const words = (state: RunState): string => {
  const asked = state.input.slice(state.history).flatMap((message) => message.content)
  const texts = asked.map((content) => (content.type === "text" ? content.text : ""))
  return clean([answer(state) ?? "", ...texts].join("\n").slice(0, 65_536))
}

/** The separate words of a search. */
export const wanted = (search: string | undefined): ReadonlyArray<string> =>
  search === undefined
    ? []
    : clean(search)
        .split(/\s+/)
        .filter((word) => word !== "")

/** Whether all words occur in the question and the answer. */
export const mentions = (state: RunState, wanted: ReadonlyArray<string>): boolean => {
  if (wanted.length === 0) return true
  const text = words(state)
  return wanted.every((word) => text.includes(word))
}

const clean = (text: string): string => text.toLowerCase().replaceAll("\u0000", " ").toWellFormed()
