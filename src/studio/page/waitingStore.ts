/** The runs that wait for a person, as the server announces them, and their questions. */

import { effect, signal, untracked } from "@preact/signals"
import type { WaitingQuestion } from "../internal/studioData.ts"
import type { WaitingChange } from "../internal/waitingFeed.ts"
import { attempt, data, place } from "./pageStore.ts"

/** The number of runs that wait. */
export const waiting = signal(0)

export const questions = signal<ReadonlyArray<WaitingQuestion>>([])
/** Whether the questions were read. Until then nobody can say that nothing waits. */
export const hasQuestions = signal(false)

/** The revisions of the runs that wait, as they were announced, and as their questions were read. */
const announced = new Map<string, number>()
const read = new Map<string, number>()

/** The number of runs whose questions are read at once. */
const pageSize = 50

/** Counts the announcements. */
const announcements = signal(0)

const receive = ({ asked, count, gone }: WaitingChange): void => {
  if (gone === undefined) announced.clear()
  for (const runId of gone ?? []) announced.delete(runId)
  for (const [runId, revision] of asked) announced.set(runId, revision)
  waiting.value = count
  announcements.value++
}

const order = (one: WaitingQuestion, other: WaitingQuestion): number =>
  one.startedAt - other.startedAt || (one.rootRunId < other.rootRunId ? -1 : one.rootRunId > other.rootRunId ? 1 : 0)

/** Reads the questions of runs, which replace those that were known. */
export const readQuestions = async (runIds: ReadonlyArray<string>): Promise<void> => {
  const found = await data().waiting(runIds)
  const others = questions.value.filter(({ rootRunId }) => !runIds.includes(rootRunId))
  questions.value = [...others, ...found].toSorted(order)
}

let isReading = false

/** Reads the questions of runs that were announced since they were read, a page at a time. */
const readAnnounced = async (): Promise<void> => {
  for (;;) {
    for (const runId of read.keys()) if (!announced.has(runId)) read.delete(runId)
    questions.value = questions.value.filter(({ rootRunId }) => announced.has(rootRunId))
    const next = [...announced].filter(([runId, revision]) => read.get(runId) !== revision).slice(0, pageSize)
    if (next.length > 0) await readQuestions(next.map(([runId]) => runId))
    for (const [runId, revision] of next) read.set(runId, revision)
    hasQuestions.value = true
    if (next.length === 0) return
  }
}

/** Follows the runs that wait while the page is visible, and reads their questions while they are shown. */
export const followWaiting = (): void => {
  let leave = () => {}
  const join = () => {
    leave()
    leave = document.visibilityState === "hidden" ? () => {} : data().followWaiting(receive)
  }
  join()
  document.addEventListener("visibilitychange", join)
  effect(() => {
    if (place.value.screen !== "questions" || announcements.value === 0 || isReading) return
    isReading = true
    void untracked(() => attempt(readAnnounced)).then(() => (isReading = false))
  })
}
