/** Decisions of a person. Each is sent after a moment in which it can be taken back, or at once when the page is left. */

import { signal } from "@preact/signals"
import { attempt, data, place } from "./pageStore.ts"
import { type Decision, Refused } from "./source.ts"
import { say } from "./toasts.tsx"
import { readQuestions } from "./waitingStore.ts"

/** The milliseconds in which a decision can be taken back. */
const moment = 5_000

interface Made {
  readonly runId: string
  readonly decision: Decision
  readonly timer: ReturnType<typeof setTimeout>
}

/** The decisions that are not sent yet, by call. */
export const made = signal<ReadonlyMap<string, Made>>(new Map())
/** What became of the decisions that were sent, by call. */
export const sent = signal<ReadonlyMap<string, string>>(new Map())

export const decide = (runId: string, decision: Decision): void => {
  const timer = setTimeout(() => void send(decision.callId), moment)
  made.value = new Map(made.value).set(decision.callId, { runId, decision, timer })
}

/** Takes a decision back that is not sent yet. */
export const takeBack = (callId: string): void => {
  clearTimeout(made.value.get(callId)?.timer)
  forget(callId)
}

const forget = (callId: string): void => {
  made.value = new Map([...made.value].filter(([id]) => id !== callId))
}

const send = async (callId: string): Promise<void> => {
  const one = made.value.get(callId)
  if (one === undefined) return
  clearTimeout(one.timer)
  forget(callId)
  sent.value = new Map(sent.value).set(callId, "sending")
  const isSent = await attempt(async () => {
    const outcome = await answered(one)
    sent.value = new Map(sent.value).set(callId, outcome)
    // The card is gone with the next reading of the questions.
    if (outcome === elsewhere) say(`This call was ${elsewhere}`)
    if (place.value.screen === "questions") await readQuestions([one.runId])
  })
  if (!isSent) sent.value = new Map([...sent.value].filter(([id]) => id !== callId))
}

// A page that is closed has half a second for the last event, which a busy machine does not always give it.
for (const leaving of ["beforeunload", "pagehide"]) {
  addEventListener(leaving, () => {
    for (const callId of made.value.keys()) void send(callId)
  })
}

/** Returns a decision in a word. */
export const wordOf = (decision: Decision): string => {
  if ("output" in decision || decision.values !== undefined) return "answered"
  return decision.approved ? "approved" : "denied"
}

const elsewhere = "answered elsewhere already"

/** Sends a decision. An earlier answer of someone else is not a failure, since a call never runs twice. */
const answered = async ({ decision, runId }: Made): Promise<string> => {
  try {
    await data().answer(runId, decision)
    return wordOf(decision)
  } catch (error) {
    if (error instanceof Refused && (error.status === 404 || error.status === 409)) return elsewhere
    throw error
  }
}
