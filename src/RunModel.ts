/**
 * The data of a run: its state, its turns, questions, and result.
 *
 * Everything here is JSON-safe; skills, layers and fibers are never part of it.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import type { Json } from "./kit/json.ts"
import * as Calls from "./internal/words/callSchema.ts"
import { question } from "./internal/words/question.ts"
import { dialectName, finishReason, generation } from "./internal/words/modelCallSchema.ts"
import * as Messages from "./internal/words/messageSchema.ts"
import type { ContentCodec } from "./internal/words/messageSchema.ts"
import { absent, isFields, lazily, lazilyFor, type TypeOf, type Visit } from "./kit/schemas.ts"
import * as Storable from "./kit/storable.ts"
import type { Message } from "./Message.ts"
import { Model } from "./Model.ts"
import { Plan } from "./Plan.ts"
import type { FinishReason } from "./StreamPart.ts"
import type * as Usage from "./Usage.ts"

export type { Answer, OpenQuestion, Question } from "./internal/words/question.ts"

// ---------------------------------------------------------------- models

/**
 * The phase of a run: its last stored phase event.
 *
 * @category models
 * @since 0.1.0
 */
export type Phase = TypeOf<typeof phase>

const phase = lazily(() =>
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

/**
 * The cause of a run's end: its host, the model, or the turn limit.
 *
 * @category models
 * @since 0.1.0
 */
export type RunSource = TypeOf<typeof runSource>

export const runSource = lazily(() => Schema.Literals(["caller", "model_done", "max_turns"]))

/**
 * A stored failure: the tag of the error, its message, and its fields if it is a typed error.
 *
 * @category models
 * @since 0.1.0
 */
export interface ErrorInfo extends TypeOf<typeof errorInfo> {}

export const errorInfo = lazily(() =>
  Schema.Struct({ tag: Schema.String, message: Schema.String, fields: Schema.optionalKey(Storable.JsonObject) })
)

/**
 * A call that was in flight when its run was cancelled. It may have had an effect.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallLeft extends TypeOf<typeof callLeft> {}

export const callLeft = lazily(() =>
  Schema.Struct({
    callId: Messages.ownId(),
    name: Schema.NullOr(Schema.String),
    /** A `write` call may have acted. */
    effects: Schema.optionalKey(Calls.effects())
  })
)

/**
 * The status of a run by its journal: running or paused at a phase, cancelled, completed, or failed.
 * `RunStore.RunStatus` also shows whether a worker runs it.
 *
 * @category models
 * @since 0.1.0
 */
export type Status = TypeOf<typeof status>

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

/**
 * A prompt as a change to the previous one: keep the first `base` messages and append the new ones. Holds the system
 * text only if it changed.
 *
 * @category models
 * @since 0.1.0
 */
export interface PromptDelta extends TypeOf<typeof promptDelta> {}

export const promptDelta = lazilyFor((content: ContentCodec) =>
  Schema.Struct({
    base: Schema.Int,
    /** Absent: unchanged. Null: none. */
    system: Schema.optionalKey(Schema.NullOr(Schema.String)),
    append: Messages.ownMessages(content)
  })
)

/**
 * Differences between the model call of a turn and the settings of the agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface ModelArgs extends TypeOf<typeof modelArgs> {}

export const modelArgs = lazily(() =>
  Schema.Struct({
    model: Schema.optionalKey(Model),
    generation: Schema.optionalKey(generation()),
    cacheBreakpoints: Schema.optionalKey(Schema.Array(Schema.Int))
  })
)

/**
 * The meaning of a reply for the run. `corrective` is the message sent to the model next.
 *
 * @category models
 * @since 0.1.0
 */
export type Outcome = TypeOf<typeof outcome>

export const outcome = lazily(() => {
  const note = Schema.optionalKey(Schema.String)
  return Schema.Union([
    Schema.Struct({ type: Schema.Literal("workflow"), plan: Plan, note }),
    Schema.Struct({ type: Schema.Literal("tools"), note }),
    Schema.Struct({ type: Schema.Literal("final"), text: Schema.String }),
    Schema.Struct({ type: Schema.Literal("prose"), text: Schema.String }),
    Schema.Struct({
      type: Schema.Literal("corrective"),
      reason: Schema.Literals(["informational", "stall", "cut", "empty", "output", "plan", "loop"]),
      corrective: Schema.String,
      /** The calls that the model repeats, and how many times in a row it asked for them. Only for the reason `loop`. */
      loop: Schema.optionalKey(Schema.Struct({ names: Schema.Array(Schema.String), repeats: Schema.Int }))
    })
  ])
})

/**
 * A change of one call at its review, by a hook or a policy: the call in its new form, or a result that is used without
 * running it.
 *
 * @category models
 * @since 0.1.0
 */
export type CallChange = TypeOf<typeof callChange>

export const callChange = lazilyFor((content: ContentCodec) =>
  Schema.Union([
    Schema.Struct({ type: Schema.Literal("rewrite"), call: Calls.call() }),
    Schema.Struct({ type: Schema.Literal("skip"), result: Calls.callResult(content) })
  ])
)

/**
 * One prompt, one reply, and its results.
 *
 * @category models
 * @since 0.1.0
 */
export interface Turn extends TypeOf<typeof turn> {}

export const turn = lazilyFor((content: ContentCodec) => {
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

/**
 * The origin of a fork. Records up to that revision are copied; later ones are the fork's own.
 *
 * @category models
 * @since 0.1.0
 */
export interface ForkedFrom extends TypeOf<typeof forkedFrom> {}

export const forkedFrom = lazily(() => Schema.Struct({ runId: Schema.String, revision: Schema.Int }))

/**
 * A stop of a run before its own end.
 *
 * @category models
 * @since 0.1.0
 */
export type Stop = TypeOf<typeof stop>

export const stop = lazily(() => {
  const why = { reason: Schema.optionalKey(Schema.String), metadata: Schema.optionalKey(Storable.Json) }
  return Schema.Union([
    Schema.Struct({ type: Schema.Literal("pause"), ...why }),
    Schema.Struct({ type: Schema.Literal("finish"), ...why })
  ])
})

/**
 * The state of a run.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunState extends TypeOf<typeof stateFacts> {
  /** The initial messages of the run: history, then the input. */
  readonly input: ReadonlyArray<Message>
  readonly turns: ReadonlyArray<Turn>
  readonly currentTurn: Turn | undefined
  /** The conversation so far: the last prompt, and after a turn also the messages that it added. */
  readonly prompt: ReadonlyArray<Message>
}

/** The fields of a state except its turns and its conversation, which are stored in parts. */
export const stateFacts = lazily(() =>
  Schema.Struct({
    runId: Schema.String,
    rootRunId: Schema.String,
    parentRunId: absent(Schema.String),
    depth: Schema.Int,
    taskId: absent(Schema.String),
    forkedFrom: absent(forkedFrom()),
    agent: Schema.String,
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
    /** The end of the run that `onRunCompleted` paused. */
    completing: absent(ending()),
    /** The stop that a hook asked for while other calls were in flight. */
    deferred: absent(stop()),
    usage: Messages.usage(),
    costUsd: Schema.Finite,
    /** Model calls whose provider reported no usage. */
    unreportedTurns: Schema.Finite,
    emptyReplies: Schema.Finite,
    createdAt: Schema.Finite,
    updatedAt: Schema.Finite
  })
)

/**
 * The result of a completed run. Computed from its state, so a resumed run returns the same result as an undisturbed
 * one.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunResult<out Output = string> {
  readonly runId: string
  /** Only completed runs have a result. */
  readonly status: "completed"
  /** The name of the agent that answered: the one the run was started with, or handed over to. */
  readonly agent: string
  /** The answer, decoded by the agent's output schema. */
  readonly output: Output
  /** The answer as written by the model. */
  readonly text: string
  /** Usage of all turns, tasks, prompts and refused replies, as far as providers reported it. */
  readonly usage: Usage.Usage
  /** Cost in US dollars by the models' prices. A model without a `price` adds nothing. */
  readonly costUsd: number
  readonly turns: number
  /** Null for a turn whose provider reported no usage. */
  readonly perTurnUsage: ReadonlyArray<Usage.Usage | null>
  /** Model calls whose provider reported no usage; `usage` does not include them. */
  readonly unreportedTurns: number
  readonly finishReason: FinishReason
  /** The messages of this run, without the history before it: input, replies, results, steering. */
  readonly messages: ReadonlyArray<Message>
  /** The whole last reply of the model. */
  readonly finalMessage: Message | undefined
  readonly calls: ReadonlyArray<CallMade>
}

/**
 * A call of a completed run.
 *
 * @category models
 * @since 0.1.0
 */
export interface CallMade {
  readonly callId: string
  readonly name: string | null
  readonly input: Json
  readonly isError: boolean
  readonly error?: string
  readonly durationMs: number | undefined
  /** Counts from 1. */
  readonly turn: number
  /** True if the call was in flight when the run stopped, and a resume retried or resolved it. */
  readonly recovered: boolean
}
