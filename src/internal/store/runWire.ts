/**
 * Records as stored JSON: the schema that reads them, and functions that write them.
 *
 * Every append writes, so only values with their own wire form (contents, usage) are copied and all others are used
 * unchanged. Which ones these are is derived from the schemas of the events.
 */

import type * as Arr from "effect/Array"
import * as Schema from "effect/Schema"
import * as Records from "../state/recordSchema.ts"
import type { PhaseEvent, RunRecord } from "../../RunRecord.ts"
import type { Message } from "../../Message.ts"
import { isEmpty } from "../../kit/json.ts"
import { perObject } from "../../kit/perObject.ts"
import { lazily, mapped, otherwise, type TypeOf } from "../../kit/schemas.ts"
import { bounds, hasPlainFields, isPlain } from "../../kit/storable.ts"
import { factsOf } from "../words/messageFacts.ts"
import { type ContentCodec, message as messageSchema, messages, plainContent, wire } from "../words/messageSchema.ts"

/** The newest format that this version writes and reads: that of runs whose earlier messages are stored apart. */
export const format = 3

/** The oldest format that this version reads, and the one of everything else, which the version before can read. */
export const oldest = 2

/** Earlier messages of a run that are stored apart, as chunks that runs share: the last chunk, and their number. */
export const earlierSchema = lazily(() => Schema.Struct({ chunk: Schema.String, messages: Schema.Natural }))

export interface Earlier extends TypeOf<typeof earlierSchema> {}

/** The stored form of some messages of a conversation, and the chunk with those before them. */
export const chunkSchema = perObject((content: ContentCodec) =>
  Schema.Struct({
    format: Schema.Literal(format),
    before: Schema.optionalKey(Schema.String),
    messages: messages(content)
  })
)

export interface Chunk extends Omit<TypeOf<typeof chunkSchema>, "format"> {}

const messageWriter = lazily(() => mapped(messageSchema(plainContent()), wire))

/** Writes a message. */
export const message = (message: Message): object => messageWriter()(message)

/** Writes a chunk. */
export const chunk = ({ before, messages }: Chunk): object => ({
  format,
  ...(before === undefined ? {} : { before }),
  messages: messages.map(message)
})

/** The scope that the events of a record share. A root run is its own root. */
const scope = lazily(() =>
  Schema.Struct({
    rootRunId: Schema.optionalKey(Schema.String),
    step: Schema.Finite,
    depth: otherwise(Schema.Finite, 0),
    taskId: Schema.optionalKey(Schema.String)
  })
)

/** The scope of an event that does not share that of its record. */
const fullScope = lazily(() =>
  Schema.Struct({ ...scope().fields, runId: Schema.String, at: Schema.Finite, revision: Schema.Natural })
)

/** The stored form of a record. Its events share one scope, or each has its own. */
export const recordSchema = perObject((content: ContentCodec) =>
  Schema.Struct({
    format: Schema.Literals([oldest, format]),
    /** Messages before those of `run_started`. */
    earlier: Schema.optionalKey(earlierSchema()),
    ...Records.recordFacts().fields,
    scope: Schema.optionalKey(scope()),
    scopes: Schema.optionalKey(Schema.Array(fullScope())),
    events: Schema.optionalKey(Schema.Array(Schema.Union(Records.eventSchemas(content)))),
    delta: Schema.optionalKey(Records.delta(content))
  })
)

/** Returns a record from its stored form, and the earlier messages that it refers to. */
export const toRecord = (wire: TypeOf<typeof recordSchema>, earlier: ReadonlyArray<Message>): RunRecord => {
  const { createdAt, delta = {}, events = [], op, revision, runId, scope, scopes, workerId } = wire
  const shared = { runId, revision, at: createdAt, ...(scope ?? { step: 0, depth: 0 }) }
  return {
    runId,
    revision,
    op,
    events: events.map((event, index) => {
      const scope = scopes?.[index] ?? shared
      const place = { ...scope, rootRunId: scope.rootRunId ?? scope.runId, taskId: scope.taskId }
      return event.type === "run_started" && wire.earlier !== undefined
        ? { ...event, ...place, messages: earlier.concat(event.messages) }
        : { ...event, ...place }
    }),
    delta,
    createdAt,
    workerId
  }
}

// ---------------------------------------------------------------- writing

/** Returns a record without its earlier messages. */
export const own = (record: RunRecord, { messages: count }: Earlier): RunRecord => ({
  ...record,
  events: record.events.map((event) =>
    event.type === "run_started" ? { ...event, messages: event.messages.slice(count) } : event
  )
})

/** Writes a record without the earlier messages that it refers to. Its events share one scope, or each has its own. */
export const record = (record: RunRecord, earlier?: Earlier): object => {
  const { createdAt, op, revision, runId, workerId } = record
  const scope = sharedScope(record)
  return {
    ...(earlier === undefined ? { format: oldest } : { format, earlier }),
    runId,
    revision,
    op,
    createdAt,
    workerId,
    ...(scope === undefined ? {} : { scope: scopeOf(scope, runId) }),
    ...bodyOf(record, scope)
  }
}

/**
 * Writes consecutive records. Each record after the first holds only its differences from the previous one, and a
 * record with a single event is written as that event.
 */
export const records = (
  [first, ...rest]: Arr.NonEmptyReadonlyArray<RunRecord>,
  earlier?: Earlier
): ReadonlyArray<object> => {
  let before = first
  let scope = sharedScope(first)
  const written = rest.map((next) => {
    const own = sharedScope(next)
    const place = own === undefined ? {} : scopeAfter(scope, own, next.runId)
    const item = differences(next, before, place, bodyOf(next, own))
    before = next
    scope = own ?? scope
    return item
  })
  return [record(first, earlier), ...written]
}

const differences = (next: RunRecord, before: RunRecord, place: object, body: Body): object => {
  const { createdAt, op, workerId } = next
  const isPlain = op === "phase" && createdAt === before.createdAt && workerId === before.workerId
  const [event, ...others] = body.events ?? []
  return isPlain && event !== undefined && others.length === 0 && Object.keys(body).length === 1 && !("scope" in place)
    ? { ...event, ...place }
    : {
        ...(op === "phase" ? {} : { op }),
        ...(createdAt === before.createdAt ? {} : { createdAt }),
        ...(workerId === before.workerId ? {} : { workerId }),
        ...place,
        ...body
      }
}

/** The fields of a record that it does not share with the previous one. */
interface Body {
  readonly delta?: object
  readonly scopes?: ReadonlyArray<object>
  readonly events?: ReadonlyArray<object>
}

const bodyOf = (record: RunRecord, scope: PhaseEvent | undefined): Body => {
  const { delta, events } = record
  return {
    ...(isEmpty(delta) ? {} : { delta: deltaOf(delta) }),
    ...(events.length === 0 || scope !== undefined
      ? {}
      : { scopes: events.map((event) => ({ ...scopeOf(event, event.runId), ...placeOf(event) })) }),
    ...(events.length === 0 ? {} : { events: events.map(eventOf) })
  }
}

// ---------------------------------------------------------------- scopes

/** Returns an event whose scope all events of a record share, if there is one. */
const sharedScope = ({ createdAt, events, revision, runId }: RunRecord): PhaseEvent | undefined => {
  const [first] = events
  const isShared = (event: PhaseEvent) =>
    event.runId === runId && event.revision === revision && event.at === createdAt && isSameScope(event, first)
  return events.every(isShared) ? first : undefined
}

const isSameScope = (a: PhaseEvent, b: PhaseEvent | undefined): boolean =>
  b !== undefined && a.step === b.step && isSameRun(a, b)

const isSameRun = (a: PhaseEvent, b: PhaseEvent): boolean =>
  a.rootRunId === b.rootRunId && a.depth === b.depth && a.taskId === b.taskId

/** Writes a scope. For a root run it is only the step. */
const scopeOf = ({ depth, rootRunId, step, taskId }: PhaseEvent, runId: string): object => ({
  ...(rootRunId === runId ? {} : { rootRunId }),
  step,
  ...(depth === 0 ? {} : { depth }),
  ...(taskId === undefined ? {} : { taskId })
})

/** Writes the differences from the previous scope, which is usually the next step. */
const scopeAfter = (before: PhaseEvent | undefined, scope: PhaseEvent, runId: string): object => {
  if (before === undefined || !isSameRun(before, scope)) return { scope: scopeOf(scope, runId) }
  return before.step === scope.step ? {} : { step: scope.step }
}

const placeOf = ({ at, revision, runId }: PhaseEvent): object => ({ runId, at, revision })

/**
 * Returns whether a record holds nothing but JSON, so that its wire form need not be checked. False if it holds a
 * negative zero, which needs a special spelling.
 */
export const isJson = ({ delta, events }: RunRecord): boolean => {
  try {
    return events.every(holdsJson) && isPlain(delta, fieldDepth)
  } catch {
    // A getter may throw anything.
    return false
  }
}

const holdsJson = (event: PhaseEvent): boolean => hasPlainFields(judged(event), fieldDepth)

/** Returns an event without messages that are known to be stored well. */
const judged = (event: PhaseEvent): PhaseEvent =>
  // Messages are judged once for all runs that begin with them, because a conversation may be long.
  event.type === "run_started" && factsOf(event.messages).isBare ? { ...event, messages: [] } : event

/** A field of an event is in the event, in a list, in the record. */
const fieldDepth = bounds.jsonDepth - 3

// ---------------------------------------------------------------- derived

const writeBody = lazily(() => Records.mapEvent(wire))

/** Writes an event without its scope. */
const eventOf = (event: PhaseEvent): object => {
  const {
    at: _at,
    depth: _depth,
    revision: _revision,
    rootRunId: _root,
    runId: _run,
    step: _step,
    taskId: _task,
    ...body
  } = event
  if (body.type !== "run_completed" || body.result === undefined) return writeBody()(body)
  // The result is computed from the journal.
  const { result: _, ...stored } = body
  return writeBody()(stored)
}

const deltaWriter = lazily(() => mapped(Records.delta(plainContent()), wire))

const deltaOf = (delta: RunRecord["delta"]): object => deltaWriter()(delta)
