/**
 * What a search of runs compares: the words of the search, and a text of each run with its question, its answer and the
 * results of its calls.
 *
 * @since 0.1.0
 */

import type { CallResult } from "../Call.ts"
import { toText } from "../Content.ts"
import { type RunState, answer } from "../RunState.ts"

/**
 * Returns the text to search: the answer, the question, then the first 1,024 characters of each result of the last 64
 * turns. At most 65,536 characters, in lower case and without characters that databases reject.
 *
 * @category getters
 * @since 0.1.0
 */
export const textOf = (state: RunState): string => {
  const question = state.input.slice(state.history).flatMap((message) => message.content)
  const texts = question.map((content) => (content.type === "text" ? content.text : ""))
  const turns = state.turns.slice(-64).concat(state.currentTurn ?? [])
  const results = turns.flatMap(({ completed }) => completed.map((result) => resultText(result).slice(0, 1024)))
  return clean([answer(state) ?? "", ...texts, ...results].join("\n").slice(0, 65_536))
}

const resultText = ({ error, output = [] }: CallResult): string =>
  [...output.map(toText), error?.message ?? ""].join("\n")

/**
 * Splits a search into its words, at most 32 different ones.
 *
 * @category getters
 * @since 0.1.0
 */
export const wordsOf = (search: string | undefined): ReadonlyArray<string> => {
  const words = new Set(search === undefined ? [] : clean(search).split(/\s+/))
  words.delete("")
  return [...words].slice(0, mostWords)
}

/**
 * Returns whether all words occur in the searched text of a run.
 *
 * @category guards
 * @since 0.1.0
 */
export const mentions = (state: RunState, wanted: ReadonlyArray<string>): boolean => {
  if (wanted.length === 0) return true
  const text = textOf(state)
  return wanted.every((word) => text.includes(word))
}

/** Databases bound the conditions of a query. */
const mostWords = 32

const clean = (text: string): string => text.toLowerCase().replaceAll("\u0000", " ").toWellFormed()
