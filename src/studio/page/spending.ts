/** Sums of what runs used: tokens, cost, and how long they took. */

import type { RunRecord } from "../../RunState.ts"
import type { RunHead, RunSpending } from "../../RunStore.ts"

/** The sums of some runs. A cost is unknown if no run has one. */
export interface Sums {
  readonly runs: number
  readonly tokens: number
  readonly costUsd: number | undefined
  /** The durations that half of the runs, and 95% of them, did not exceed, in milliseconds. */
  readonly half: number
  readonly most: number
}

export const sumsOf = (lines: ReadonlyArray<RunSpending>): Sums => {
  const sum = (of: (line: RunSpending) => number) => lines.reduce((all, line) => all + of(line), 0)
  const ordered = lines.toSorted((a, b) => a.took - b.took)
  const runs = sum((line) => line.runs)
  const within = (share: number): number => {
    let seen = 0
    return ordered.find((line) => (seen += line.runs) >= share * runs)?.took ?? 0
  }
  return {
    runs,
    tokens: sum((line) => line.tokens),
    costUsd: lines.every(({ costUsd }) => costUsd === undefined) ? undefined : sum(({ costUsd = 0 }) => costUsd),
    half: within(0.5),
    most: within(0.95)
  }
}

/** Returns the values of a field, the one with the most runs first. */
export const commonest = (lines: ReadonlyArray<RunSpending>, field: "agent" | "model"): ReadonlyArray<string> => {
  const runs = new Map<string, number>()
  for (const line of lines) runs.set(line[field], (runs.get(line[field]) ?? 0) + line.runs)
  return [...runs].toSorted(([, a], [, b]) => b - a).map(([name]) => name)
}

/** Counts the runs below a run. */
export const countBelow = (lines: ReadonlyArray<Pick<RunHead, "parentRunId" | "runId">>, runId: string): number => {
  const parents = new Map(lines.map((line) => [line.runId, line.parentRunId]))
  const isBelow = (id: string | undefined): boolean => {
    const parent = id === undefined ? undefined : parents.get(id)
    return parent !== undefined && (parent === runId || isBelow(parent))
  }
  return lines.filter((line) => isBelow(line.runId)).length
}

/** Something that ended below a run. */
interface Ended {
  readonly spent?: { readonly costUsd?: number }
}

/** Returns what the records of a run count for the runs below it, in US dollars. An unknown cost counts nothing. */
export const costBelow = (records: ReadonlyArray<RunRecord>): number =>
  records.flatMap(endedIn).reduce((sum, { spent }) => sum + (spent?.costUsd ?? 0), 0)

const endedIn = ({ delta, events }: RunRecord): ReadonlyArray<Ended> => [
  ...(delta.resolved ?? []),
  ...events.flatMap((event): ReadonlyArray<Ended> => {
    if (event.type === "tool_call_completed") return [event]
    return event.type === "turn_started" ? (event.ended ?? []) : []
  })
]
