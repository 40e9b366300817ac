/**
 * The stored form of records and states, field by field.
 *
 * `exactly` requires every field of the type it describes, optional ones too, and accepts everything that the type
 * allows, so a field that is added to the type and forgotten here does not compile. Fields are camelCase; contents and
 * usage have their own wire form. Values of the host and the model are stored unchanged.
 */

import * as Schema from "effect/Schema"
import type * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import { type Message, Role } from "../../Message.ts"
import type * as Events from "../../RunEvent.ts"
import type * as Run from "../../RunState.ts"
import { absent, exactly, type FieldsOf, otherwise, type Takes } from "./recordFields.ts"
import * as Leaves from "./recordFields.ts"
import * as Storable from "../../kit/storable.ts"
import type { Expense } from "../../Usage.ts"

/** The scope that the events of a record share. A root run is its own root. */
export interface Scope {
  readonly rootRunId?: string
  readonly step: number
  readonly depth: number
  readonly taskId?: string
}

/** The scope of an event that does not share that of its record. */
export interface FullScope extends Scope {
  readonly runId: string
  readonly at: number
  readonly revision: number
}

/** A phase event without its scope and without its computed result. */
export type EventBody = Events.PhaseEvent extends infer E
  ? E extends Events.RunCompleted
    ? Omit<E, keyof FullScope | "result">
    : E extends Events.PhaseEvent
      ? Omit<E, keyof FullScope>
      : never
  : never

/** The stored form of a record. Its events share one scope, or each has its own. */
export interface Record extends Omit<Run.RunRecord, "events" | "delta"> {
  readonly format: number
  readonly scope?: Scope
  readonly scopes?: ReadonlyArray<FullScope>
  readonly events?: ReadonlyArray<EventBody>
  readonly delta?: Run.Delta
}

/** Messages of a conversation: a range of the input, the messages of a range of turns, or a single message. */
export type Entry =
  | { readonly input: readonly [start: number, end: number] }
  | { readonly turns: readonly [start: number, end: number] }
  | { readonly message: Message }

/** The stored form of a part of a state. */
export interface Part extends Omit<Run.RunState, "prompt" | "input"> {
  readonly format: number
  /** Only in the first part. */
  readonly input?: ReadonlyArray<Message>
  /** The number of turns in earlier parts. */
  readonly from: number
  /** The number of messages kept from the conversation of the previous part, and the messages after them. */
  readonly prompt: { readonly base: number; readonly append: ReadonlyArray<Entry> }
}

export const make = (format: number, content: Schema.Codec<Content, unknown>) => {
  const fields = Leaves.make()
  const contents = makeContents(fields, content)
  return {
    record: makeRecord(format, fields, contents),
    part: makePart(format, fields, contents),
    status: fields.status
  }
}

type Fields = ReturnType<typeof Leaves.make>

type Contents = ReturnType<typeof makeContents>

/** Returns the schemas of messages, results and the values that contain them. */
const makeContents = ({ call, callError, kind, usage }: Fields, content: Schema.Codec<Content, unknown>) => {
  const message = exactly<Message>()({
    role: Role,
    content: Schema.Array(content),
    name: Schema.optionalKey(Schema.String),
    metadata: Schema.optionalKey(Storable.JsonObject)
  })
  const messages = Schema.Array(message)

  const expense = { usage, costUsd: Schema.Finite }
  const spent = exactly<NonNullable<Calls.CallResult["spent"]>>()({ ...expense, turns: Schema.Finite })
  const gave = {
    output: Schema.optionalKey(Schema.Array(content)),
    error: Schema.optionalKey(callError),
    skipped: Schema.optionalKey(Schema.Boolean),
    message: Schema.optionalKey(message),
    metadata: Schema.optionalKey(Storable.JsonObject),
    durationMs: Schema.optionalKey(Schema.Finite)
  }
  const result = exactly<Calls.CallResult>()({
    callId: Schema.String,
    name: Schema.NullOr(Schema.String),
    kind,
    input: Storable.Json,
    ...gave,
    spent: Schema.optionalKey(spent)
  })
  const results = Schema.Array(result)
  const change = Schema.Union([
    exactly<Extract<Run.CallChange, { type: "rewrite" }>>()({ type: Schema.Literal("rewrite"), call }),
    exactly<Extract<Run.CallChange, { type: "skip" }>>()({ type: Schema.Literal("skip"), result })
  ])
  const prompt = exactly<Run.PromptDelta>()({
    base: Schema.Int,
    append: otherwise(messages, []),
    system: Schema.optionalKey(Schema.NullOr(Schema.String))
  })

  return { message, messages, expense, spent, gave, results, change, prompt }
}

const makeEvents = (fields: Fields, contents: Contents) =>
  Schema.Union([...modelEvents(fields, contents), ...runEvents(fields, contents)])

const event = <T extends EventBody["type"]>(type: T) => {
  type Rest = Omit<Extract<EventBody, { readonly type: T }>, "type">
  return <F extends FieldsOf<Rest>>(fields: Takes<Rest, F>) => Schema.Struct({ type: Schema.Literal(type), ...fields })
}

/** Returns the schemas of a turn's events, up to the reply of the model. */
const modelEvents = (fields: Fields, { expense, message, messages, prompt }: Contents) => {
  const { call, dialect, finishReason, hosted, modelArgs, outcome, strings, usage } = fields
  return [
    event("turn_started")({ turnId: Schema.String, steering: Schema.optionalKey(messages) }),
    event("agent_changed")({ from: Schema.String, to: Schema.String, callId: Schema.String, prompt }),
    event("turn_prepared")({
      model: Schema.String,
      dialect,
      prompt,
      tools: otherwise(strings, []),
      args: Schema.optionalKey(modelArgs),
      spent: Schema.optionalKey(exactly<Expense>()(expense))
    }),
    event("model_started")({ attempt: Schema.Int }),
    event("model_restarted")({ attempt: Schema.Int }),
    event("model_completed")({
      message,
      model: Schema.String,
      usage: otherwise(Schema.NullOr(usage), null),
      costUsd: Schema.optionalKey(Schema.Finite),
      finishReason,
      latencyMs: Schema.Finite,
      outcome,
      calls: otherwise(Schema.Array(call), []),
      hosted: Schema.optionalKey(Schema.Array(hosted))
    })
  ] as const
}

/** Returns the schemas of the events of a run's start and end, and of its calls. */
const runEvents = (fields: Fields, { change, gave, messages, spent }: Contents) => {
  const { call, errorInfo, forkedFrom, question, source } = fields
  return [
    event("run_started")({
      agent: Schema.String,
      parentRunId: absent(Schema.String),
      forkedFrom: Schema.optionalKey(forkedFrom),
      messages,
      history: Schema.Int,
      context: Storable.JsonObject
    }),
    event("tool_calls_started")({
      calls: Schema.optionalKey(Schema.Array(call)),
      questions: Schema.optionalKey(Schema.Array(question))
    }),
    event("tool_call_started")({ callId: Schema.String, change: Schema.optionalKey(change) }),
    event("tool_call_completed")({
      callId: Schema.String,
      result: exactly<Calls.CallOutcome>()(gave),
      spent: Schema.optionalKey(spent)
    }),
    event("tool_calls_completed")({}),
    event("turn_completed")({ turnId: Schema.String }),
    event("paused")({ reason: Schema.String, metadata: Storable.Json }),
    event("run_completed")({
      source,
      reason: Schema.optionalKey(Schema.String),
      metadata: Schema.optionalKey(Storable.Json)
    }),
    event("run_failed")({ error: errorInfo }),
    event("run_cancelled")({
      reason: Schema.optionalKey(Schema.String),
      by: Schema.optionalKey(Schema.String),
      inFlight: Schema.Array(fields.callLeft)
    })
  ] as const
}

const makeDelta = ({ answer, completing, question, stop, strings }: Fields, { expense, results }: Contents) =>
  exactly<Run.Delta>()({
    settled: Schema.optionalKey(Schema.Boolean),
    context: Schema.optionalKey(Storable.JsonObject),
    launched: Schema.optionalKey(strings),
    effects: Schema.optionalKey(Leaves.effects),
    retried: Schema.optionalKey(strings),
    returned: Schema.optionalKey(strings),
    resolved: Schema.optionalKey(results),
    answers: Schema.optionalKey(Schema.Array(answer)),
    asked: Schema.optionalKey(Schema.Array(question)),
    rewind: Schema.optionalKey(Schema.Boolean),
    completing: Schema.optionalKey(completing),
    deferred: Schema.optionalKey(stop),
    spent: Schema.optionalKey(exactly<Expense>()(expense)),
    resumed: Schema.optionalKey(Schema.Boolean)
  })

const makeRecord = (format: number, fields: Fields, contents: Contents) => {
  const { scope } = fields
  return exactly<Record>()({
    format: Schema.Literal(format),
    runId: Schema.String,
    revision: Schema.Natural,
    op: Schema.Literals(["phase", "launch", "pause", "resume"]),
    createdAt: Schema.Finite,
    workerId: Schema.String,
    scope: Schema.optionalKey(exactly<Scope>()(scope)),
    scopes: Schema.optionalKey(
      Schema.Array(
        exactly<FullScope>()({ ...scope, runId: Schema.String, at: Schema.Finite, revision: Schema.Natural })
      )
    ),
    events: Schema.optionalKey(Schema.Array(makeEvents(fields, contents))),
    delta: Schema.optionalKey(makeDelta(fields, contents))
  })
}

const makeTurn = (fields: Fields, { message, messages, results }: Contents) => {
  const { call, dialect, finishReason, modelArgs, outcome, strings, usage } = fields
  return exactly<Run.Turn>()({
    turnId: Schema.String,
    turn: Schema.Int,
    attempt: Schema.Int,
    startedAt: Schema.Finite,
    model: Schema.optionalKey(Schema.String),
    args: Schema.optionalKey(modelArgs),
    before: Schema.optionalKey(
      exactly<NonNullable<Run.Turn["before"]>>()({ prompt: messages, system: Schema.NullOr(Schema.String) })
    ),
    dialect,
    tools: strings,
    message: Schema.optionalKey(message),
    usage: Schema.NullOr(usage),
    finishReason: Schema.optionalKey(finishReason),
    latencyMs: Schema.optionalKey(Schema.Finite),
    outcome: Schema.optionalKey(outcome),
    pending: Schema.Array(call),
    inFlight: Schema.Array(call),
    completed: results,
    order: strings,
    steering: Schema.optionalKey(messages),
    recovered: Schema.optionalKey(strings)
  })
}

const makePart = (format: number, fields: Fields, contents: Contents) => {
  const { completing, forkedFrom, handoff, question, range, status, stop, usage } = fields
  const { message, messages } = contents
  const turn = makeTurn(fields, contents)
  const entry = Schema.Union([
    Schema.Struct({ input: range }),
    Schema.Struct({ turns: range }),
    Schema.Struct({ message })
  ])
  return exactly<Part>()({
    format: Schema.Literal(format),
    input: Schema.optionalKey(messages),
    from: Schema.Natural,
    turns: Schema.Array(turn),
    prompt: Schema.Struct({ base: Schema.Natural, append: Schema.Array(entry) }),
    runId: Schema.String,
    rootRunId: Schema.String,
    parentRunId: absent(Schema.String),
    depth: Schema.Int,
    taskId: absent(Schema.String),
    forkedFrom: absent(forkedFrom),
    agent: Schema.String,
    handoff: absent(handoff),
    revision: Schema.Int,
    status,
    context: Storable.JsonObject,
    history: Schema.Int,
    currentTurn: absent(turn),
    system: Schema.NullOr(Schema.String),
    phaseRevision: Schema.Int,
    settledRevision: Schema.Int,
    questions: Schema.Array(question),
    completing: absent(completing),
    deferred: absent(stop),
    usage,
    costUsd: Schema.Finite,
    unreportedTurns: Schema.Finite,
    emptyReplies: Schema.Finite,
    createdAt: Schema.Finite,
    updatedAt: Schema.Finite
  })
}
