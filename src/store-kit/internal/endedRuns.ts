/**
 * Bounds the ended runs that a store keeps in memory.
 *
 * Runs are dropped as whole trees, beginning with the tree whose root ended first. A tree is kept while its root is
 * running, paused or queued, and while a run forked from it has not ended. The tree that ended last is always kept. An
 * interrupted run whose lease was released counts as ended until it is resumed.
 */

import { factsOf } from "../../internal/words/messageFacts.ts"
import { weigh } from "../../kit/json.ts"
import type { PhaseEvent, RunRecord } from "../../RunRecord.ts"
import type { RunState } from "../../RunState.ts"

/** How many ended runs are kept. */
export interface EndedLimits {
  readonly runs: number
  readonly bytes: number
}

/** A stored run, as far as the limits need it. */
interface Kept {
  /** The approximate size of its journal in bytes. */
  readonly bytes: number
  readonly state: RunState
  readonly lease: unknown
}

/** The trees of a store, and which of them have ended. */
export interface EndedRuns {
  readonly limits: EndedLimits
  /** The runs of each tree. */
  readonly trees: Map<string, Set<string>>
  /** The size of each ended tree, in the order in which they ended. */
  readonly sizes: Map<string, Size>
  readonly forks: Set<string>
  runs: number
  bytes: number
}

interface Size {
  readonly runs: number
  readonly bytes: number
}

/** Creates an empty record of ended runs. */
export const make = (limits: EndedLimits): EndedRuns => ({
  limits,
  trees: new Map(),
  sizes: new Map(),
  forks: new Set(),
  runs: 0,
  bytes: 0
})

/** Updates a run after an append. Returns the runs to drop. */
export const note = (
  ended: EndedRuns,
  kept: ReadonlyMap<string, Kept>,
  { forkedFrom, rootRunId, runId, status }: RunState
): ReadonlyArray<string> => {
  const { limits, trees } = ended
  if (limits.runs === Infinity && limits.bytes === Infinity) return none
  const tree = trees.get(rootRunId)
  if (tree === undefined) trees.set(rootRunId, new Set([runId]))
  else tree.add(runId)
  if (forkedFrom !== undefined) ended.forks.add(runId)
  if (runId !== rootRunId) return none
  uncount(ended, runId)
  if (status.type !== "completed" && status.type !== "cancelled" && status.type !== "failed") return none
  count(ended, kept, runId)
  return excess(ended, kept)
}

/**
 * Counts a run without a process among the ended ones: it was interrupted, and its lease was released. Returns the runs
 * to drop.
 */
export const noteInterrupted = (
  ended: EndedRuns,
  kept: ReadonlyMap<string, Kept>,
  { rootRunId, runId, status }: RunState
): ReadonlyArray<string> => {
  const { limits } = ended
  if (limits.runs === Infinity && limits.bytes === Infinity) return none
  if (runId !== rootRunId || status.type !== "running") return none
  uncount(ended, runId)
  count(ended, kept, runId)
  return excess(ended, kept)
}

/** Forgets a run that was removed. */
export const forget = (ended: EndedRuns, { rootRunId, runId }: RunState): void => {
  const tree = ended.trees.get(rootRunId)
  tree?.delete(runId)
  if (tree?.size === 0) ended.trees.delete(rootRunId)
  ended.forks.delete(runId)
  uncount(ended, runId)
}

const none: ReadonlyArray<never> = []

// ---------------------------------------------------------------- sizes

const count = (ended: EndedRuns, kept: ReadonlyMap<string, Kept>, root: string): void => {
  const runs = ended.trees.get(root) ?? none
  let size: Size = { runs: 0, bytes: 0 }
  for (const id of runs) size = { runs: size.runs + 1, bytes: size.bytes + (kept.get(id)?.bytes ?? 0) }
  ended.sizes.set(root, size)
  ended.runs += size.runs
  ended.bytes += size.bytes
}

const uncount = (ended: EndedRuns, root: string): void => {
  const size = ended.sizes.get(root)
  if (size === undefined) return
  ended.sizes.delete(root)
  ended.runs -= size.runs
  ended.bytes -= size.bytes
}

/** Returns the approximate size of a record in bytes. */
export const weighRecord = ({ delta, events, op }: RunRecord): number => {
  let bytes = perRecord + (op === "launch" ? 0 : weigh(delta))
  for (const event of events) bytes += payload(event)
  return bytes
}

const perRecord = 400

/** Returns the approximate size in bytes of an event's values from models, skills and hosts. */
const payload = (event: PhaseEvent): number => {
  switch (event.type) {
    case "model_started":
    case "tool_calls_completed":
    case "turn_completed":
      return 0
    case "turn_started":
      return weigh(event.steering)
    case "turn_prepared":
      return weigh(event.prompt) + weigh(event.args)
    case "tool_calls_started":
      return weigh(event.calls) + weigh(event.questions)
    case "tool_call_started":
      return weigh(event.change)
    case "model_completed":
      return weigh(event.message) + weigh(event.calls)
    case "tool_call_completed":
      return weigh(event.result)
    case "run_started": {
      const { messages, ...rest } = event
      return weigh(rest) + factsOf(messages).size
    }
    default:
      return weigh(event)
  }
}

// ---------------------------------------------------------------- dropping

/** Returns the runs of the oldest ended trees, as many as exceed the limits. */
const excess = (ended: EndedRuns, kept: ReadonlyMap<string, Kept>): ReadonlyArray<string> => {
  const { limits, sizes, trees } = ended
  let { bytes, runs } = ended
  if (runs <= limits.runs && bytes <= limits.bytes) return none
  const needed = originsOfOpen(ended, kept)
  const dropped: Array<string> = []
  let left = sizes.size
  for (const [root, size] of sizes) {
    if ((runs <= limits.runs && bytes <= limits.bytes) || left === 1) break
    left -= 1
    if (needed.has(root) || kept.get(root)?.lease !== undefined) continue
    runs -= size.runs
    bytes -= size.bytes
    dropped.push(...(trees.get(root) ?? none))
  }
  return dropped
}

/** Returns the trees from which unfinished runs were forked, nearest first. */
const originsOfOpen = ({ forks }: EndedRuns, kept: ReadonlyMap<string, Kept>): ReadonlySet<string> => {
  const found = new Set<string>()
  for (const fork of forks) {
    const state = kept.get(fork)?.state
    if (state?.status.type === "completed") continue
    let from = state?.forkedFrom
    while (from !== undefined) {
      const root = kept.get(from.runId)?.state.rootRunId ?? from.runId
      if (found.has(root)) break
      found.add(root)
      from = kept.get(root)?.state.forkedFrom
    }
  }
  return found
}
