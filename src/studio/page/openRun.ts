/** The open run: its journal, which grows while it is followed, and the shown revision. */

import { batch, computed, signal } from "@preact/signals"
import type { RunLine } from "../internal/studioData.ts"
import { Journal } from "./journal.ts"
import { attempt, data, place, setQuery } from "./pageStore.ts"
import { treeOf } from "./rows.ts"
import type { LiveEvent } from "./source.ts"

export interface OpenRun {
  readonly runId: string
  readonly journal: Journal
  /** Counts changes of the journal, which grows in place. */
  readonly version: number
  readonly isWhole: boolean
  readonly damage: string | undefined
  readonly family: ReadonlyArray<RunLine>
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
/** The folded turns, by key. */
export const folded = signal<ReadonlySet<string>>(new Set())
/** The turns and calls up to the revision. */
export const tree = computed(() => treeOf(run.value?.journal.rows ?? [], isLive.value ? Infinity : revision.value))
/** The tree without the calls of folded turns. */
export const openTree = computed(() => {
  if (folded.value.size === 0) return tree.value
  let isHidden = false
  return tree.value.filter(({ key, level }) => {
    if (level > 1) return !isHidden
    isHidden = folded.value.has(key)
    return true
  })
})
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
    run.value = { runId, journal: new Journal(), version: 0, isWhole: false, damage: undefined, family: [] }
    problem.value = ""
    said.value = ""
    playing.value = 0
    folded.value = new Set()
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
  const { runs } = await data().runs({ rootRunId })
  if (!isGone() && run.value !== undefined) run.value = { ...run.value, family: runs }
}

let isReading = false
let isBehind = false
let block = ""

const live = (runId: string, event: LiveEvent, isGone: () => boolean): void => {
  if (isGone() || event.runId !== runId) return
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
