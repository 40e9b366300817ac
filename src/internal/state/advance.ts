/**
 * Folds records into the state of a run.
 *
 * `advance` is pure. `move` mutates a state with a single owner, because an active run advances a dozen times per turn.
 */

import { arrived, type Call, childRunId, resultOf } from "../../Call.ts"
import type { Message } from "../../Message.ts"
import type { CallChange, Phase, PromptDelta, Repair, RunState, Turn } from "../../RunModel.ts"
import type { Delta, PhaseEvent, RunRecord } from "../../RunRecord.ts"
import * as Usage from "../../Usage.ts"
import { Growing } from "../../kit/lists.ts"
import { State, promptLog, running, turnLog } from "./state.ts"

/** Returns the state after a record. The first record creates the state. */
export const advance = (state: RunState | undefined, record: RunRecord): RunState => {
  const next = new State(state ?? initialState(record))
  move(next, record)
  return next
}

/** Applies a record to a state, in place. */
export const move = (next: State, record: RunRecord): void => {
  const { delta } = record
  // Changes by the previous phase's hook precede the events of this record.
  if (delta.context !== undefined) next.context = { ...next.context, ...delta.context }
  if (delta.settled === true) next.settledRevision = next.phaseRevision
  if (record.op === "resume") continueRun(next, delta)
  if (delta.launched !== undefined && next.currentTurn !== undefined) {
    next.currentTurn = launch(next.currentTurn, delta.launched, delta)
  }
  if (delta.returned !== undefined && next.currentTurn !== undefined) {
    next.currentTurn = giveBack(next.currentTurn, delta.returned)
  }
  if (delta.asked !== undefined) next.questions = next.questions.concat(delta.asked)
  if (delta.completing !== undefined) next.completing = delta.completing
  if (delta.deferred !== undefined) next.deferred = delta.deferred
  next.count(delta.spent)
  for (const event of record.events) apply(next, event, record)
  next.revision = record.revision
  next.updatedAt = record.createdAt
}

const apply = (next: State, event: PhaseEvent, record: RunRecord): void => {
  switch (event.type) {
    case "turn_started":
      startTurn(next, event)
      break
    case "agent_changed":
      // The next turn belongs to the other agent. The phase does not change: it is still the end of the last turn.
      next.handoff = { agent: event.to, turn: turnLog(next).length + 1 }
      next.setPrompt(extend(promptLog(next), event.prompt))
      return
    case "turn_prepared":
      prepare(next, event)
      break
    case "model_started":
    case "model_restarted":
      if (next.currentTurn !== undefined) next.currentTurn = { ...next.currentTurn, attempt: event.attempt }
      if (event.type === "model_restarted" && event.repair !== undefined) repair(next, event.repair)
      return enter(next, "model_started", record)
    case "model_completed":
      takeReply(next, event)
      break
    case "tool_calls_started":
      next.questions = event.questions ?? none
      if (event.calls !== undefined && next.currentTurn !== undefined) {
        next.currentTurn = { ...next.currentTurn, pending: event.calls, order: idsOf(event.calls) }
      }
      break
    case "tool_call_started":
      if (next.currentTurn !== undefined)
        next.currentTurn = review(next.currentTurn, event.callId, event.change, approvalOf(next, event.callId))
      break
    case "tool_call_completed":
      complete(next, event)
      break
    case "tool_calls_completed":
      next.questions = none
      break
    case "turn_completed":
      // Adds the reply and then the results to the conversation in one step.
      if (next.currentTurn !== undefined) next.close(next.currentTurn)
      break
    case "paused": {
      const { metadata, reason } = event
      next.settledRevision = next.phaseRevision
      next.deferred = undefined
      next.status = { type: "paused", phase: next.status.phase, reason, metadata, createdAt: record.createdAt }
      return
    }
    case "run_completed":
      return end(next, event, record)
    case "run_failed":
      next.status = { type: "failed", phase: next.status.phase, error: event.error, createdAt: record.createdAt }
      return
    case "run_cancelled":
      return cancel(next, event, record)
  }
  enter(next, event.type, record)
}

const cancel = (
  next: State,
  { by, reason }: Extract<PhaseEvent, { type: "run_cancelled" }>,
  { createdAt }: RunRecord
): void => {
  next.status = {
    type: "cancelled",
    phase: next.status.phase,
    ...(reason === undefined ? {} : { reason }),
    ...(by === undefined ? {} : { by }),
    createdAt
  }
}

const end = (
  next: State,
  { metadata, reason, source }: Extract<PhaseEvent, { type: "run_completed" }>,
  { createdAt }: RunRecord
): void => {
  next.completing = undefined
  next.deferred = undefined
  next.status = {
    type: "completed",
    phase: next.status.phase,
    source,
    ...(reason === undefined ? {} : { reason }),
    ...(metadata === undefined ? {} : { metadata }),
    createdAt
  }
}

const initialState = (record: RunRecord): RunState => {
  const event = record.events[0]
  if (event?.type !== "run_started") throw new Error("no run_started")
  return {
    runId: event.runId,
    rootRunId: event.rootRunId,
    parentRunId: event.parentRunId,
    depth: event.depth,
    taskId: event.taskId,
    caller: event.caller,
    trace: event.trace,
    forkedFrom: event.forkedFrom,
    agent: event.agent,
    version: event.version,
    offered: undefined,
    handoff: undefined,
    revision: 0,
    status: { type: "running", phase: "run_started" },
    context: event.context,
    input: event.messages,
    history: event.history,
    turns: none,
    currentTurn: undefined,
    prompt: event.messages,
    system: null,
    phaseRevision: 0,
    settledRevision: 0,
    questions: none,
    background: undefined,
    completing: undefined,
    deferred: undefined,
    usage: Usage.zero,
    costUsd: undefined,
    unreportedTurns: 0,
    emptyReplies: 0,
    outputRefused: undefined,
    resumedAfter: undefined,
    createdAt: record.createdAt,
    updatedAt: record.createdAt
  }
}

const enter = (next: State, phase: Phase, record: RunRecord): void => {
  next.status = running(phase)
  next.phaseRevision = record.revision
}

// ---------------------------------------------------------------- the turn

/** Opens a turn with the messages that arrived since the last one. */
const startTurn = (next: State, event: Extract<PhaseEvent, { type: "turn_started" }>): void => {
  const { at, ended, turnId } = event
  const steering = ended === undefined ? event.steering : ended.map(arrived).concat(event.steering ?? none)
  next.currentTurn = openTurn(turnId, turnLog(next).length + 1, at, steering)
  if (steering !== undefined) next.setPrompt(promptLog(next).append(steering))
  if (ended === undefined) return
  for (const { spent } of ended) next.count(spent)
  const ids = new Set(idsOf(ended))
  const open = next.background?.filter(({ callId }) => !ids.has(callId)) ?? none
  next.background = open.length === 0 ? undefined : open
}

const prepare = (next: State, event: Extract<PhaseEvent, { type: "turn_prepared" }>): void => {
  const { args, dialect, model, prompt, spent, tools } = event
  const before = promptLog(next)
  const { system } = next
  next.setPrompt(extend(before, prompt))
  if (prompt.system !== undefined) next.system = prompt.system
  if (event.offered !== undefined) next.offered = event.offered
  next.count(spent)
  if (next.currentTurn === undefined) return
  const same = promptLog(next) === before && next.system === system
  next.currentTurn = {
    ...next.currentTurn,
    model,
    dialect,
    tools,
    ...(args === undefined ? {} : { args }),
    ...(same ? {} : { before: { prompt: before.array, system } })
  }
}

/** Repairs the conversation, and the one that a rewind returns to. */
const repair = (next: State, { leftOut, prompt }: Repair): void => {
  if (leftOut.some(({ type }) => type === "output")) next.outputRefused = true
  const old = promptLog(next).array
  next.setPrompt(extend(promptLog(next), prompt))
  const { before } = next.currentTurn ?? {}
  if (next.currentTurn === undefined || before === undefined) return
  const repaired = promptLog(next).array
  const isSame = before.prompt.length === old.length && before.prompt.every((message, index) => message === old[index])
  if (!isSame && repaired.length !== old.length) return
  const messages = isSame ? repaired : before.prompt.map((message) => repaired[old.indexOf(message)] ?? message)
  next.currentTurn = { ...next.currentTurn, before: { ...before, prompt: messages } }
}

const extend = (prompt: Growing<Message>, delta: PromptDelta): Growing<Message> =>
  delta.base === prompt.length
    ? prompt.append(delta.append)
    : Growing.of(prompt.array.slice(0, delta.base).concat(delta.append))

const takeReply = (next: State, event: Extract<PhaseEvent, { type: "model_completed" }>): void => {
  if (next.currentTurn === undefined) return
  const { calls, finishReason, latencyMs, message, model, outcome, usage } = event
  next.currentTurn = {
    ...decided(next.currentTurn),
    message,
    model,
    usage,
    finishReason,
    latencyMs,
    outcome,
    pending: calls,
    order: idsOf(calls)
  }
  if (usage === null) next.unreportedTurns += 1
  else next.count(Usage.expense(usage, event.costUsd))
  next.emptyReplies = outcome.type === "corrective" && outcome.reason === "empty" ? next.emptyReplies + 1 : 0
}

const complete = (next: State, event: Extract<PhaseEvent, { type: "tool_call_completed" }>): void => {
  next.count(event.spent)
  const turn = next.currentTurn
  const at = turn === undefined ? -1 : indexOf(turn.inFlight, event.callId)
  const call = turn?.inFlight[at]
  if (turn === undefined || call === undefined) return
  const started = call.background && event.result.error === undefined ? childRunId(turn.turnId, call) : undefined
  if (started !== undefined) {
    next.background = (next.background ?? none).concat({ ...call, callId: started, kind: "task" })
  }
  next.currentTurn = {
    ...turn,
    inFlight: without(turn.inFlight, at),
    completed: turn.completed.concat(resultOf(call, event.result))
  }
}

// ---------------------------------------------------------------- resume

/** Continues a stopped run. With `rewind`, the open turn starts over. */
const continueRun = (next: State, delta: Delta): void => {
  answerQuestions(next, delta)
  const { phase, type } = next.status
  const turn = next.currentTurn
  if (type === "failed" && phase === "turn_completed") next.resumedAfter = turnLog(next).length
  next.status = running(phase)
  if (turn === undefined) return
  if (delta.rewind === true) {
    if (turn.before !== undefined) {
      next.setPrompt(Growing.of(turn.before.prompt))
      next.system = turn.before.system
    }
    next.currentTurn = openTurn(turn.turnId, turn.turn, turn.startedAt, turn.steering)
    // The hook of turn_started has run; preparing the turn again must not repeat it.
    if (phase !== "turn_started") next.settledRevision = next.phaseRevision
    next.status = running("turn_started")
    return
  }
  const retried = new Set(delta.retried)
  const resolved = (delta.resolved ?? none).map(({ spent, ...result }) => {
    next.count(spent)
    return result
  })
  if (retried.size + resolved.length === 0) return
  const known = new Set([...retried, ...resolved.map((result) => result.callId)])
  next.currentTurn = {
    ...turn,
    recovered: [...new Set([...(turn.recovered ?? none), ...known])],
    // Recovered calls go to the front in their original order, because they were requested before the pending calls.
    pending: turn.inFlight.filter((call) => retried.has(call.callId)).concat(turn.pending),
    inFlight: turn.inFlight.filter((call) => !known.has(call.callId)),
    // A result whose hook has not run stays last, where the hook expects it.
    completed:
      phase === "tool_call_completed" && next.settledRevision < next.phaseRevision
        ? turn.completed.slice(0, -1).concat(resolved, turn.completed.slice(-1))
        : turn.completed.concat(resolved)
  }
}

const answerQuestions = (next: State, delta: Delta): void => {
  const answers = delta.answers
  if (answers === undefined || answers.length === 0) return
  next.questions = next.questions.map((question) => {
    const answer = answers.find((answer) => answer.callId === question.callId)
    return answer === undefined || question.answer !== undefined ? question : { ...question, answer }
  })
}

// ---------------------------------------------------------------- turns

const none: ReadonlyArray<never> = []

/** Returns a turn that has just started. */
const openTurn = (
  turnId: string,
  turn: number,
  startedAt: number,
  steering: ReadonlyArray<Message> | undefined
): Turn => {
  const opened: Turn = {
    turnId,
    turn,
    attempt: 0,
    startedAt,
    dialect: "blocks",
    tools: none,
    usage: null,
    pending: none,
    inFlight: none,
    completed: none,
    order: none
  }
  return steering === undefined ? opened : { ...opened, steering }
}

/** Removes the data for preparing a turn again, which a decided turn does not need. */
const decided = (turn: Turn): Turn => {
  if (turn.before === undefined) return turn
  const { before: _, ...rest } = turn
  return rest
}

/** Returns the ids of calls, in their order. */
const idsOf = (calls: ReadonlyArray<Pick<Call, "callId">>): ReadonlyArray<string> =>
  calls.length === 0 ? none : calls.map((call) => call.callId)

/** Returns the reason with which a person approved a call. */
const approvalOf = ({ questions }: State, callId: string): Call["approval"] => {
  if (questions.length === 0) return undefined
  const { answer } = questions.findLast((question) => question.callId === callId) ?? {}
  return answer?.approved === true && answer.reason !== undefined
    ? { reason: answer.reason, ...(answer.by === undefined ? {} : { by: answer.by }) }
    : undefined
}

/** Marks a call as reviewed: accepted as it is, rewritten, or skipped with a result. */
const review = (turn: Turn, callId: string, change: CallChange | undefined, approval: Call["approval"]): Turn => {
  const { completed, pending } = turn
  const at = indexOf(pending, callId)
  if (change?.type === "skip") {
    return { ...turn, pending: without(pending, at), completed: completed.concat(change.result) }
  }
  const call = change === undefined ? pending[at] : change.call
  if (call === undefined || at === -1) return turn
  const next = pending.slice()
  next[at] = { ...call, review: "accepted", ...(approval === undefined ? {} : { approval }) }
  return { ...turn, pending: next }
}

/** Moves calls from pending to in flight. */
const launch = (turn: Turn, ids: ReadonlyArray<string>, { effects, terms }: Pick<Delta, "effects" | "terms">): Turn => {
  let { pending } = turn
  const launched: Array<Call> = []
  for (const id of ids) {
    const at = indexOf(pending, id)
    const call = pending[at]
    if (call === undefined) continue
    pending = without(pending, at)
    launched.push(effects === undefined ? call : { ...call, effects, ...(terms === undefined ? {} : { terms }) })
  }
  return { ...turn, pending, inFlight: turn.inFlight.concat(launched) }
}

/** Moves calls from in flight back to pending, before those that still wait. */
const giveBack = (turn: Turn, ids: ReadonlyArray<string>): Turn => {
  const given = new Set(ids)
  return {
    ...turn,
    pending: turn.inFlight.filter(({ callId }) => given.has(callId)).concat(turn.pending),
    inFlight: turn.inFlight.filter(({ callId }) => !given.has(callId))
  }
}

// A plan may have thousands of calls, and each moves three times. Copying a list whole is faster than `filter` or
// `with`.
/** Returns the index of a call, or -1. */
const indexOf = (calls: ReadonlyArray<Call>, callId: string): number => {
  const last = calls.length - 1
  // Tasks usually start in the order of their plan or in reverse.
  if (calls[last]?.callId === callId) return last
  for (let at = 0; at < last; at++) if (calls[at]?.callId === callId) return at
  return -1
}

/** Returns the calls without the one at an index; all of them for -1. */
const without = (calls: ReadonlyArray<Call>, at: number): ReadonlyArray<Call> =>
  at === -1
    ? calls
    : calls.length === 1
      ? none
      : at === 0
        ? calls.slice(1)
        : calls.slice(0, at).concat(calls.slice(at + 1))
