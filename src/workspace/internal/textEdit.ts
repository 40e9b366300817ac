/**
 * Replaces a text in a text.
 */

import * as Effect from "effect/Effect"
import { WorkspaceError } from "../WorkspaceError.ts"
import type { Edit } from "./workspaceType.ts"
import { type TextFile, withLineEnds } from "./textFile.ts"

/** The text of a file after an edit, and the number of places that changed. */
interface Edited {
  readonly text: string
  readonly places: number
}

/** Replaces the only place where the old text occurs, or all places. */
export const apply = (path: string, file: TextFile, edit: Edit): Effect.Effect<Edited, WorkspaceError> => {
  const refuse = (reason: WorkspaceError["reason"], detail: string) =>
    Effect.fail(new WorkspaceError({ reason, detail: `${path}: ${detail}` }))
  if (edit.oldText === "") return refuse("invalid", "the text to replace is empty; use write for a new file")
  if (edit.oldText === edit.newText) return refuse("invalid", "the new text is the same as the old one")
  // A model sees and writes `\n`, whatever the file has.
  const forms = [edit.oldText, withLineEnds(edit.oldText, file.lineEnd)]
  const old = forms.find((form) => file.text.includes(form))
  if (old === undefined) return refuse("no_match", "the text to replace is not in the file; read it again")
  const parts = file.text.split(old)
  const places = parts.length - 1
  if (places > 1 && edit.all !== true) {
    return refuse(
      "many_matches",
      `the text to replace is in ${places} places; give more of the lines around it, or replace all`
    )
  }
  return Effect.succeed({ text: parts.join(withLineEnds(edit.newText, file.lineEnd)), places })
}
