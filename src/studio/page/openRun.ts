/** The open run: its journal, which grows while it is followed, and the shown revision. */

import { batch, computed, signal } from "@preact/signals"
import { Journal } from "./journal.ts"
import { closeFamily, journalOf, openFamily, readFamilySoon } from "./familyRuns.ts"
import { attempt, data, place, setQuery } from "./pageStore.ts"
import type { LiveEvent } from "./source.ts"

export interface OpenRun {
  readonly runId: string
  readonly journal: Journal
  /** Counts changes of the journal, which grows in place. */
  readonly version: number
  readonly isWhole: boolean
  readonly damage: string | undefined
}

export const run = signal<OpenRun | undefined>(undefined)
export const problem = signal("")
/** The text of the reply in progress. */
export const said = signal("")
/** Revisions per second, 0 while the run does not play. */
export const playing = signal(0)

/** True while the last revision is shown as it grows. */
export const isLive = computed(() => place.value.query.get("rev") === null)
export const revision = computed(() => {
  const last = run.value?.journal.revision ?? 0
  const asked = Number(place.value.query.get("rev") ?? last)
  return Math.max(0, Math.min(Number.isInteger(asked) ? asked : last, last))
})
export const state = computed(() => run.value?.journal.stateAt(revision.value))
/** The filter text of the events tab. */
export const eventFilter = signal("")
export const events = computed(() => {
  const rows = run.value?.journal.rows ?? []
  const words = eventFilter.value.toLowerCase()
  if (words === "") return rows
  return rows.filter(({ text, type }) => type.includes(words) || text.toLowerCase().includes(words))
})

export const setRevision = (to: number): void => {
  const last = run.value?.journal.revision ?? 0
  setQuery("rev", String(Math.max(1, Math.min(to, last))))
}

export const goLive = (): void => setQuery("rev", undefined)

let leave: () => void = () => undefined

/** Opens a run: reads its journal and the runs of its tree, then follows its events. */
export const openRun = async (runId: string): Promise<void> => {
  leave()
  let isGone = false
  let stop = () => {}
  leave = () => {
    isGone = true
    stop()
  }
  batch(() => {
    run.value = { runId, journal: journalOf(runId) ?? new Journal(), version: 0, isWhole: false, damage: undefined }
    problem.value = ""
    said.value = ""
    playing.value = 0
    eventFilter.value = ""
  })
  try {
    await readOn(runId, () => isGone)
    if (isGone || isOver()) return
    stop = data().follow(runId, run.value?.journal.revision ?? 0, (event) => live(runId, event, () => isGone))
  } catch (error) {
    problem.value = error instanceof Error ? error.message : String(error)
  }
}

export const closeRun = (): void => {
  leave()
  closeFamily()
  run.value = undefined
}

/** Returns true if the run has ended for good. A failed one can be resumed. */
const isOver = (): boolean => {
  const status = run.value?.journal.stateAt(Infinity)?.status.type
  return status === "completed" || status === "cancelled"
}

/** Number of records in the first part, which is small so that it is drawn at once. */
const firstPart = 200
const laterParts = 2_000
/** Milliseconds between drawings of a journal that is still being read. */
const pace = 400

/** Reads the rest of the journal, part by part. */
const readOn = async (runId: string, isGone: () => boolean): Promise<void> => {
  let drawnAt = -Infinity
  for (;;) {
    const open = run.value
    if (isGone() || open?.runId !== runId) return
    const { journal } = open
    const limit = journal.revision === 0 ? firstPart : laterParts
    const { damage, records, revision } = await data().records(runId, journal.revision, limit)
    if (isGone()) return
    journal.add(records)
    const isWhole = journal.revision >= revision || records.length === 0 || damage !== undefined
    if (isWhole || performance.now() - drawnAt > pace) {
      drawnAt = performance.now()
      run.value = { ...(run.value ?? open), version: open.version + 1, isWhole, damage }
    }
    if (isWhole) break
  }
  const rootRunId = run.value?.journal.stateAt(1)?.rootRunId ?? runId
  if (run.value !== undefined) await openFamily(rootRunId, runId, run.value.journal)
}

let isReading = false
let isBehind = false
let block = ""

const live = (runId: string, event: LiveEvent, isGone: () => boolean): void => {
  if (isGone()) return
  if (event.runId !== runId) {
    if (event.revision !== undefined) readFamilySoon()
    return
  }
  if (event.type === "block_start") block = event.blockType ?? ""
  if (event.type === "block_complete") block = ""
  if (event.type === "text_chunk" || (event.type === "block_content" && block === "final"))
    said.value += event.text ?? ""
  if (event.type === "model_completed" || event.type === "model_started") said.value = ""
  if (event.revision === undefined || event.revision <= (run.value?.journal.revision ?? 0)) return
  if (isReading) {
    isBehind = true
    return
  }
  isReading = true
  requestAnimationFrame(async () => {
    do {
      isBehind = false
      await attempt(() => readOn(runId, isGone))
    } while (isBehind)
    isReading = false
  })
}
