/**
 * What the work in a folder looks like on a terminal: differences, the todo list, and what an undo did.
 */

import type { RunEvent } from "../../RunEvent.ts"
import type { Restored } from "../../workspace/WorkspaceHistory.ts"
import { resultText } from "../runLines.ts"
import * as Text from "../terminalText.ts"

const maxLines = 60

/** Returns the lines of a result that are shown in full: of a change of a file, and of the todo list. */
export const workLines = (event: RunEvent, look: Text.Look): ReadonlyArray<string> => {
  if (event.type !== "skill_result" || !["edit", "write", "todo"].includes(event.skill)) return []
  const text = resultText(event.output) ?? ""
  const [title, ...difference] = text.split("\n")
  const lines = event.skill === "todo" ? text.split("\n") : difference
  if (event.skill !== "todo" && !title?.startsWith("Edited") && !title?.startsWith("Wrote")) return []
  const shown = lines.slice(0, maxLines).map((line) => `    ${painted(line, look)}`)
  return lines.length > maxLines ? [...shown, `    (${lines.length - maxLines} more lines)`] : shown
}

const painted = (line: string, look: Text.Look): string => {
  const text = Text.clip(Text.flat(line.replaceAll("\t", "  ")), look.columns - 4)
  return line.startsWith("+")
    ? Text.paint(text, "good", look)
    : line.startsWith("-")
      ? Text.paint(text, "bad", look)
      : line.startsWith("@@")
        ? Text.paint(text, "quiet", look)
        : text
}

/** Says what an undo did. */
export const restoredText = ({ lost, paths }: Restored): string =>
  [
    paths.length === 0 ? "no file was changed" : `taken back: ${paths.map(Text.flat).join(", ")}`,
    ...(lost.length === 0 ? [] : [`not kept, and so not taken back: ${lost.map(Text.flat).join(", ")}`])
  ].join("; ")
