/** Draws answers as they are, for a file or another program. */

import * as Text from "./terminalText.ts"

/** Draws a text that arrives in pieces. */
export interface Drawing {
  /** Adds a piece. Returns what can be written now. */
  readonly push: (piece: string) => string
  /** Returns the rest, which ends its line. The next piece begins another text. */
  readonly end: () => string
}

/** Draws a text as it is, with control characters escaped. */
export const plain = (): Drawing => {
  let isOpen = false
  return {
    push: (piece) => {
      if (piece !== "") isOpen = !piece.endsWith("\n")
      return Text.lines(piece)
    },
    end: () => {
      const rest = isOpen ? "\n" : ""
      isOpen = false
      return rest
    }
  }
}

/** Draws a whole text, and ends it with a line end. */
export const whole = (drawing: Drawing, text: string): string => drawing.push(`${text}\n`) + drawing.end()
