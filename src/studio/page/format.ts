/** Formats numbers, times and statuses. */

import type { RunStatus } from "../../RunStore.ts"
import type { Usage } from "../../Usage.ts"
import { waitReason } from "../FailureCause.ts"

export const duration = (ms: number): string => {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  if (ms < 3_600_000) return `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1_000)} s`
  return `${Math.floor(ms / 3_600_000)} h ${Math.round((ms % 3_600_000) / 60_000)} min`
}

/** Returns the age of an instant in its largest unit. */
export const ago = (at: number): string => {
  const seconds = Math.max(0, Math.floor((Date.now() - at) / 1_000))
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`
  return seconds < 86_400 ? `${Math.floor(seconds / 3_600)} h ago` : `${Math.floor(seconds / 86_400)} d ago`
}

export const clock = (at: number): string => new Date(at).toLocaleTimeString()

export const cost = (usd: number | undefined): string =>
  usd === undefined ? "unknown cost" : usd === 0 ? "$0" : `$${usd.toFixed(usd < 0.1 ? 4 : 2)}`

export const tokens = (usage: Usage | null | undefined): string =>
  usage === null || usage === undefined
    ? "tokens unknown"
    : `${grouped(usage.inputTokens)} in (${grouped(usage.cachedTokens)} cached), ${grouped(usage.outputTokens)} out`

const grouped = (count: number): string => count.toLocaleString("en")

/** Returns a count in three digits or so, as `2.5M`. */
export const short = (count: number): string => new Intl.NumberFormat("en", { notation: "compact" }).format(count)

export const counted = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`

/** Returns the start of a text on one line. */
export const excerpt = (text: string, length = 80): string => {
  const flat = text
    .slice(0, length * 2)
    .replace(/\s+/g, " ")
    .trim()
  return flat.length > length ? `${flat.slice(0, length - 1)}…` : flat
}

export const json = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "")

/** Returns the reason of a status, on one line. */
export const reasonOf = (status: RunStatus): string => {
  switch (status.type) {
    case "no_answer":
      return excerpt(status.reason, 120)
    case "failed":
      return excerpt(status.error.message, 120)
    case "waiting":
      return excerpt(waitReason(status), 120)
    default:
      return ""
  }
}

/** Returns a text with a capital at its beginning. */
export const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** Returns a status in words. */
export const named = (status: string): string => status.replaceAll("_", " ")
