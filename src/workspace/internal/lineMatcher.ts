/**
 * Finds the lines of a text that a regular expression matches, in linear time.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Pattern from "../../kit/pattern.ts"
import { WorkspaceError } from "../WorkspaceError.ts"

/** The longest line that is shown. */
const shownLine = 500

/** A line that matches, counted from 1. */
export interface Found {
  readonly line: number
  readonly text: string
}

/** Finds the matching lines of a text, at most `limit`. */
export type LineMatcher = (text: string, limit: number) => ReadonlyArray<Found>

/** Compiles an expression. Lookaround and backreferences are refused, since matching them may take forever. */
export const compile = (pattern: string, ignoreCase: boolean): Effect.Effect<LineMatcher, WorkspaceError> => {
  if (pattern === "") return refused("it is empty")
  const source = ignoreCase ? lowerCase(pattern) : pattern
  const compiled = Pattern.regex(source)
  if (Result.isFailure(compiled)) return refused(compiled.failure)
  const matches = compiled.success
  const literal = /[\\^$.*+?()[\]{}|]/.test(source) ? undefined : source
  return Effect.succeed((text, limit) => {
    const compared = ignoreCase ? text.toLowerCase() : text
    if (literal !== undefined && !compared.includes(literal)) return []
    return linesOf(compared === text || compared.length === text.length ? compared : text, text, matches, limit)
  })
}

const linesOf = (compared: string, text: string, matches: Pattern.Matcher, limit: number): ReadonlyArray<Found> => {
  const found: Array<Found> = []
  let line = 1
  for (let start = 0; start < text.length && found.length < limit; line++) {
    const next = text.indexOf("\n", start)
    const end = next < 0 ? text.length : next
    const last = text.charCodeAt(end - 1) === 13 && end > start ? end - 1 : end
    if (matches(compared.slice(start, last))) found.push({ line, text: shown(text.slice(start, last)) })
    start = end + 1
  }
  return found
}

/** Cuts a long line. */
export const shown = (line: string): string => (line.length > shownLine ? `${line.slice(0, shownLine)}…` : line)

const lowerCase = (pattern: string): string =>
  pattern.replace(/\\[^]|[^\\]/gu, (part) => (part.startsWith("\\") ? part : part.toLowerCase()))

const refused = (reason: string) =>
  Effect.fail(new WorkspaceError({ reason: "invalid", detail: `the pattern cannot be used: ${reason}` }))
