/**
 * Writes records and states as stored JSON.
 *
 * `runSchema.ts` reads it. Because every append writes, only values with their own wire form (contents, usage) are
 * copied and all others used unchanged. `Storable.grade` then checks the whole.
 */

import type * as Arr from "effect/Array"
import type { Call, CallOutcome, CallResult } from "../../Call.ts"
import type { Content } from "../../Content.ts"
import type { Message } from "../../Message.ts"
import type { PhaseEvent } from "../../RunEvent.ts"
import type { CallChange, PromptDelta, RunRecord, Turn } from "../../RunState.ts"
import * as Usage from "../../Usage.ts"
import * as Codec from "../words/contentCodec.ts"
import { factsOf, isBareText } from "../words/messageFacts.ts"
import { isEmpty } from "../../kit/json.ts"
import type { Entry, Part } from "./runSchema.ts"
import { grade } from "../../kit/storable.ts"

/** Writes a record. Its events share one scope, or each has its own. */
export const record = (format: number, record: RunRecord): object => {
  const { createdAt, op, revision, runId, workerId } = record
  const scope = sharedScope(record)
  return {
    format,
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
  format: number,
  [first, ...rest]: Arr.NonEmptyReadonlyArray<RunRecord>
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
  return [record(format, first), ...written]
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

/** Writes a part of a state. */
export const part = (part: Part): object => {
  const { completing, currentTurn, deferred, forkedFrom, handoff, input, parentRunId, prompt, taskId, ...others } = part
  const { turns, usage, ...rest } = others
  return {
    ...rest,
    ...(parentRunId === undefined ? {} : { parentRunId }),
    ...(taskId === undefined ? {} : { taskId }),
    ...(completing === undefined ? {} : { completing }),
    ...(deferred === undefined ? {} : { deferred }),
    ...(forkedFrom === undefined ? {} : { forkedFrom }),
    ...(handoff === undefined ? {} : { handoff }),
    ...(currentTurn === undefined ? {} : { currentTurn: turnOf(currentTurn) }),
    ...(input === undefined ? {} : { input: input.map(messageOf) }),
    turns: turns.map(turnOf),
    prompt: { base: prompt.base, append: prompt.append.map(entryOf) },
    usage: Usage.encode(usage)
  }
}

/** Returns whether the kernel created every value of a record, so that it need not be checked to be JSON. */
export const isOwn = ({ delta, events }: RunRecord): boolean => {
  if (delta.context !== undefined || delta.answers !== undefined || delta.asked !== undefined) return false
  if (delta.resolved !== undefined || delta.completing !== undefined || delta.deferred !== undefined) return false
  for (const event of events) if (!isOwnEvent(event)) return false
  return true
}

const isOwnEvent = (event: PhaseEvent): boolean => {
  switch (event.type) {
    case "run_started":
      return event.forkedFrom === undefined && isEmpty(event.context) && factsOf(event.messages).isBare
    case "run_completed":
      return event.metadata === undefined
    case "turn_started":
      return event.steering === undefined || factsOf(event.steering).isBare
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
        event.hosted === undefined &&
        event.message.content.every(isBareText) &&
        event.calls.every((call) => grade(call.input) === 1)
      )
    case "tool_call_completed": {
      const { durationMs, error, message, metadata, output } = event.result
      const isPlain = error === undefined && message === undefined && metadata === undefined
      // Negative zero needs a special spelling.
      const isUsual = event.spent === undefined && !Object.is(durationMs, -0)
      return isPlain && isUsual && (output === undefined || output.every(isBareText))
    }
    default:
      return false
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
      const { prompt, spent, tools, ...rest } = body
      return {
        ...rest,
        prompt: promptOf(prompt),
        ...(tools.length === 0 ? {} : { tools }),
        ...(spent === undefined ? {} : { spent: spentOf(spent) })
      }
    }
    case "model_completed": {
      const { calls, message, usage, ...rest } = body
      return {
        ...rest,
        message: messageOf(message),
        ...(usage === null ? {} : { usage: Usage.encode(usage) }),
        ...(calls.length === 0 ? {} : { calls: calls.map(callOf) })
      }
    }
    case "tool_call_started":
      return body.change === undefined ? body : { ...body, change: changeOf(body.change) }
    case "tool_call_completed": {
      const result = outcomeOf(body.result)
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

const promptOf = ({ append, ...prompt }: PromptDelta): object =>
  append.length === 0 ? prompt : { ...prompt, append: append.map(messageOf) }

/** Writes a call, leaving out the review of an unreviewed one. */
const callOf = ({ review, ...call }: Call): object => (review === "unreviewed" ? call : { ...call, review })

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

const resultOf = (result: CallResult): object =>
  result.spent === undefined ? outcomeOf(result) : { ...outcomeOf(result), spent: spentOf(result.spent) }

const outcomeOf = (outcome: CallOutcome): object => ({
  ...outcome,
  ...(outcome.output === undefined ? {} : { output: outcome.output.map(contentOf) }),
  ...(outcome.message === undefined ? {} : { message: messageOf(outcome.message) })
})

const entryOf = (entry: Entry): object => ("message" in entry ? { message: messageOf(entry.message) } : entry)

const messageOf = ({ content, metadata, name, role }: Message): object => ({
  role,
  content: content.map(contentOf),
  ...(name === undefined ? {} : { name }),
  ...(metadata === undefined ? {} : { metadata })
})

// A text content is its own wire form.
const contentOf = (content: Content): object =>
  content.type === "text" && Object.keys(content).length === 2 ? content : Codec.encode(content)

const spentOf = (spent: Usage.Expense): object => ({ ...spent, usage: Usage.encode(spent.usage) })
