/**
 * Text for a terminal. Text from models, skills and files cannot move the cursor, set a colour, forge a line or reverse
 * the direction: such characters are printed as escapes.
 */

import { displayWidth } from "effect/cli/CliOutput"
import { styleText } from "node:util"
import { seen, seenParts } from "../kit/seenText.ts"
import { visible } from "../kit/text.ts"

/** The width of a line, and whether it may have colours. */
export interface Look {
  readonly columns: number
  readonly colors: boolean
}

export type Tone = "title" | "label" | "quiet" | "good" | "warning" | "bad" | "emphasis" | "struck"

const styles = {
  title: "bold",
  label: "cyan",
  quiet: "dim",
  good: "green",
  warning: "yellow",
  bad: "red",
  emphasis: "italic",
  struck: "strikethrough"
} as const

/** Colours a text if colours are on. */
export const paint = (text: string, tone: Tone, { colors }: Pick<Look, "colors">): string =>
  colors ? styleText(styles[tone], text, { validateStream: false }) : text

/** Escapes a text of several lines, except line ends and tabs, and marks letters that imitate others. */
export const lines = (text: string): string =>
  seenParts(text.replaceAll("\r\n", "\n"))
    .map((part) => (typeof part === "string" ? part.replace(/[^\n\t]+/g, visible) : part.text))
    .join("")

/** Escapes a text, and ends it with a line end. */
export const paragraph = (text: string): string => `${lines(text)}\n`

/** Puts a text on one line: white space becomes single spaces; controls are escaped, and imitating letters marked. */
export const flat = (text: string): string => seen(text.replace(/(?:[ \t\n]|\r\n)+/g, " "))

export const width: (text: string) => number = displayWidth

const graphemes = new Intl.Segmenter()

/** Returns the beginning of a text, at most so many columns wide. */
export const clip = (text: string, columns: number): string => {
  let end = 0
  let room = columns
  for (const { segment } of graphemes.segment(text)) {
    room -= displayWidth(segment)
    if (room < 0) break
    end += segment.length
  }
  return text.slice(0, end)
}

/** Puts a text on one line of at most so many columns; `…` marks a cut. */
export const excerpt = (text: string, columns: number): string => {
  // Reads only the start of a long text.
  const start = text.slice(0, columns * 4 + 4)
  const line = flat(start).trim()
  return start.length === text.length ? cut(line, columns) : `${clip(line, columns - 1)}…`
}

/** Cuts a line that is escaped already. */
export const cut = (line: string, columns: number): string =>
  width(line) <= columns ? line : `${clip(line, columns - 1)}…`

/** Encodes JSON without control characters of terminals. */
export const json = (value: unknown): string => escaped(JSON.stringify(value) ?? "null")

/** Escapes control characters of terminals in JSON text, which still decodes to the same value. */
export const escaped = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) =>
    Array.from(
      { length: char.length },
      (_, index) => `\\u${char.charCodeAt(index).toString(16).padStart(4, "0")}`
    ).join("")
  )

/** Formats milliseconds: `12 ms`, `1.3 s`, `2 min 5 s`. */
export const duration = (milliseconds: number): string => {
  if (milliseconds < 1) return "<1 ms"
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`
  if (milliseconds < 59_950) return `${(milliseconds / 1_000).toFixed(1)} s`
  const seconds = Math.round(milliseconds / 1_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** Formats a count: `1 turn`, `2 turns`. */
export const count = (number: number, word: string, several = `${word}s`): string =>
  `${number} ${number === 1 ? word : several}`

/** Formats the tokens of a model call. Null means that the provider reports none. */
export const tokens = (usage: { readonly inputTokens: number; readonly outputTokens: number } | null): string =>
  usage === null ? "tokens not reported" : `${usage.inputTokens} tokens in, ${usage.outputTokens} out`

/** Formats a cost, as an empty list if it is unknown. */
export const cost = (usd: number | undefined): ReadonlyArray<string> =>
  usd === undefined ? [] : [`$${usd.toFixed(4)}`]
