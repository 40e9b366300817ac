/**
 * Creates a new run from a prefix of another run's records.
 *
 * The records up to a revision are copied and edited. State is their fold, so an edit affects everything after it. Ids
 * that contain the run's own id get that of the fork, so that no call or task of the fork is taken for one of the
 * original. Events keep their times; records are as new as the fork, so that no worker takes it for an abandoned run.
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
import { patient } from "../store/storeGuard.ts"
import { isJsonObject, type Json } from "../base/json.ts"
import { foldFrom } from "../store/storeRules.ts"

/** Where to leave a run, and how the fork differs. */
export interface Fork {
  /** The last revision the fork has in common with the run; the run's last one if there are fewer. */
  readonly revision: number
  /** The id of the fork. */
  readonly runId: string
  /** Changes a record on its way into the fork. Its ids are already those of the fork. */
  readonly edit?: ((record: RunRecord) => RunRecord) | undefined
}

/** Creates a fork. Stores all of it or nothing. */
export const fork = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  from: string,
  { edit = identity, revision, runId }: Fork
): Effect.fn.Return<void, ForkError> {
  // Later records are not read, whatever they hold.
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
  // A long journal takes its time to append.
  yield* patient(store, { appendTimeout: Duration.infinity }).append(copies, state)
})

/** A fork is a root run, whatever its original was. */
const planted = (event: PhaseEvent, runId: string, from: Pick<RunRecord, "runId" | "revision">): PhaseEvent => {
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
    events: record.events.map((event) => planted(renameEvent(event, own), runId, from))
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
        message: renameSaid(event.message, own),
        calls: event.calls.map((call) => renameCall(call, own))
      }
    case "tool_calls_started":
      return {
        ...event,
        ...(event.calls === undefined ? {} : { calls: event.calls.map((call) => renameCall(call, own)) }),
        ...(event.questions === undefined
          ? {}
          : { questions: event.questions.map((approval) => renameApproval(approval, own)) })
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
      return { ...event, metadata: renameQuestion(event.metadata, own) }
    default:
      return event
  }
}

/** The ids in the questions of a pause; the rest belongs to the host. */
const renameQuestion = (metadata: Json, own: Rename): Json => {
  if (!isJsonObject(metadata)) return metadata
  const { questions, callIds } = metadata
  return {
    ...metadata,
    ...(Array.isArray(callIds) ? { callIds: callIds.map((id) => renameId(id, own)) } : {}),
    ...(Array.isArray(questions) ? { questions: questions.map((question) => renameId(question, own)) } : {})
  }
}

/** An id, or what has one. */
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
  ...(delta.asked === undefined ? {} : { asked: delta.asked.map((approval) => renameApproval(approval, own)) })
})

/** A call, or a part of one with its id. */
const renameCall = <A extends { readonly callId: string }>(call: A, own: Rename): A => ({
  ...call,
  callId: own(call.callId)
})

/** The calls in a message: those of the model, and their results in a prompt. */
const renameSaid = (message: Message, own: Rename): Message => ({
  ...message,
  content: message.content.map((part) => renamed(part, own))
})

const renamePrompt = (prompt: PromptDelta, own: Rename): PromptDelta => ({
  ...prompt,
  append: prompt.append.map((message) => renameSaid(message, own))
})

const renameApproval = (approval: Question, own: Rename): Question => ({
  ...renameCall(approval, own),
  ...(approval.answer === undefined ? {} : { answer: renameCall(approval.answer, own) })
})
