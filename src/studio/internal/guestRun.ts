/**
 * The part of a run that an end user sees: the question, what the model said to people, the media of results, and the
 * questions that the user may answer. Everything is copied by name, so that nothing new of a run is shown by accident.
 */

import type { CallResult } from "../../Call.ts"
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

/** A run for an end user, and whether its results may show media. */
interface Given {
  /** The name of the run that the page knows. */
  readonly runId: string
  readonly state: RunState
  readonly open?: ReadonlyArray<OpenQuestion>
  readonly hasMedia: boolean
}

/** Returns a run for an end user. */
export const guestRun = ({ hasMedia, open = [], runId, state }: Given): ChatRun => ({
  runId,
  agent: "",
  input: state.input.slice(-1).map(({ content }) => Message.user(content.filter(isShown))),
  status: statusOf(state.status),
  turns: state.turns.map((turn) => turnOf(turn, hasMedia)),
  currentTurn: state.currentTurn === undefined ? undefined : turnOf(state.currentTurn, hasMedia),
  questions: open.filter(isForOwner).map(({ asking, callId, input, name, reason }) => ({
    callId,
    name,
    input,
    reason,
    ...(asking === undefined ? {} : { asking })
  }))
})

const isShown = (part: Content.Content): boolean => part.type === "text" || Content.isMedia(part)

/** Returns the ids of the media of a run that its user sees. */
export const mediaIn = ({ currentTurn, input, turns }: ChatRun): ReadonlySet<string> => {
  const shown = currentTurn === undefined ? turns : [...turns, currentTurn]
  const parts = [
    ...input.flatMap(({ content }) => content),
    ...shown.flatMap(({ completed, message }) => [
      ...(message?.content ?? []),
      ...completed.flatMap(({ output = [] }) => output)
    ])
  ]
  return new Set(parts.flatMap((part) => (Content.isMedia(part) && part.fileId !== undefined ? [part.fileId] : [])))
}

const turnOf = ({ completed, message, turn, turnId }: Turn, hasMedia: boolean): ChatTurn => ({
  turn,
  turnId,
  completed: hasMedia ? completed.flatMap(mediaOf) : [],
  inFlight: [],
  ...(message === undefined ? {} : { message: spoken(message) })
})

/** Returns the media of a result, without the call that they are from. */
const mediaOf = ({ error, output = [] }: CallResult, index: number): ReadonlyArray<CallResult> => {
  const media = error === undefined ? output.filter(Content.isMedia) : []
  return media.length === 0
    ? []
    : [{ callId: String(index), name: null, kind: "skill", input: null, output: media.map(reference) }]
}

const reference = ({ fileId, mediaType, type, ...rest }: Content.MediaContent): Content.MediaContent => ({
  type,
  ...(fileId === undefined ? {} : { fileId }),
  ...(mediaType === undefined ? {} : { mediaType }),
  ...("filename" in rest && typeof rest.filename === "string" ? { filename: rest.filename } : {})
})

const spoken = (message: Message.Message): Message.Message =>
  Message.assistant([
    Content.text(saidIn(message)),
    ...message.content.flatMap((part): ReadonlyArray<Content.Content> =>
      part.type === "source" ? [part] : Content.isMedia(part) ? [reference(part)] : []
    )
  ])

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
