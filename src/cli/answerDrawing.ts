/** How answers are drawn: as Markdown in a terminal, and unchanged for a file or another program. */

import * as Effect from "effect/Effect"
import { plain } from "./plainDrawing.ts"
import { Screen } from "./screen.ts"

/** Returns the drawing of answers on the screen. Only a terminal loads the reader of Markdown. */
export const drawingOfScreen = Effect.fnUntraced(function* (color: boolean | undefined) {
  const { answers } = yield* Screen
  if (!answers.isTerminal) return plain()
  const { MarkdownDrawing } = yield* Effect.promise(() => import("./markdownDrawing.ts"))
  return new MarkdownDrawing({ columns: answers.columns, colors: color ?? answers.colors })
})
