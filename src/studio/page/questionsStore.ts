/** Which questions the screen of approvals shows, and which of them is selected. */

import { computed, signal } from "@preact/signals"
import type { WaitingQuestion } from "../internal/studioData.ts"
import { place } from "./pageStore.ts"
import { questions } from "./waitingStore.ts"

/** The agent that asks. */
export const agentOf = ({ agents }: WaitingQuestion): string => agents.at(-1) ?? ""

/** The questions that the filter of the address selects, the oldest first. */
export const shown = computed((): ReadonlyArray<WaitingQuestion> => {
  const agent = place.value.query.get("agent")
  const skill = place.value.query.get("skill")
  return questions.value.filter(
    (question) => (agent === null || agentOf(question) === agent) && (skill === null || question.name === skill)
  )
})

const selection = signal({ callId: "", at: 0 })

/** Selects a question. */
export const select = (callId: string): void => {
  selection.value = { callId, at: shown.value.findIndex((question) => question.callId === callId) }
}

/** The selected question. If it was answered, the one that took its place. */
export const chosen = computed((): WaitingQuestion | undefined => {
  const { at, callId } = selection.value
  const list = shown.value
  return list.find((question) => question.callId === callId) ?? list[Math.min(Math.max(at, 0), list.length - 1)]
})
