/**
 * The schemas of records: the phase events, the changes beside them, and the facts of a record.
 *
 * The types of `RunRecord` are those of these schemas, and comments of fields stand here.
 */

import * as Schema from "effect/Schema"
import { perObject } from "../../kit/perObject.ts"
import { absent, lazily, type Mapping, mappedByType, otherwise, type TypeOf } from "../../kit/schemas.ts"
import * as Storable from "../../kit/storable.ts"
import * as Calls from "../words/callSchema.ts"
import { Caller } from "../../Caller.ts"
import type { ContentCodec } from "../words/messageSchema.ts"
import * as Messages from "../words/messageSchema.ts"
import { dialectName, finishReason } from "../words/modelCallSchema.ts"
import { answer, question } from "../words/question.ts"
import * as Model from "./modelSchema.ts"

const event = <const Type extends string, F extends Schema.Struct.Fields>(type: Type, fields: F) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })

const strings = lazily(() => Schema.Array(Schema.String))

const policyDecision = lazily(() =>
  Schema.Struct({
    callId: Messages.ownId(),
    decision: Schema.Literals(["allowed", "confirm", "denied"]),
    rule: Schema.optionalKey(Schema.String),
    reason: Schema.optionalKey(Schema.String)
  })
)

/** The schemas of the phase events, without their scope. Their fields are in the order of the journal. */
export const events = {
  run_started: perObject((content: ContentCodec) =>
    event("run_started", {
      agent: Schema.String,
      /** The version of the agent. */
      version: Schema.optionalKey(Schema.String),
      parentRunId: absent(Schema.String),
      /** The caller who started the run. */
      caller: Schema.optionalKey(Caller),
      /** The span that started the run, as a W3C `traceparent`. */
      trace: Schema.optionalKey(Schema.String),
      /** The run this one was forked from, and the last revision they share. */
      forkedFrom: Schema.optionalKey(Model.forkedFrom()),
      messages: Messages.messages(content),
      /** The number of messages in the input that precede this run. */
      history: Schema.Int,
      context: Storable.JsonObject
    })
  ),
  turn_started: perObject((content: ContentCodec) =>
    event("turn_started", {
      turnId: Messages.ownId(),
      /** Messages the host sent since the last turn, now part of the conversation. */
      steering: Schema.optionalKey(Messages.messages(content)),
      /** Results of background calls that ended since the last turn. They precede `steering` in the conversation. */
      ended: Schema.optionalKey(Schema.Array(Calls.callResult(content)))
    })
  ),
  agent_changed: perObject((content: ContentCodec) =>
    event("agent_changed", {
      from: Schema.String,
      to: Schema.String,
      /** The call that handed the conversation over. */
      callId: Messages.ownId(),
      prompt: Model.promptDelta(content)
    })
  ),
  turn_prepared: perObject((content: ContentCodec) =>
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
      /** A digest of the skills that the turn offers, if it is not that of the turn before. */
      offered: Schema.optionalKey(Schema.Int),
      /** Parts of the prompt that differ from the turn before, because the agent or the registered skills changed. */
      changed: Schema.optionalKey(Schema.Array(Schema.Literals(["instructions", "skills", "schemas"]))),
      /** Usage of models that helped to build the prompt, such as one that summarizes. */
      spent: Schema.optionalKey(Messages.expense())
    })
  ),
  model_started: lazily(() => event("model_started", { attempt: Schema.Int })),
  model_restarted: perObject((content: ContentCodec) =>
    event("model_restarted", {
      attempt: Schema.Int,
      /** The parts of the request left out because the vendor refused them. */
      repair: Schema.optionalKey(Model.repair(content))
    })
  ),
  model_completed: perObject((content: ContentCodec) =>
    event("model_completed", {
      /** The model that replied, as `provider/model`; it may be a fallback. */
      model: Schema.String,
      costUsd: Schema.optionalKey(Schema.Finite),
      finishReason: finishReason(),
      /** The vendor's own word for an end that is `other`. */
      vendorReason: Schema.optionalKey(Schema.String),
      latencyMs: Schema.Finite,
      outcome: Model.outcome(),
      /** The calls that the vendor ran itself. Absent: none. */
      hosted: Schema.optionalKey(Schema.Array(Calls.hostedCall())),
      /** The media that were not part of the request, and why. Absent: none, or the same as in the turn before. */
      leftOut: Schema.optionalKey(Schema.Array(Model.leftOut())),
      message: Messages.ownMessage(content),
      usage: otherwise(Schema.NullOr(Messages.usage()), null),
      calls: otherwise(Schema.Array(Calls.requestedCall()), [])
    })
  ),
  tool_calls_started: lazily(() =>
    event("tool_calls_started", {
      /** The calls that a hook put in place of the model's, if it did. */
      calls: Schema.optionalKey(Schema.Array(Calls.call())),
      questions: Schema.optionalKey(Schema.Array(question())),
      /** What a policy decided about each call it was asked about, and by which of its rules. */
      decisions: Schema.optionalKey(Schema.Array(policyDecision()))
    })
  ),
  tool_call_started: perObject((content: ContentCodec) =>
    event("tool_call_started", {
      callId: Messages.ownId(),
      change: Schema.optionalKey(Model.callChange(content)),
      /** What a policy decided about the input that a hook or a person put in place of the model's. */
      decision: Schema.optionalKey(policyDecision())
    })
  ),
  tool_call_completed: perObject((content: ContentCodec) =>
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

export const delta = perObject((content: ContentCodec) => {
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
    /** What the target of the launched calls declares, where newer code may only restrict it. */
    terms: Schema.optionalKey(Calls.terms()),
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
    /** A driver resumed the run after a crash, with no other such run in its process: its next crash is its own. */
    alone: Schema.optionalKey(Schema.Boolean),
    /** The process of a driver gave the run up in order, as it shuts down: the last resume was no crash. */
    released: Schema.optionalKey(Schema.Boolean),
    /** The version of the agent that resumed the run, if it is not the one that the run was started with. */
    version: Schema.optionalKey(Schema.String),
    /** The agent that resumed the run of another one, and why. */
    as: Schema.optionalKey(Schema.Struct({ agent: Schema.String, reason: Schema.String })),
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

/** A phase event without its scope and without its computed result. */
type EventBody = TypeOf<(typeof events)[keyof typeof events]>

/** Returns whether an event is stored. All others are only emitted live. */
export const isStored = <E extends { readonly type: string }>(
  event: E
): event is Extract<E, { readonly type: keyof typeof events }> => Object.hasOwn(events, event.type)
