/** The runs of the tree of the open run, and their journals. */

import { signal } from "@preact/signals"
import type { RunLine } from "../internal/studioData.ts"
import { Journal } from "./journal.ts"
import { attempt, data } from "./pageStore.ts"

export interface Family {
  readonly rootRunId: string
  readonly lines: ReadonlyArray<RunLine>
  readonly journals: ReadonlyMap<string, Journal>
  /** Counts changes of the journals, which grow in place. */
  readonly version: number
}

const none: Family = { rootRunId: "", lines: [], journals: new Map(), version: 0 }

export const family = signal<Family>(none)

/** The most runs whose turns and calls are shown, and the most records of each. Of others, the time alone is shown. */
const mostRuns = 60
const mostRecords = 2_000
const pace = 300

export const journalOf = (runId: string): Journal | undefined => family.value.journals.get(runId)

export const closeFamily = (): void => {
  family.value = none
}

/** Reads the runs of a tree. `journal` is that of the open run, which is read elsewhere. */
export const openFamily = async (rootRunId: string, runId: string, journal: Journal): Promise<void> => {
  const before = family.value.rootRunId === rootRunId ? family.value : none
  family.value = { ...before, rootRunId, journals: new Map([...before.journals, [runId, journal]]) }
  await readFamily(runId)
}

const readFamily = async (openId: string): Promise<void> => {
  const { rootRunId } = family.value
  const { runs } = await data().runs({ rootRunId })
  if (family.value.rootRunId !== rootRunId) return
  const journals = new Map(family.value.journals)
  const behind = runs.filter(
    ({ revision, runId }) => runId !== openId && (journals.get(runId)?.revision ?? 0) < Math.min(revision, mostRecords)
  )
  for (const { runId } of behind.slice(0, mostRuns)) {
    const journal = journals.get(runId) ?? new Journal()
    const { records } = await data().records(runId, journal.revision, mostRecords)
    if (family.value.rootRunId !== rootRunId) return
    journal.add(records)
    journals.set(runId, journal)
  }
  lastOpen = openId
  family.value = { rootRunId, lines: runs, journals, version: family.value.version + 1 }
}

let lastOpen = ""
let timer: ReturnType<typeof setTimeout> | undefined

/** Reads the tree again after a moment, since events come in crowds. */
export const readFamilySoon = (): void => {
  timer ??= setTimeout(() => {
    timer = undefined
    if (family.value.rootRunId !== "") void attempt(() => readFamily(lastOpen))
  }, pace)
}
