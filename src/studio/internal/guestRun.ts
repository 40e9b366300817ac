/**
 * The part of a run that an end user sees: the question, what the model said to people, and the questions that the user
 * may answer. Everything is copied by name, so that nothing new of a run is shown by accident.
 */

import * as Content from "../../Content.ts"
import * as Message from "../../Message.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { OpenQuestion, RunState, Turn } from "../../RunState.ts"
import { saidIn } from "./saidIn.ts"

/** The part of a run that a chat draws. */
export interface ChatRun extends Pick<RunState, "runId" | "agent" | "input" | "status" | "questions"> {
  readonly turns: ReadonlyArray<ChatTurn>
  readonly currentTurn?: ChatTurn | undefined
}

/** The part of a turn that a chat draws. */
export interface ChatTurn extends Pick<Turn, "turn" | "turnId" | "message" | "completed" | "inFlight"> {
  readonly outcome?: Turn["outcome"] | undefined
}

/** Returns a run for an end user, under the name that its page knows. */
export const guestRun = (runId: string, state: RunState, open: ReadonlyArray<OpenQuestion>): ChatRun => ({
  runId,
  agent: "",
  input: state.input.slice(-1).map(({ content }) => Message.user(content.filter(isShown))),
  status: statusOf(state.status),
  turns: state.turns.map(turnOf),
  currentTurn: state.currentTurn === undefined ? undefined : turnOf(state.currentTurn),
  questions: open.filter(isForOwner).map(({ asking, callId, input, name, reason }) => ({
    callId,
    name,
    input,
    reason,
    ...(asking === undefined ? {} : { asking })
  }))
})

const isShown = (part: Content.Content): boolean => part.type === "text" || Content.isMedia(part)

const turnOf = ({ message, turn, turnId }: Turn): ChatTurn => ({
  turn,
  turnId,
  completed: [],
  inFlight: [],
  ...(message === undefined ? {} : { message: spoken(message) })
})

const spoken = (message: Message.Message): Message.Message =>
  Message.assistant([Content.text(saidIn(message)), ...message.content.filter(({ type }) => type === "source")])

/** Whether the policies leave the answer to the user whose run it is. */
const isForOwner = ({ answerers }: OpenQuestion): boolean =>
  answerers === undefined || answerers.some(({ owner }) => owner === true)

const statusOf = (status: RunState["status"]): RunState["status"] => {
  const { phase } = status
  if (status.type === "running") return { type: "running", phase }
  const { createdAt } = status
  switch (status.type) {
    case "paused":
      return { type: "paused", phase, reason: "", metadata: null, createdAt }
    case "completed":
      return { type: "completed", phase, source: "model_done", createdAt }
    case "failed":
      return { type: "failed", phase, error: { tag: "Failed", message: "That did not work." }, createdAt }
    case "cancelled":
      return { type: "cancelled", phase, createdAt }
  }
}

/**
 * Returns a function from the events of a run to those for an end user: the reply to people while it is written, and
 * that something has changed.
 */
export const guestEvents = (runId: string, wholeId: string): ((event: RunEvent) => object | undefined) => {
  let block = ""
  return (event) => {
    if (event.runId !== wholeId) return undefined
    switch (event.type) {
      case "model_started":
      case "model_restarted":
        block = ""
        return { type: event.type, runId, step: event.step, ...revisionOf(event) }
      case "block_start":
        block = event.blockType
        return block === "final" ? { type: event.type, runId, blockType: block } : undefined
      case "block_complete":
      case "block_unclosed":
        block = ""
        return undefined
      case "text_chunk":
        return { type: event.type, runId, text: event.text }
      case "block_content":
        return block === "final" ? { type: event.type, runId, text: event.text } : undefined
      case "run_failed":
      case "run_cancelled":
        return { type: event.type, runId, ...revisionOf(event) }
      default:
        return "revision" in event ? { type: "changed", runId, ...revisionOf(event) } : undefined
    }
  }
}

const revisionOf = (event: RunEvent) => ("revision" in event ? { revision: event.revision } : {})
