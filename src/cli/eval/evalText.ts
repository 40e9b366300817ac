/**
 * The report of an evaluation for a terminal.
 */

import type { Attempt, Report } from "../../testing/Evaluation.ts"
import { table } from "../table.ts"
import * as Text from "../terminalText.ts"

const tones = { passed: "good", failed: "bad", error: "bad", skipped: "warning" } as const

/** Returns a line about an attempt. */
export const lineOf = (
  { answer, attempt, caseId, outcome, reason }: Attempt,
  repeats: number,
  look: Text.Look
): string => {
  const word = Text.paint(outcome.padEnd(8), tones[outcome], look)
  const id = `${Text.excerpt(caseId, 40)}${repeats === 1 ? "" : ` #${attempt}`}`
  const why = reason === null ? "" : `  ${Text.excerpt(reason, 120)}`
  const room = Math.max(20, look.columns - 10 - Text.width(id) - Text.width(why))
  return `${word}${id}${why}  ${answer === null ? "" : Text.paint(Text.excerpt(answer, room), "quiet", look)}`.trimEnd()
}

/** Formats a share as a percentage. */
export const percent = (share: number): string => `${Math.round(share * 100)}%`

/** Returns the result as a sentence. */
export const summaryOf = (
  { attempts, interval: [low, high], passRate, passed, skipped }: Report,
  threshold: number
): string => {
  const left = skipped === 0 ? "" : `, ${skipped} skipped`
  const range = `95% interval ${percent(low)} to ${percent(high)}`
  return `${passed} of ${attempts - skipped} passed (${percent(passRate)}, ${range})${left}; needed: ${percent(threshold)}`
}

/** Returns a line for each scorer. */
export const scorersOf = ({ scorers }: Report, look: Text.Look): string =>
  table<Report["scorers"][number]>(
    [
      { title: "", cell: ({ name }) => Text.excerpt(name, 40), least: 12 },
      { title: "", cell: ({ passRate }) => `${percent(passRate)} passed` },
      { title: "", cell: ({ mean }) => `mean score ${mean.toFixed(2)}` }
    ],
    scorers,
    look
  )
