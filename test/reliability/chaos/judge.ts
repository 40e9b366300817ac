/**
 * What may not have become of the runs of the chaos.
 */
import { kindOf, turns } from "./runs.ts"

/** A run as it was found in the end. */
export interface Found {
  readonly runId: string
  /** Its status; undefined for a run that the store does not have. */
  readonly status: string | undefined
  /** The tag of the error that it failed with. */
  readonly error?: string | undefined
  /** Whether its records follow each other without a gap, and how many there are. */
  readonly isWhole: boolean
  readonly records: number
  /** The calls that it entered, in order. */
  readonly calls: ReadonlyArray<string>
}

/** Returns what is wrong with a run, once everything is healed and at rest. */
export const judge = (found: Found): ReadonlyArray<string> => {
  const gap = found.isWhole ? [] : [`fenced: ${found.runId} has a gap`]
  switch (kindOf(found.runId)) {
    case "pay":
      return [...gap, ...judgeInnocent(found)]
    case "poison":
      return found.status === "failed" && found.error === "RunPoisoned"
        ? gap
        : [...gap, `set_apart: ${found.runId} is ${found.status} (${found.error})`]
    case "nobody":
      return isWaiting(found) ? gap : [...gap, `nothing_lost: ${found.runId} is ${found.status}`]
  }
}

/** Returns whether a run waits for a process with its agent: queued, or stored and not offered because its client lost the store. */
const isWaiting = ({ records, status }: Found): boolean =>
  status === "queued" || (status === "running" && records === 1)

const judgeInnocent = ({ calls, error, runId, status }: Found): ReadonlyArray<string> => {
  const once = new Set(calls)
  return [
    ...(status === "failed" || status === "no_answer" ? [`innocent_failed: ${runId} failed with ${error}`] : []),
    ...(status === "failed" || status === "no_answer" || status === "completed"
      ? []
      : [`nothing_lost: ${runId} is ${status}`]),
    ...(once.size === calls.length ? [] : [`writes_once: ${runId} paid twice: ${calls.join(", ")}`]),
    ...(once.size > turns ? [`writes_once: ${runId} paid ${once.size} times`] : []),
    ...(status === "completed" && once.size < turns ? [`nothing_lost: ${runId} paid ${once.size} times`] : [])
  ]
}
