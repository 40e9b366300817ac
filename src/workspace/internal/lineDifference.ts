/**
 * The difference of two texts, as lines that begin with a space, `-` or `+`.
 */

import { type Edit, editsOf } from "../../kit/edits.ts"

const context = 3
const maxLines = 2_000

/** Returns the hunks of a unified diff, at most 2,000 lines. Empty for equal texts. */
export const difference = (before: string, after: string): string => {
  if (before === after) return ""
  const old = linesOf(before)
  const now = linesOf(after)
  const edits = editsOf(old, now)
  const shown: Array<string> = []
  for (const hunk of hunksOf(edits)) {
    const first = edits[hunk.from]
    if (first === undefined) continue
    const part = edits.slice(hunk.from, hunk.to)
    const removed = part.filter(({ sign }) => sign !== "+").length
    const added = part.filter(({ sign }) => sign !== "-").length
    shown.push(`@@ -${first.old + 1},${removed} +${first.now + 1},${added} @@`)
    for (const { sign, text } of part) shown.push(`${sign}${text}`)
    if (shown.length > maxLines) return [...shown.slice(0, maxLines), "…"].join("\n")
  }
  return shown.join("\n")
}

const linesOf = (text: string): ReadonlyArray<string> => (text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/))

/** Groups changes with the lines around them. */
const hunksOf = (edits: ReadonlyArray<Edit>): ReadonlyArray<{ readonly from: number; readonly to: number }> => {
  const hunks: Array<{ from: number; to: number }> = []
  edits.forEach(({ sign }, index) => {
    if (sign === " ") return
    const last = hunks.at(-1)
    const to = Math.min(edits.length, index + 1 + context)
    if (last !== undefined && index - context <= last.to) last.to = to
    else hunks.push({ from: Math.max(0, index - context), to })
  })
  return hunks
}
