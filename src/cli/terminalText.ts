/**
 * Foreign text, made fit for a terminal (S-19).
 *
 * What a model, a skill or a file wrote can neither move the cursor, set a
 * colour, forge a line nor reverse the direction: such characters are shown as
 * escapes. Only line ends and tabs of a text that is printed as a text remain.
 */

import { visible } from "../internal/base/text.ts"

/** A text of several lines, each made visible. Ends with a line end. */
export const paragraph = (text: string): string =>
  `${text
    .split(/\r?\n/)
    .map((line) => line.split("\t").map(visible).join("\t"))
    .join("\n")}\n`

/** A text on one line: every run of blanks, tabs and line ends is one blank, the rest made visible. */
export const flat = (text: string): string => visible(text.replace(/(?:[ \t\n]|\r\n)+/g, " "))

/** How many columns of a terminal a text takes at most: letters of East Asia and emoji two. */
export const width = (text: string): number => Array.from(text, columnsOf).reduce((sum, columns) => sum + columns, 0)

/** The beginning of a text, in at most so many columns and not cut inside a character. */
export const clip = (text: string, columns: number): string => {
  let end = 0
  let room = columns
  for (const char of text) {
    room -= columnsOf(char)
    if (room < 0) break
    end += char.length
  }
  return text.slice(0, end)
}

/** A text on one line and no wider than so many columns; what is missing is shown as `…`. */
export const excerpt = (text: string, columns: number): string => {
  // Only the beginning is looked at, however long the text: blanks are all that could make it shorter.
  const start = text.slice(0, columns * 4 + 4)
  const line = flat(start).trim()
  return width(line) <= columns && start.length === text.length ? line : `${clip(line, columns - 1)}…`
}

/** JSON text that decodes to the same and holds no character a terminal obeys. */
export const json = (value: unknown): string => escaped(JSON.stringify(value) ?? "null")

/** JSON text with every character that a terminal obeys as an escape; it decodes to the same. */
export const escaped = (text: string): string =>
  text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, (char) =>
    Array.from(
      { length: char.length },
      (_, index) => `\\u${char.charCodeAt(index).toString(16).padStart(4, "0")}`
    ).join("")
  )

/** Milliseconds as people read them. */
export const duration = (milliseconds: number): string => {
  if (milliseconds < 1) return "<1 ms"
  // As they are written: 999.6 ms are a second, and 59.96 s a minute.
  if (milliseconds < 999.5) return `${Math.round(milliseconds)} ms`
  if (milliseconds < 59_950) return `${(milliseconds / 1_000).toFixed(1)} s`
  const seconds = Math.round(milliseconds / 1_000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** A number of things: `1 turn`, `2 turns`. */
export const count = (number: number, word: string): string => `${number} ${word}${number === 1 ? "" : "s"}`

/** Tokens of a model call as people read them; null is not zero. */
export const tokens = (usage: { readonly inputTokens: number; readonly outputTokens: number } | null): string =>
  usage === null ? "tokens not reported" : `${usage.inputTokens} tokens in, ${usage.outputTokens} out`

// ---------------------------------------------------------------- helpers

const columnsOf = (char: string): number => (wide.test(char) ? 2 : 1)

const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{1b2ff}\u{20000}-\u{3fffd}\p{Emoji_Presentation}]/u
