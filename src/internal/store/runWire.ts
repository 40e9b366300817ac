/**
 * Records and states as the JSON that is stored of them.
 *
 * `runSchema.ts` reads it. Writing is on the path of every append, so it copies
 * only values with a wire form of their own (contents, usage) and takes the rest
 * as they are. `Storable.grade` checks the whole afterwards.
 */

import type { CallResult } from "../../Call.ts"
import type { Content } from "../../Content.ts"
import type { Message } from "../../Message.ts"
import type { PhaseEvent } from "../../RunEvent.ts"
import type { RunRecord, CallChange, Turn } from "../../RunState.ts"
import * as Usage from "../../Usage.ts"
import * as Codec from "../words/contentCodec.ts"
import { isEmpty } from "../base/json.ts"
import type { Entry, Part, Scope } from "./runSchema.ts"
import { grade } from "../base/storable.ts"

/** Writes a record. Its events share one scope, or each has its own. */
export const record = (format: number, record: RunRecord): RecordWire => {
  const { createdAt, delta, events, op, revision, runId, workerId } = record
  const head = { format, runId, revision, op, createdAt, workerId }
  const body = isEmpty(delta) ? head : { ...head, delta: deltaOf(delta) }
  const first = events[0]
  if (first === undefined) return body
  const written = events.map(eventOf)
  return events.every((event) => isShared(event, record, first))
    ? { ...body, scope: scopeOf(first), events: written }
    : { ...body, scopes: events.map((event) => ({ ...scopeOf(event), ...placeOf(event) })), events: written }
}

interface RecordWire extends Pick<RunRecord, "runId" | "revision" | "op" | "createdAt" | "workerId"> {
  readonly format: number
  readonly scope?: Scope
  readonly scopes?: ReadonlyArray<object>
  readonly events?: ReadonlyArray<object>
  readonly delta?: object
}

/** Writes records that follow each other, each without the fields that it shares with the one before it. */
export const records = (format: number, records: ReadonlyArray<RunRecord>): ReadonlyArray<object> => {
  let before: RecordWire | undefined
  return records.map((next) => {
    const wire = record(format, next)
    const last = before
    before = { ...wire, ...scopeIn(wire, last) }
    return last === undefined ? wire : changed(wire, last)
  })
}

const changed = (wire: RecordWire, before: RecordWire): object => {
  const { createdAt, format: _, op, revision: _revision, runId: _runId, scope, workerId, ...body } = wire
  return {
    ...(op === before.op ? {} : { op }),
    ...(createdAt === before.createdAt ? {} : { createdAt }),
    ...(workerId === before.workerId ? {} : { workerId }),
    ...(scope === undefined || isSameScope(scope, before.scope) ? {} : { scope }),
    ...body
  }
}

/** The scope of a record, or else of the last one before it that has one. */
const scopeIn = ({ scope }: RecordWire, before: RecordWire | undefined) =>
  scope === undefined && before?.scope !== undefined ? { scope: before.scope } : {}

const isSameScope = (a: Scope, b: Scope | undefined): boolean =>
  b !== undefined && a.rootRunId === b.rootRunId && a.step === b.step && a.depth === b.depth && a.taskId === b.taskId

/** A part of a state. */
export const part = (part: Part): object => {
  const { completing, currentTurn, deferred, forkedFrom, handed, input, parentRunId, prompt, taskId, ...others } = part
  const { turns, usage, ...rest } = others
  return {
    ...rest,
    ...(parentRunId === undefined ? {} : { parentRunId }),
    ...(taskId === undefined ? {} : { taskId }),
    ...(completing === undefined ? {} : { completing }),
    ...(deferred === undefined ? {} : { deferred }),
    ...(forkedFrom === undefined ? {} : { forkedFrom }),
    ...(handed === undefined ? {} : { handed }),
    ...(currentTurn === undefined ? {} : { currentTurn: turnOf(currentTurn) }),
    ...(input === undefined ? {} : { input: input.map(messageOf) }),
    turns: turns.map(turnOf),
    prompt: { base: prompt.base, append: prompt.append.map(entryOf) },
    usage: Usage.encode(usage)
  }
}

/** Tells whether the kernel made all of a record: such a record is valid JSON without a look at it. */
export const isOwn = ({ delta, events }: RunRecord): boolean => {
  if (delta.context !== undefined || delta.answers !== undefined || delta.asked !== undefined) return false
  if (delta.resolved !== undefined || delta.completing !== undefined || delta.deferred !== undefined) return false
  for (const event of events) if (!isOwnEvent(event)) return false
  return true
}

const isOwnEvent = (event: PhaseEvent): boolean => {
  switch (event.type) {
    case "run_started":
      return event.forkedFrom === undefined && isEmpty(event.context) && event.messages.every(isBare)
    case "run_completed":
      return event.metadata === undefined
    case "turn_started":
      return event.steering === undefined || event.steering.every(isBare)
    case "model_started":
    case "model_restarted":
    case "tool_calls_completed":
    case "turn_completed":
      return true
    case "turn_prepared":
      return event.prompt.append.length === 0 && event.args === undefined && event.spent === undefined
    case "tool_calls_started":
      return event.calls === undefined && event.questions === undefined
    case "tool_call_started":
      return event.change === undefined
    case "model_completed":
      return (
        event.outcome.type !== "workflow" &&
        event.message.content.every(isText) &&
        event.calls.every((call) => grade(call.input) === 1)
      )
    case "tool_call_completed": {
      const { error, message, metadata, output } = event.result
      const isPlain = error === undefined && message === undefined && metadata === undefined
      return isPlain && event.spent === undefined && (output === undefined || output.every(isText))
    }
    default:
      return false
  }
}

const isText = (part: Content): boolean => part.type === "text"

/** Whether a message, which may come from outside, is its role and texts and nothing else. */
const isBare = ({ content, metadata, name, role }: Message): boolean =>
  typeof role === "string" && name === undefined && metadata === undefined && content.every(isBareText)

const isBareText = (part: Content): boolean =>
  part.type === "text" &&
  typeof part.text === "string" &&
  Object.keys(part).length === 2 &&
  Object.getPrototypeOf(part) === Object.prototype

// ---------------------------------------------------------------- scopes

const isShared = (event: PhaseEvent, record: RunRecord, first: PhaseEvent): boolean =>
  event.runId === record.runId &&
  event.revision === record.revision &&
  event.at === record.createdAt &&
  event.rootRunId === first.rootRunId &&
  event.step === first.step &&
  event.depth === first.depth &&
  event.taskId === first.taskId

const scopeOf = ({ depth, rootRunId, step, taskId }: PhaseEvent): Scope =>
  taskId === undefined ? { rootRunId, step, depth } : { rootRunId, step, depth, taskId }

const placeOf = ({ at, revision, runId }: PhaseEvent): object => ({ runId, at, revision })

// ---------------------------------------------------------------- events

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
  switch (body.type) {
    case "run_started": {
      const { parentRunId, ...rest } = body
      const messages = body.messages.map(messageOf)
      return parentRunId === undefined ? { ...rest, messages } : { ...body, messages }
    }
    case "turn_started":
      return body.steering === undefined ? body : { ...body, steering: body.steering.map(messageOf) }
    case "agent_changed":
      return { ...body, prompt: { ...body.prompt, append: body.prompt.append.map(messageOf) } }
    case "turn_prepared": {
      const { append } = body.prompt
      const prepared =
        append.length === 0 ? body : { ...body, prompt: { ...body.prompt, append: append.map(messageOf) } }
      return body.spent === undefined ? prepared : { ...prepared, spent: spentOf(body.spent) }
    }
    case "model_completed":
      return { ...body, message: messageOf(body.message), usage: body.usage === null ? null : Usage.encode(body.usage) }
    case "tool_call_started":
      return body.change === undefined ? body : { ...body, change: changeOf(body.change) }
    case "tool_call_completed": {
      const result = resultOf(body.result)
      return body.spent === undefined ? { ...body, result } : { ...body, result, spent: spentOf(body.spent) }
    }
    case "run_completed": {
      // The result is computed from the journal.
      const { result: _, ...rest } = body
      return rest
    }
    default:
      return body
  }
}

const deltaOf = (delta: RunRecord["delta"]): object => ({
  ...delta,
  ...(delta.resolved === undefined ? {} : { resolved: delta.resolved.map(resultOf) }),
  ...(delta.spent === undefined ? {} : { spent: spentOf(delta.spent) })
})

const changeOf = (change: CallChange): object =>
  change.type === "skip" ? { ...change, result: resultOf(change.result) } : change

// ---------------------------------------------------------------- what holds contents

const turnOf = (turn: Turn): object => ({
  ...turn,
  ...(turn.message === undefined ? {} : { message: messageOf(turn.message) }),
  ...(turn.steering === undefined ? {} : { steering: turn.steering.map(messageOf) }),
  ...(turn.before === undefined ? {} : { before: { ...turn.before, prompt: turn.before.prompt.map(messageOf) } }),
  usage: turn.usage === null ? null : Usage.encode(turn.usage),
  completed: turn.completed.map(resultOf)
})

const resultOf = (result: CallResult): object => ({
  ...result,
  ...(result.output === undefined ? {} : { output: result.output.map(contentOf) }),
  ...(result.message === undefined ? {} : { message: messageOf(result.message) }),
  ...(result.spent === undefined ? {} : { spent: spentOf(result.spent) })
})

const entryOf = (entry: Entry): object => ("message" in entry ? { message: messageOf(entry.message) } : entry)

const messageOf = ({ content, metadata, name, role }: Message): object => ({
  role,
  content: content.map(contentOf),
  ...(name === undefined ? {} : { name }),
  ...(metadata === undefined ? {} : { metadata })
})

// A bare text is its own wire form.
const contentOf = (content: Content): object =>
  content.type === "text" && Object.keys(content).length === 2 ? content : Codec.encode(content)

const spentOf = (spent: Usage.Expense): object => ({ ...spent, usage: Usage.encode(spent.usage) })
