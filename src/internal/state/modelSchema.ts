/**
 * The schemas of a run's data: its status, its turns, its state.
 *
 * The types of `RunModel` are those of these schemas, and comments of fields stand here.
 */

import * as Schema from "effect/Schema"
import { perObject } from "../../kit/perObject.ts"
import { absent, isFields, lazily, type Visit } from "../../kit/schemas.ts"
import * as Storable from "../../kit/storable.ts"
import { Model } from "../../Model.ts"
import { Plan } from "../../Plan.ts"
import * as Calls from "../words/callSchema.ts"
import { Caller } from "../../Caller.ts"
import type { ContentCodec } from "../words/messageSchema.ts"
import * as Messages from "../words/messageSchema.ts"
import { dialectName, finishReason, generation } from "../words/modelCallSchema.ts"
import { question } from "../words/question.ts"

export const phase = lazily(() =>
  Schema.Literals([
    "run_started",
    "turn_started",
    "turn_prepared",
    "model_started",
    "model_completed",
    "tool_calls_started",
    "tool_call_started",
    "tool_call_completed",
    "tool_calls_completed",
    "turn_completed"
  ])
)

export const runSource = lazily(() => Schema.Literals(["caller", "model_done", "max_turns"]))

export const errorInfo = lazily(() =>
  Schema.Struct({ tag: Schema.String, message: Schema.String, fields: Schema.optionalKey(Storable.JsonObject) })
)

export const callLeft = lazily(() =>
  Schema.Struct({
    callId: Messages.ownId(),
    name: Schema.NullOr(Schema.String),
    /** A `write` call may have acted. */
    effects: Schema.optionalKey(Calls.effects())
  })
)

/** The metadata of a pause. That of a pause for questions names calls of the run; any other belongs to the host. */
export const pauseMetadata = lazily(() => Storable.Json.annotate(Messages.ids.by(renameQuestions)))

const renameQuestions: Visit<(id: string) => string> = (metadata, own) => {
  if (!isFields(metadata)) return metadata
  const { callIds, questions } = metadata
  return {
    ...metadata,
    ...(Array.isArray(callIds) ? { callIds: callIds.map((id) => renameCall(id, own)) } : {}),
    ...(Array.isArray(questions) ? { questions: questions.map((question) => renameCall(question, own)) } : {})
  }
}

/** Renames an id, or the `callId` of an object. */
const renameCall: Visit<(id: string) => string> = (named, own) =>
  typeof named === "string"
    ? own(named)
    : isFields(named) && typeof named["callId"] === "string"
      ? { ...named, callId: own(named["callId"]) }
      : named

/** The end of a run: its cause, and what its host said. */
export const ending = lazily(() =>
  Schema.Struct({
    source: runSource(),
    reason: Schema.optionalKey(Schema.String),
    metadata: Schema.optionalKey(Storable.Json)
  })
)

export const status = lazily(() => {
  const since = { createdAt: Schema.Finite }
  return Schema.Union([
    Schema.Struct({ type: Schema.Literal("running"), phase: phase() }),
    Schema.Struct({
      type: Schema.Literal("paused"),
      phase: phase(),
      reason: Schema.String,
      metadata: Storable.Json,
      ...since
    }),
    Schema.Struct({ type: Schema.Literal("completed"), phase: phase(), ...ending().fields, ...since }),
    Schema.Struct({ type: Schema.Literal("failed"), phase: phase(), error: errorInfo(), ...since }),
    Schema.Struct({
      type: Schema.Literal("cancelled"),
      phase: phase(),
      reason: Schema.optionalKey(Schema.String),
      by: Schema.optionalKey(Schema.String),
      ...since
    })
  ])
})

export const promptDelta = perObject((content: ContentCodec) =>
  Schema.Struct({
    base: Schema.Int,
    /** Absent: unchanged. Null: none. */
    system: Schema.optionalKey(Schema.NullOr(Schema.String)),
    append: Messages.ownMessages(content)
  })
)

export const leftOut = lazily(() =>
  Schema.Struct({
    /** The type of the content, `message` for a whole message, or `output` for the schema of a typed answer. */
    type: Schema.String,
    /** Absent for `output`, which is part of no message, and for media that a provider left out. */
    message: Schema.optionalKey(Schema.Int),
    mediaType: Schema.optionalKey(Schema.String),
    /** Why it was left out. Absent where the vendor refused it. */
    reason: Schema.optionalKey(Schema.String)
  })
)

export const repair = perObject((content: ContentCodec) =>
  Schema.Struct({
    reason: Schema.Literals(["invalid_request", "context_length"]),
    leftOut: Schema.Array(leftOut()),
    prompt: promptDelta(content)
  })
)

export const modelArgs = lazily(() =>
  Schema.Struct({
    model: Schema.optionalKey(Model),
    generation: Schema.optionalKey(generation()),
    cacheBreakpoints: Schema.optionalKey(Schema.Array(Schema.Int))
  })
)

export const outcome = lazily(() => {
  const note = Schema.optionalKey(Schema.String)
  return Schema.Union([
    Schema.Struct({ type: Schema.Literal("workflow"), plan: Plan, note }),
    Schema.Struct({ type: Schema.Literal("tools"), note }),
    Schema.Struct({ type: Schema.Literal("final"), text: Schema.String }),
    Schema.Struct({ type: Schema.Literal("prose"), text: Schema.String }),
    /** The vendor paused the reply. The next turn continues it, with nothing between. */
    Schema.Struct({ type: Schema.Literal("pause") }),
    Schema.Struct({
      type: Schema.Literal("corrective"),
      reason: Schema.Literals(["informational", "stall", "cut", "empty", "output", "goal", "plan", "loop"]),
      corrective: Schema.String,
      /** The calls that the model repeats, and how many times in a row it asked for them. Only for the reason `loop`. */
      loop: Schema.optionalKey(Schema.Struct({ names: Schema.Array(Schema.String), repeats: Schema.Int }))
    })
  ])
})

export const callChange = perObject((content: ContentCodec) =>
  Schema.Union([
    Schema.Struct({ type: Schema.Literal("rewrite"), call: Calls.call() }),
    Schema.Struct({ type: Schema.Literal("skip"), result: Calls.callResult(content) })
  ])
)

export const turn = perObject((content: ContentCodec) => {
  const [calls, strings, messages] = [
    Schema.Array(Calls.call()),
    Schema.Array(Schema.String),
    Messages.messages(content)
  ]
  return Schema.Struct({
    turnId: Schema.String,
    /** Counts from 1; the `step` of its events is one less. */
    turn: Schema.Int,
    attempt: Schema.Int,
    startedAt: Schema.Finite,
    model: Schema.optionalKey(Schema.String),
    args: Schema.optionalKey(modelArgs()),
    /** The conversation before the prompt of this turn was prepared, kept as long as the prompt may be prepared again. */
    before: Schema.optionalKey(Schema.Struct({ prompt: messages, system: Schema.NullOr(Schema.String) })),
    dialect: dialectName(),
    tools: strings,
    message: Schema.optionalKey(Messages.message(content)),
    usage: Schema.NullOr(Messages.usage()),
    finishReason: Schema.optionalKey(finishReason()),
    latencyMs: Schema.optionalKey(Schema.Finite),
    outcome: Schema.optionalKey(outcome()),
    pending: calls,
    inFlight: calls,
    /** In order of arrival; `Call.inOrder` gives source order. */
    completed: Schema.Array(Calls.callResult(content)),
    /** Ids of the calls, in source order. */
    order: strings,
    /** Messages that the host sent during the run, before this turn. */
    steering: Schema.optionalKey(messages),
    /** Ids of calls that were in flight and that a resume retried or resolved. */
    recovered: Schema.optionalKey(strings)
  })
})

export const forkedFrom = lazily(() => Schema.Struct({ runId: Schema.String, revision: Schema.Int }))

export const stop = lazily(() => {
  const why = { reason: Schema.optionalKey(Schema.String), metadata: Schema.optionalKey(Storable.Json) }
  return Schema.Union([
    Schema.Struct({ type: Schema.Literal("pause"), ...why }),
    Schema.Struct({ type: Schema.Literal("finish"), ...why })
  ])
})

/** The fields of a state except its turns and its conversation, which are stored in parts. */
export const stateFacts = lazily(() =>
  Schema.Struct({
    runId: Schema.String,
    rootRunId: Schema.String,
    parentRunId: absent(Schema.String),
    depth: Schema.Int,
    taskId: absent(Schema.String),
    /** The caller who started the run. */
    caller: absent(Caller),
    /** The span that started the run, as a W3C `traceparent`. */
    trace: absent(Schema.String),
    forkedFrom: absent(forkedFrom()),
    agent: Schema.String,
    /** The version of the agent with which the run was started. */
    version: absent(Schema.String),
    /** A digest of the skills that its last turn offered. Undefined: it offered none. */
    offered: absent(Schema.Int),
    /** The agent that the run was handed over to, and its first turn. Undefined: the agent it started with. */
    handoff: absent(Schema.Struct({ agent: Schema.String, turn: Schema.Int })),
    revision: Schema.Int,
    status: status(),
    /** A small JSON object of the host; hooks and resumes merge into it. */
    context: Storable.JsonObject,
    /** The number of messages in `input` that precede this run. */
    history: Schema.Int,
    system: Schema.NullOr(Schema.String),
    /** The revision of the last phase event. */
    phaseRevision: Schema.Int,
    /** The revision of the last phase event whose hook is known to have run. */
    settledRevision: Schema.Int,
    questions: Schema.Array(question()),
    /** Background calls whose results no turn has received yet, as tasks named by their child runs. Undefined: none. */
    background: absent(Schema.Array(Calls.call())),
    /** The end of the run that `onRunCompleted` paused. */
    completing: absent(ending()),
    /** The stop that a hook asked for while other calls were in flight. */
    deferred: absent(stop()),
    usage: Messages.usage(),
    /** Undefined where no price is known. */
    costUsd: absent(Schema.Finite),
    /** Model calls whose provider reported no usage. */
    unreportedTurns: Schema.Finite,
    emptyReplies: Schema.Finite,
    /** Set once the vendor refused the schema of the typed answer, which is then not sent again. */
    outputRefused: absent(Schema.Literal(true)),
    /** The number of turns when the run was resumed after it had failed between two turns. */
    resumedAfter: absent(Schema.Int),
    createdAt: Schema.Finite,
    updatedAt: Schema.Finite
  })
)
