/**
 * The fold of a run: one record after the other (DR-4, DR-5).
 *
 * From outside `advance` is a pure function. Inside, the one copy it makes of
 * the state is filled in place: this runs a dozen times per turn.
 *
 * @since 0.1.0
 */
import type { Call } from "../Call.ts"
import * as Calls from "../Call.ts"
import type { Message } from "../Message.ts"
import type { PhaseEvent } from "../RunEvent.ts"
import type { Delta, Phase, PromptDelta, RunRecord, RunState, ToolResponseChange, Turn } from "../RunState.ts"
import * as Usage from "../Usage.ts"
import { Growing } from "./growing.ts"
import { freeze } from "./snapshot.ts"

/** A state whose lists are shared between its versions; a copy is filled in before anybody sees it. */
class State implements RunState {
  readonly runId: string
  readonly rootRunId: string
  readonly parentRunId: string | undefined
  readonly depth: number
  readonly taskId: string | undefined
  readonly forkedFrom: RunState["forkedFrom"]
  readonly agent: string
  readonly input: ReadonlyArray<Message>
  readonly history: number
  readonly createdAt: number
  revision: number
  status: RunState["status"]
  context: RunState["context"]
  currentTurn: Turn | undefined
  system: string | null
  phaseRevision: number
  settledRevision: number
  approvals: RunState["approvals"]
  completing: RunState["completing"]
  deferred: RunState["deferred"]
  usage: Usage.Usage
  costUsd: number
  unreportedTurns: number
  emptyReplies: number
  updatedAt: number
  #turns: Growing<Turn>
  #prompt: Growing<Message>
  #sealed = false

  constructor(from: RunState) {
    this.runId = from.runId
    this.rootRunId = from.rootRunId
    this.parentRunId = from.parentRunId
    this.depth = from.depth
    this.taskId = from.taskId
    this.forkedFrom = from.forkedFrom
    this.agent = from.agent
    this.input = from.input
    this.history = from.history
    this.createdAt = from.createdAt
    this.revision = from.revision
    this.status = from.status
    this.context = from.context
    this.currentTurn = from.currentTurn
    this.system = from.system
    this.phaseRevision = from.phaseRevision
    this.settledRevision = from.settledRevision
    this.approvals = from.approvals
    this.completing = from.completing
    this.deferred = from.deferred
    this.usage = from.usage
    this.costUsd = from.costUsd
    this.unreportedTurns = from.unreportedTurns
    this.emptyReplies = from.emptyReplies
    this.updatedAt = from.updatedAt
    this.#turns = turnLog(from)
    this.#prompt = promptLog(from)
  }

  get turns(): ReadonlyArray<Turn> {
    return this.#sealed ? freeze(this.#turns.array) : this.#turns.array
  }

  get prompt(): ReadonlyArray<Message> {
    return this.#sealed ? freeze(this.#prompt.array) : this.#prompt.array
  }

  static turns(state: RunState): Growing<Turn> {
    return state instanceof State ? state.#turns : Growing.of(state.turns)
  }

  static prompt(state: RunState): Growing<Message> {
    return state instanceof State ? state.#prompt : Growing.of(state.prompt)
  }

  /** Freezes a state and all of it that is looked at; its long lists wait until they are. */
  seal(): this {
    if (this.#sealed) return this
    this.#sealed = true
    for (const key of Object.keys(this)) if (!(key in lists)) freeze(Reflect.get(this, key))
    return Object.freeze(this.open())
  }

  /** Makes its long lists fields of its own. */
  open(): this {
    return Object.hasOwn(this, "turns") ? this : Object.defineProperties(this, lists)
  }

  setPrompt(prompt: Growing<Message>): void {
    this.#prompt = prompt
  }

  close(turn: Turn): void {
    this.#prompt = this.#prompt.append(messagesOf(turn))
    this.#turns = this.#turns.append([turn])
    this.currentTurn = undefined
  }
}

const lists = {
  turns: { ...Object.getOwnPropertyDescriptor(State.prototype, "turns"), enumerable: true },
  prompt: { ...Object.getOwnPropertyDescriptor(State.prototype, "prompt"), enumerable: true }
}

/**
 * A state for whoever is not the kernel: spread, or written as JSON, it has its turns and its conversation like any
 * other field. This takes a microsecond, and a run passes through a dozen states in a turn.
 */
export const open = (state: RunState): RunState => (state instanceof State ? state.open() : state)

/** The turns of a state, without copying them. */
export const turnLog = (state: RunState): Growing<Turn> => State.turns(state)

/** The conversation of a state, without copying it. */
export const promptLog = (state: RunState): Growing<Message> => State.prompt(state)

/** A state that cannot be changed, at any depth (DR-2). */
export const seal = (state: RunState): RunState => (state instanceof State ? state.seal() : freeze(state))

/** A state with another context: what hooks change between commits. */
export const withContext = (state: RunState, context: RunState["context"]): RunState => {
  const next = new State(state)
  next.context = context
  return next
}

type Draft = State

/** Moves a run forward by one record. The first record makes the state. */
export const advance = (state: RunState | undefined, record: RunRecord): RunState => {
  const next: Draft = new State(state ?? begin(record))
  const { delta } = record
  // What the hook of the phase before did comes first: it was there before this record's events.
  if (delta.context !== undefined) next.context = { ...next.context, ...delta.context }
  if (delta.settled === true) next.settledRevision = next.phaseRevision
  if (record.op === "resume") resume(next, delta)
  if (delta.launched !== undefined && next.currentTurn !== undefined) {
    next.currentTurn = launch(next.currentTurn, delta.launched)
  }
  if (delta.asked !== undefined) next.approvals = next.approvals.concat(delta.asked)
  if (delta.completing !== undefined) next.completing = delta.completing
  if (delta.deferred !== undefined) next.deferred = delta.deferred
  for (const event of record.events) apply(next, event, record)
  next.revision = record.revision
  next.updatedAt = record.createdAt
  return next
}

const apply = (next: Draft, event: PhaseEvent, record: RunRecord): void => {
  switch (event.type) {
    case "run_started":
      return enter(next, "run_started", record)
    case "turn_started":
      next.currentTurn = openTurn(event.turnId, turnLog(next).length + 1, event.at, event.steering)
      if (event.steering !== undefined) next.setPrompt(promptLog(next).append(event.steering))
      return enter(next, "turn_started", record)
    case "turn_prepared":
      prepare(next, event)
      return enter(next, "turn_prepared", record)
    case "model_started":
    case "model_restarted":
      if (next.currentTurn !== undefined) next.currentTurn = { ...next.currentTurn, attempt: event.attempt }
      return enter(next, "model_started", record)
    case "model_completed":
      answer(next, event)
      return enter(next, "model_completed", record)
    case "tool_calls_started":
      next.approvals = event.approvals ?? none
      if (event.calls !== undefined && next.currentTurn !== undefined) {
        next.currentTurn = { ...next.currentTurn, pending: event.calls, order: idsOf(event.calls) }
      }
      return enter(next, "tool_calls_started", record)
    case "tool_call_started":
      if (next.currentTurn !== undefined) next.currentTurn = review(next.currentTurn, event.toolCallId, event.change)
      return enter(next, "tool_call_started", record)
    case "tool_call_completed":
      complete(next, event)
      return enter(next, "tool_call_completed", record)
    case "tool_calls_completed":
      next.approvals = none
      return enter(next, "tool_calls_completed", record)
    case "turn_completed":
      // The turn becomes part of the conversation in one step: what it said, then what it was told.
      if (next.currentTurn !== undefined) next.close(next.currentTurn)
      return enter(next, "turn_completed", record)
    case "paused": {
      const { metadata, reason } = event
      next.settledRevision = next.phaseRevision
      next.deferred = undefined
      next.status = { type: "paused", phase: next.status.phase, reason, metadata, createdAt: record.createdAt }
      return
    }
    case "run_completed": {
      const { metadata, reason, source } = event
      next.completing = undefined
      next.deferred = undefined
      next.status = {
        type: "completed",
        phase: next.status.phase,
        source,
        ...(reason === undefined ? {} : { reason }),
        ...(metadata === undefined ? {} : { metadata }),
        createdAt: record.createdAt
      }
      return
    }
    case "run_failed":
      next.status = { type: "failed", phase: next.status.phase, error: event.error, createdAt: record.createdAt }
      return
  }
}

const none: ReadonlyArray<never> = []

const begin = (record: RunRecord): RunState => {
  const event = record.events[0]
  if (event?.type !== "run_started")
    throw new Error(`a journal begins with run_started, not ${event?.type ?? record.op}`)
  return {
    runId: event.runId,
    rootRunId: event.rootRunId,
    parentRunId: event.parentRunId,
    depth: event.depth,
    taskId: event.taskId,
    forkedFrom: event.forkedFrom,
    agent: event.agent,
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
    approvals: none,
    completing: undefined,
    deferred: undefined,
    usage: Usage.zero,
    costUsd: 0,
    unreportedTurns: 0,
    emptyReplies: 0,
    createdAt: record.createdAt,
    updatedAt: record.createdAt
  }
}

const enter = (next: Draft, phase: Phase, record: RunRecord): void => {
  next.status = running[phase]
  next.phaseRevision = record.revision
}

const status = (phase: Phase): { readonly type: "running"; readonly phase: Phase } => ({ type: "running", phase })

const running: { readonly [P in Phase]: { readonly type: "running"; readonly phase: Phase } } = {
  run_started: status("run_started"),
  turn_started: status("turn_started"),
  turn_prepared: status("turn_prepared"),
  model_started: status("model_started"),
  model_completed: status("model_completed"),
  tool_calls_started: status("tool_calls_started"),
  tool_call_started: status("tool_call_started"),
  tool_call_completed: status("tool_call_completed"),
  tool_calls_completed: status("tool_calls_completed"),
  turn_completed: status("turn_completed")
}

// ---------------------------------------------------------------- the turn

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

const prepare = (next: Draft, event: Extract<PhaseEvent, { type: "turn_prepared" }>): void => {
  const { args, dialect, model, prompt, tools } = event
  const before = promptLog(next)
  const { system } = next
  next.setPrompt(extend(before, prompt))
  if (prompt.system !== undefined) next.system = prompt.system
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

const extend = (prompt: Growing<Message>, delta: PromptDelta): Growing<Message> =>
  delta.base === prompt.length
    ? prompt.append(delta.append)
    : Growing.of(prompt.array.slice(0, delta.base).concat(delta.append))

const answer = (next: Draft, event: Extract<PhaseEvent, { type: "model_completed" }>): void => {
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
  else next.usage = Usage.add(next.usage, usage)
  if (event.costUsd !== undefined) next.costUsd += event.costUsd
  next.emptyReplies = outcome.type === "corrective" && outcome.reason === "empty" ? next.emptyReplies + 1 : 0
}

/** A turn that was answered is not prepared again. */
const decided = (turn: Turn): Turn => {
  if (turn.before === undefined) return turn
  const { before: _, ...rest } = turn
  return rest
}

const idsOf = (calls: ReadonlyArray<Call>): ReadonlyArray<string> =>
  calls.length === 0 ? none : calls.map((call) => call.toolCallId)

const review = (turn: Turn, toolCallId: string, change: ToolResponseChange | undefined): Turn => {
  if (change?.type === "skip") {
    return {
      ...turn,
      pending: turn.pending.filter((call) => call.toolCallId !== toolCallId),
      completed: turn.completed.concat(change.result)
    }
  }
  const at = indexOf(turn.pending, toolCallId)
  const call = change === undefined ? turn.pending[at] : change.call
  if (call === undefined || at === -1) return turn
  const pending = turn.pending.slice()
  pending[at] = { ...call, review: "accepted" }
  return { ...turn, pending }
}

/** The first call that nobody has looked at yet. */
export const unreviewed = (calls: ReadonlyArray<Call>): Call | undefined =>
  calls.find((call) => call.review !== "accepted")

const launch = (turn: Turn, ids: ReadonlyArray<string>): Turn => {
  let { pending } = turn
  const launched = ids.flatMap((id) => {
    const at = indexOf(pending, id)
    const call = pending[at]
    if (call === undefined) return []
    pending = without(pending, at)
    return [call]
  })
  return { ...turn, pending, inFlight: turn.inFlight.concat(launched) }
}

// A plan may have thousands of calls, and each is moved three times: lists are copied whole, not filtered or `with`ed.
const indexOf = (calls: ReadonlyArray<Call>, toolCallId: string): number => {
  const last = calls.length - 1
  // Tasks start in the order of their plan, or against it.
  if (calls[last]?.toolCallId === toolCallId) return last
  for (let at = 0; at < last; at++) if (calls[at]?.toolCallId === toolCallId) return at
  return -1
}

const without = (calls: ReadonlyArray<Call>, at: number): ReadonlyArray<Call> =>
  at === -1 ? calls : at === 0 ? calls.slice(1) : calls.slice(0, at).concat(calls.slice(at + 1))

const complete = (next: Draft, event: Extract<PhaseEvent, { type: "tool_call_completed" }>): void => {
  if (next.currentTurn === undefined) return
  next.currentTurn = {
    ...next.currentTurn,
    inFlight: without(next.currentTurn.inFlight, indexOf(next.currentTurn.inFlight, event.toolCallId)),
    completed: next.currentTurn.completed.concat(event.result)
  }
  if (event.spent === undefined) return
  next.usage = Usage.add(next.usage, event.spent.usage)
  next.costUsd += event.spent.costUsd
}

/** What a turn adds to the conversation: what was said, an answer to each call in it, and a word of the kernel. */
export const messagesOf = (turn: Turn): ReadonlyArray<Message> => {
  const { message, outcome } = turn
  if (message === undefined) return none
  const isCorrected = outcome?.type === "corrective"
  const told = isCorrected ? none : Calls.render(turn.dialect, Calls.inOrder(turn.order, turn.completed))
  const word = isCorrected
    ? outcome.corrective
    : told.length > 0 && outcome !== undefined && "note" in outcome
      ? outcome.note
      : undefined
  return [
    message,
    ...told,
    ...Calls.unanswered(message, told),
    ...(word === undefined ? none : [Calls.corrective(word)])
  ]
}

// ---------------------------------------------------------------- resume

const resume = (next: Draft, delta: Delta): void => {
  answerApprovals(next, delta)
  const { phase } = next.status
  const turn = next.currentTurn
  next.status = running[phase]
  if (turn === undefined) return
  if (delta.rewind === true) {
    if (turn.before !== undefined) {
      next.setPrompt(Growing.of(turn.before.prompt))
      next.system = turn.before.system
    }
    next.currentTurn = openTurn(turn.turnId, turn.turn, turn.startedAt, turn.steering)
    // Past turn_started its hook has settled; preparing again does not start the turn again.
    if (phase !== "turn_started") next.settledRevision = next.phaseRevision
    next.status = running.turn_started
    return
  }
  const retried = new Set(delta.retried)
  const resolved = delta.resolved ?? none
  if (retried.size + resolved.length === 0) return
  const known = new Set([...retried, ...resolved.map((result) => result.toolCallId)])
  next.currentTurn = {
    ...turn,
    replayed: [...new Set([...(turn.replayed ?? none), ...known])],
    // Calls go back in front, in the order of the batch: they were asked for before what still waits.
    pending: turn.inFlight.filter((call) => retried.has(call.toolCallId)).concat(turn.pending),
    inFlight: turn.inFlight.filter((call) => !known.has(call.toolCallId)),
    // A result whose hook has not run stays the last: that is how its hook finds it.
    completed:
      phase === "tool_call_completed" && next.settledRevision < next.phaseRevision
        ? turn.completed.slice(0, -1).concat(resolved, turn.completed.slice(-1))
        : turn.completed.concat(resolved)
  }
}

const answerApprovals = (next: Draft, delta: Delta): void => {
  const answers = delta.answers
  if (answers === undefined || answers.length === 0) return
  next.approvals = next.approvals.map((approval) => {
    const answer = answers.find((answer) => answer.toolCallId === approval.toolCallId)
    return answer === undefined || approval.answer !== undefined ? approval : { ...approval, answer }
  })
}
