/**
 * Markdown on a terminal, line by line, while it streams.
 *
 * A line is shown when it is whole, and styled by what it begins with; inside
 * it, `code`, **strong** and *stressed* words stand out. A terminal without
 * colours gets the text as it came. Nothing of it reaches the terminal raw.
 */

import * as Text from "./terminalText.ts"

/** A text that comes in pieces. */
export interface Markdown {
  /** Takes a piece; gives what can be shown now. */
  readonly push: (piece: string) => string
  /** The rest, when nothing more comes of this text. */
  readonly end: () => string
}

/** A renderer for one text after the other: `end` ends one, with the code that is open in it. */
export const make = (colors: boolean): Markdown => {
  let held = ""
  let fenced = false
  const show = (line: string): string => {
    const safe = Text.paragraph(line.replace(/\r$/, "")).replace(/\n$/, "")
    if (!colors) return `${safe}\n`
    if (/^\s*(```|~~~)/.test(safe)) {
      fenced = !fenced
      return `${dim(safe)}\n`
    }
    return `${fenced ? dim(safe) : styled(safe)}\n`
  }
  return {
    push: (piece) => {
      held += piece
      // A long line is looked at once, however many pieces it comes in.
      if (!piece.includes("\n")) return ""
      const lines = held.split("\n")
      held = lines.pop() ?? ""
      return lines.map(show).join("")
    },
    end: () => {
      const rest = held === "" ? "" : show(held)
      held = ""
      fenced = false
      return rest
    }
  }
}

const dim = (text: string): string => `\u001b[2m${text}\u001b[22m`
const bold = (text: string): string => `\u001b[1m${text}\u001b[22m`
const italic = (text: string): string => `\u001b[3m${text}\u001b[23m`

const styled = (line: string): string => {
  const heading = /^#{1,6}\s+(.*)$/.exec(line)
  if (heading !== null) return bold(heading[1] ?? "")
  const quote = /^>\s?(.*)$/.exec(line)
  if (quote !== null) return dim(`│ ${quote[1] ?? ""}`)
  const item = /^(\s*)[-*+]\s+(.*)$/.exec(line)
  return item === null ? words(line) : `${item[1] ?? ""}• ${words(item[2] ?? "")}`
}

/** Code first: what stands in it is not looked at again. */
const words = (line: string): string =>
  line
    .split(/(`[^`]+`)/)
    .map((part) =>
      part.startsWith("`") && part.endsWith("`") && part.length > 2
        ? dim(part.slice(1, -1))
        : part
            .replace(/\*\*([^*]+)\*\*/g, (_, text: string) => bold(text))
            .replace(/(?<!\*)\*([^*\s][^*]*)\*(?!\*)/g, (_, text: string) => italic(text))
    )
    .join("")
