/** The lines of the tree, at the shown revision and its time. */

import { computed, signal } from "@preact/signals"
import { statusOf } from "../../store-kit/StoreRules.ts"
import { axisOf, type Known, type Line, linesOf } from "../RunTree.ts"
import { family } from "./familyRuns.ts"
import type { Journal } from "./journal.ts"
import { isLive, revision, run } from "./openRun.ts"

/** The folded lines, by key. */
export const folded = signal<ReadonlySet<string>>(new Set())

/** Returns what is known of the runs of the tree, at a time or at their ends. */
const knownRuns = (at: number): ReadonlyMap<string, Known> => {
  const open = run.value
  const runs = new Map<string, Known>()
  for (const line of family.value.lines) {
    const journal = family.value.journals.get(line.runId)
    if (line.createdAt <= at) runs.set(line.runId, { line, records: journal?.records ?? [], upTo: upToOf(journal, at) })
  }
  const state = open?.journal.stateAt(at === Infinity ? Infinity : revision.value)
  if (open === undefined || state === undefined) return runs
  const line = { ...state, turns: state.turns.length, status: statusOf(state.status) }
  const upTo = at === Infinity ? Infinity : revision.value
  return runs.set(open.runId, { line, records: open.journal.records, upTo })
}

const upToOf = (journal: Journal | undefined, at: number): number => {
  if (journal === undefined || at === Infinity) return Infinity
  let from = 0
  let to = journal.records.length
  while (from < to) {
    const middle = (from + to) >> 1
    if ((journal.records[middle]?.createdAt ?? Infinity) <= at) from = middle + 1
    else to = middle
  }
  return from
}

const rootId = computed(() => family.value.rootRunId || (run.value?.runId ?? ""))
const shownAt = computed(() =>
  isLive.value ? Infinity : (run.value?.journal.records[revision.value - 1]?.createdAt ?? Infinity)
)

/** Returns the time at which the run is shown, where open times end. */
export const shownTime = (): number => (shownAt.value === Infinity ? Date.now() : shownAt.value)

/** The whole tree, whose times make the axis, so that it stands still while the run plays. */
const whole = computed(() => linesOf(rootId.value, knownRuns(Infinity)))

export const axis = computed(() => axisOf(barsOf(whole.value), Date.now()))

function* barsOf(lines: ReadonlyArray<Line>) {
  for (const { bars } of lines) yield* bars
}

/** The lines at the shown revision. */
export const tree = computed(() =>
  shownAt.value === Infinity ? whole.value : linesOf(rootId.value, knownRuns(shownAt.value))
)

/** The lines that are not folded away. */
export const openTree = computed(() => {
  if (folded.value.size === 0) return tree.value
  let hiddenBelow = Infinity
  return tree.value.filter(({ key, level }) => {
    if (level > hiddenBelow) return false
    hiddenBelow = folded.value.has(key) ? level : Infinity
    return true
  })
})

/** The index of the line of the shown revision. */
export const selectedLine = computed(() =>
  openTree.value.findLastIndex((line) => line.runId === run.value?.runId && line.revision <= revision.value)
)

export const setFolded = (key: string, isFolded: boolean): void => {
  const others = [...folded.value].filter((one) => one !== key)
  folded.value = new Set(isFolded ? [...others, key] : others)
}
