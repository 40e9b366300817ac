/**
 * The journal of a run: its records, and the phase events in them.
 *
 * The state of a run is the fold of its records, in any process.
 *
 * @since 0.1.0
 */

import * as Schema from "effect/Schema"
import * as Calls from "./internal/words/callSchema.ts"
import * as Messages from "./internal/words/messageSchema.ts"
import type { ContentCodec } from "./internal/words/messageSchema.ts"
import { answer, question } from "./internal/words/question.ts"
import { dialectName, finishReason } from "./internal/words/modelCallSchema.ts"
import { absent, lazily, lazilyFor, type Mapping, mappedByType, otherwise, type TypeOf } from "./kit/schemas.ts"
import * as Storable from "./kit/storable.ts"
import * as Model from "./RunModel.ts"
import type { RunResult } from "./RunModel.ts"

// ---------------------------------------------------------------- schemas

const event = <const Type extends string, F extends Schema.Struct.Fields>(type: Type, fields: F) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })

const strings = lazily(() => Schema.Array(Schema.String))

/** The schemas of the phase events, without their scope. Their fields are in the order of the journal. */
export const events = {
  run_started: lazilyFor((content: ContentCodec) =>
    event("run_started", {
      agent: Schema.String,
      parentRunId: absent(Schema.String),
      /** The run this one was forked from, and the last revision they share. */
      forkedFrom: Schema.optionalKey(Model.forkedFrom()),
      messages: Messages.messages(content),
      /** The number of messages in the input that precede this run. */
      history: Schema.Int,
      context: Storable.JsonObject
    })
  ),
  turn_started: lazilyFor((content: ContentCodec) =>
    event("turn_started", {
      turnId: Messages.ownId(),
      /** Messages the host sent since the last turn, now part of the conversation. */
      steering: Schema.optionalKey(Messages.messages(content))
    })
  ),
  agent_changed: lazilyFor((content: ContentCodec) =>
    event("agent_changed", {
      from: Schema.String,
      to: Schema.String,
      /** The call that handed the conversation over. */
      callId: Messages.ownId(),
      prompt: Model.promptDelta(content)
    })
  ),
  turn_prepared: lazilyFor((content: ContentCodec) =>
    event("turn_prepared", {
      model: Schema.String,
      dialect: dialectName(),
      /** Differences from the agent's model and generation settings in this turn. */
      args: Schema.optionalKey(Model.modelArgs()),
      prompt: Schema.Struct({
        ...Model.promptDelta(content).fields,
        append: otherwise(Messages.ownMessages(content), [])
      }),
      tools: otherwise(strings(), []),
      /** Usage of models that helped to build the prompt, such as one that summarizes. */
      spent: Schema.optionalKey(Messages.expense())
    })
  ),
  model_started: lazily(() => event("model_started", { attempt: Schema.Int })),
  model_restarted: lazily(() => event("model_restarted", { attempt: Schema.Int })),
  model_completed: lazilyFor((content: ContentCodec) =>
    event("model_completed", {
      /** The model that replied, as `provider/model`; it may be a fallback. */
      model: Schema.String,
      costUsd: Schema.optionalKey(Schema.Finite),
      finishReason: finishReason(),
      latencyMs: Schema.Finite,
      outcome: Model.outcome(),
      /** The calls that the vendor ran itself. Absent: none. */
      hosted: Schema.optionalKey(Schema.Array(Calls.hostedCall())),
      message: Messages.ownMessage(content),
      usage: otherwise(Schema.NullOr(Messages.usage()), null),
      calls: otherwise(Schema.Array(Calls.requestedCall()), [])
    })
  ),
  tool_calls_started: lazily(() =>
    event("tool_calls_started", {
      /** The calls that a hook put in place of the model's, if it did. */
      calls: Schema.optionalKey(Schema.Array(Calls.call())),
      questions: Schema.optionalKey(Schema.Array(question()))
    })
  ),
  tool_call_started: lazilyFor((content: ContentCodec) =>
    event("tool_call_started", {
      callId: Messages.ownId(),
      change: Schema.optionalKey(Model.callChange(content))
    })
  ),
  tool_call_completed: lazilyFor((content: ContentCodec) =>
    event("tool_call_completed", {
      callId: Messages.ownId(),
      result: Calls.callOutcome(content),
      /** Usage of a child run. */
      spent: Schema.optionalKey(Calls.childExpense())
    })
  ),
  tool_calls_completed: lazily(() => event("tool_calls_completed", {})),
  turn_completed: lazily(() => event("turn_completed", { turnId: Messages.ownId() })),
  paused: lazily(() => event("paused", { reason: Schema.String, metadata: Model.pauseMetadata() })),
  run_completed: lazily(() => event("run_completed", Model.ending().fields)),
  run_failed: lazily(() => event("run_failed", { error: Model.errorInfo() })),
  run_cancelled: lazily(() =>
    event("run_cancelled", {
      reason: Schema.optionalKey(Schema.String),
      /** The person or program that cancelled it. */
      by: Schema.optionalKey(Schema.String),
      /** The calls of this run that were in flight, with their effects: a `write` call may have acted. */
      inFlight: Schema.Array(Model.callLeft())
    })
  )
}

/**
 * State changes without an event of their own.
 *
 * @category models
 * @since 0.1.0
 */
export interface Delta extends TypeOf<typeof delta> {}

export const delta = lazilyFor((content: ContentCodec) => {
  const ids = Schema.optionalKey(Messages.ownIds())
  return Schema.Struct({
    /** The hook of the phase before this record has run. */
    settled: Schema.optionalKey(Schema.Boolean),
    /** Merged into the context. */
    context: Schema.optionalKey(Storable.JsonObject),
    /** Ids that move from pending to in flight. */
    launched: ids,
    /** Effects of the launched calls, so that processes without their skills know them. */
    effects: Schema.optionalKey(Calls.effects()),
    /** Ids that move from in flight back to pending, already accepted. */
    retried: ids,
    /** Ids that move from in flight back to pending, already accepted: these calls ask a person. */
    returned: ids,
    /** Results that the caller gave for calls in flight. */
    resolved: Schema.optionalKey(Schema.Array(Calls.callResult(content))),
    /**
     * A person's decisions: from `Kernel.answer` only those for this run, possibly none; from a resume all of them.
     */
    answers: Schema.optionalKey(Schema.Array(answer())),
    /** Questions asked at review, after a hook changed a call, or by calls that ran. */
    asked: Schema.optionalKey(Schema.Array(question())),
    /** Returns to turn_started, so that the turn is prepared again. */
    rewind: Schema.optionalKey(Schema.Boolean),
    completing: Schema.optionalKey(Model.ending()),
    deferred: Schema.optionalKey(Model.stop()),
    /**
     * Usage that no event reports: a refused reply, the preparation of a prompt that was not stored, or a call that asks
     * a person.
     */
    spent: Schema.optionalKey(Messages.expense()),
    /**
     * The run was resumed. Settings of the agent, such as a higher `maxSteps`, apply from the agent and are not stored.
     */
    resumed: Schema.optionalKey(Schema.Boolean)
  })
})

/** Derives the function that maps phase events, their scope aside. */
export const mapEvent = <Event extends EventBody, C>(mapping: Mapping<C>): ((event: Event, context: C) => Event) =>
  mappedByType((type: EventBody["type"]) => events[type](Messages.plainContent()), mapping)

/** Returns the schemas of all phase events. */
export const eventSchemas = (content: ContentCodec) => Object.values(events).map((schema) => schema(content))

/** The fields of a record that are stored as they are. */
export const recordFacts = lazily(() =>
  Schema.Struct({
    runId: Schema.String,
    revision: Schema.Natural,
    op: Schema.Literals(["phase", "launch", "pause", "resume"]),
    createdAt: Schema.Finite,
    workerId: Schema.String
  })
)

// ---------------------------------------------------------------- events

/** A phase event without its scope and without its computed result. */
type EventBody = TypeOf<(typeof events)[keyof typeof events]>

/** The scope of an event. `step` is the turn minus 1, `at` is milliseconds of the Clock. */
export interface RunScope {
  readonly runId: string
  readonly rootRunId: string
  readonly step: number
  readonly depth: number
  readonly taskId: string | undefined
  readonly at: number
}

/** A stored event: its scope, and the fields of its schema. */
export type Stored<Type extends keyof typeof events> = RunScope & {
  /** The revision of the record that holds this event. */
  readonly revision: number
} & TypeOf<(typeof events)[Type]>

/** A run started, with its agent and its input. */
export interface RunStarted extends Stored<"run_started"> {}

/** A turn started. */
export interface TurnStarted extends Stored<"turn_started"> {}

/**
 * The conversation was handed over: later turns belong to another agent. `prompt` changes the conversation into the
 * dialect of that agent.
 */
export interface AgentChanged extends Stored<"agent_changed"> {}

/** The prompt of the turn is ready, given as a change to the previous one. */
export interface TurnPrepared extends Stored<"turn_prepared"> {}

/** The model is about to be asked. */
export interface ModelStarted extends Stored<"model_started"> {}

/** The model is about to be asked again, because the run stopped during the previous request. */
export interface ModelRestarted extends Stored<"model_restarted"> {}

/** The reply arrived, with its meaning for the run. */
export interface ModelCompleted extends Stored<"model_completed"> {}

/**
 * The calls of the reply, with the questions they wait for. A call that a policy denied is among the questions with its
 * `answer` already set.
 */
export interface ToolCallsStarted extends Stored<"tool_calls_started"> {}

/** A call was reviewed. It runs as requested, as changed by `change`, or not at all. */
export interface ToolCallStarted extends Stored<"tool_call_started"> {}

/**
 * A call that was in flight has its result. The call itself was recorded when the reply arrived, or when it was
 * changed.
 */
export interface ToolCallCompleted extends Stored<"tool_call_completed"> {}

/** Every call of the reply has a result. */
export interface ToolCallsCompleted extends Stored<"tool_calls_completed"> {}

/** The turn became part of the conversation. */
export interface TurnCompleted extends Stored<"turn_completed"> {}

/** The run waits for a person or its host. */
export interface Paused extends Stored<"paused"> {}

/** The run ended: with an answer, at its turn limit, or by its host. */
export interface RunCompleted<out Output = unknown> extends Stored<"run_completed"> {
  /** Set for root runs. Absent in the journal, from which it is computed. */
  readonly result?: RunResult<Output>
}

/** The run failed. It can be resumed from its last record. */
export interface RunFailed extends Stored<"run_failed"> {}

/** The run was cancelled, by any process. It is at rest; only an explicit resume continues it. */
export interface RunCancelled extends Stored<"run_cancelled"> {}

/** The events from which the state of a run is folded. */
export type PhaseEvent<Output = unknown> =
  | RunStarted
  | TurnStarted
  | AgentChanged
  | TurnPrepared
  | ModelStarted
  | ModelRestarted
  | ModelCompleted
  | ToolCallsStarted
  | ToolCallStarted
  | ToolCallCompleted
  | ToolCallsCompleted
  | TurnCompleted
  | Paused
  | RunCompleted<Output>
  | RunFailed
  | RunCancelled

/** Returns whether an event is stored. All others are only emitted live. */
export const isStored = <E extends { readonly type: string }>(event: E): event is Extract<E, PhaseEvent> =>
  Object.hasOwn(events, event.type)

/**
 * One entry of a journal: the phase events of one transition, or a change without events such as a launch or a resume.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunRecord extends TypeOf<typeof recordFacts> {
  readonly events: ReadonlyArray<PhaseEvent>
  readonly delta: Delta
}
