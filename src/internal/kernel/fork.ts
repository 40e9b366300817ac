/**
 * Creates a new run from a prefix of another run's records.
 *
 * The records up to a revision are copied and edited. State is their fold, so an edit affects everything after it. Ids
 * that contain the id of the run get the id of the fork, so that calls and tasks of the two runs differ. Events keep
 * their times. Records get the time of the fork, so that no worker considers it abandoned.
 */

import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Stream from "effect/Stream"
import type { ForkError } from "../../KernelError.ts"
import { RunNotFound } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import type { PhaseEvent } from "../../RunEvent.ts"
import type { Question, Delta, PromptDelta, RunRecord } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import { renamed } from "../words/ids.ts"
import { patient } from "../../store-kit/internal/storeGuard.ts"
import { isJsonObject, type Json } from "../../kit/json.ts"
import { foldFrom } from "../../store-kit/StoreRules.ts"

/** The revision to fork at, and how the fork differs. */
export interface Fork {
  /** The last revision that the fork shares with the run, at most the run's last one. */
  readonly revision: number
  readonly runId: string
  /** Edits a record for the fork. Its ids are already those of the fork. */
  readonly edit?: ((record: RunRecord) => RunRecord) | undefined
}

/** Creates a fork, atomically. */
export const fork = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  from: string,
  { edit = identity, revision, runId }: Fork
): Effect.fn.Return<void, ForkError> {
  // Later records are not read, so a damaged one does not matter.
  const common = Stream.takeUntil(store.read(from), (record) => record.revision >= revision)
  const records = yield* Stream.runCollect(common)
  const last = records.at(-1)
  // A journal without its first record has no state.
  if (last === undefined || records[0]?.events[0]?.type !== "run_started")
    return yield* new RunNotFound({ runId: from })
  const createdAt = yield* Clock.currentTimeMillis
  const copies = Arr.map(records, (record, index) => ({
    ...edit(rename(record, last, runId)),
    runId,
    revision: index + 1,
    createdAt
  }))
  const state = yield* foldFrom(undefined, copies)
  if (!Arr.isArrayNonEmpty(copies) || state === undefined) return
  // Appending a long journal may take longer than `appendTimeout`.
  yield* patient(store, { appendTimeout: Duration.infinity }).append(copies, state)
})

/** Turns an event into one of the fork, which is always a root run. */
const asRootEvent = (event: PhaseEvent, runId: string, from: Pick<RunRecord, "runId" | "revision">): PhaseEvent => {
  const scope = { runId, rootRunId: runId, depth: 0, taskId: undefined }
  return event.type === "run_started"
    ? { ...event, ...scope, parentRunId: undefined, forkedFrom: { runId: from.runId, revision: from.revision } }
    : { ...event, ...scope }
}

// ---------------------------------------------------------------- ids

type Rename = (id: string) => string

const rename = (record: RunRecord, from: RunRecord, runId: string): RunRecord => {
  const own: Rename = (id) => (id.startsWith(`${from.runId}:`) ? runId + id.slice(from.runId.length) : id)
  return {
    ...record,
    runId,
    delta: renameDelta(record.delta, own),
    events: record.events.map((event) => asRootEvent(renameEvent(event, own), runId, from))
  }
}

const renameEvent = (event: PhaseEvent, own: Rename): PhaseEvent => {
  switch (event.type) {
    case "turn_started":
    case "turn_completed":
      return { ...event, turnId: own(event.turnId) }
    case "turn_prepared":
      return { ...event, prompt: renamePrompt(event.prompt, own) }
    case "agent_changed":
      return { ...renameCall(event, own), prompt: renamePrompt(event.prompt, own) }
    case "model_completed":
      return {
        ...event,
        message: renameMessage(event.message, own),
        calls: event.calls.map((call) => renameCall(call, own))
      }
    case "tool_calls_started":
      return {
        ...event,
        ...(event.calls === undefined ? {} : { calls: event.calls.map((call) => renameCall(call, own)) }),
        ...(event.questions === undefined
          ? {}
          : { questions: event.questions.map((question) => renameQuestion(question, own)) })
      }
    case "tool_call_started": {
      const { change } = event
      const named = renameCall(event, own)
      if (change === undefined) return named
      return change.type === "rewrite"
        ? { ...named, change: { ...change, call: renameCall(change.call, own) } }
        : { ...named, change: { ...change, result: renameCall(change.result, own) } }
    }
    case "tool_call_completed":
      return renameCall(event, own)
    case "run_cancelled":
      return { ...event, inFlight: event.inFlight.map((call) => renameCall(call, own)) }
    case "paused":
      return { ...event, metadata: renameMetadata(event.metadata, own) }
    default:
      return event
  }
}

/** Renames the calls in the metadata of a pause. Other metadata belongs to the host. */
const renameMetadata = (metadata: Json, own: Rename): Json => {
  if (!isJsonObject(metadata)) return metadata
  const { questions, callIds } = metadata
  return {
    ...metadata,
    ...(Array.isArray(callIds) ? { callIds: callIds.map((id) => renameId(id, own)) } : {}),
    ...(Array.isArray(questions) ? { questions: questions.map((question) => renameId(question, own)) } : {})
  }
}

/** Renames an id, or the `callId` of an object. */
const renameId = (named: Json, own: Rename): Json =>
  typeof named === "string"
    ? own(named)
    : isJsonObject(named) && named["callId"] !== undefined
      ? { ...named, callId: renameId(named["callId"], own) }
      : named

const renameDelta = (delta: Delta, own: Rename): Delta => ({
  ...delta,
  ...(delta.launched === undefined ? {} : { launched: delta.launched.map(own) }),
  ...(delta.retried === undefined ? {} : { retried: delta.retried.map(own) }),
  ...(delta.returned === undefined ? {} : { returned: delta.returned.map(own) }),
  ...(delta.resolved === undefined ? {} : { resolved: delta.resolved.map((call) => renameCall(call, own)) }),
  ...(delta.answers === undefined ? {} : { answers: delta.answers.map((call) => renameCall(call, own)) }),
  ...(delta.asked === undefined ? {} : { asked: delta.asked.map((question) => renameQuestion(question, own)) })
})

const renameCall = <A extends { readonly callId: string }>(call: A, own: Rename): A => ({
  ...call,
  callId: own(call.callId)
})

/** Renames the tool uses and tool results in a message. */
const renameMessage = (message: Message, own: Rename): Message => ({
  ...message,
  content: message.content.map((part) => renamed(part, own))
})

const renamePrompt = (prompt: PromptDelta, own: Rename): PromptDelta => ({
  ...prompt,
  append: prompt.append.map((message) => renameMessage(message, own))
})

const renameQuestion = (question: Question, own: Rename): Question => ({
  ...renameCall(question, own),
  ...(question.answer === undefined ? {} : { answer: renameCall(question.answer, own) })
})
