/**
 * The state of a run as a class, and the result computed from it. Copies share its long lists, so a copy is cheap even
 * after 1,000 turns.
 *
 * An active run mutates its own state. All other code gets a copy: an open one that can be spread, or one that is
 * frozen at every depth.
 */

import * as Calls from "../../Call.ts"
import type { Call } from "../../Call.ts"
import type { Scope } from "../../Caller.ts"
import { type Message, text as textOf } from "../../Message.ts"
import type { CallMade, Phase, Question, RunResult, RunState, Turn } from "../../RunModel.ts"
import type { PhaseEvent } from "../../RunRecord.ts"
import * as Usage from "../../Usage.ts"
import { Growing } from "../../kit/lists.ts"
import { freeze } from "../../kit/snapshot.ts"

/** A state whose copies share its long lists. */
export class State implements RunState {
  readonly runId: string
  readonly rootRunId: string
  readonly parentRunId: string | undefined
  readonly depth: number
  readonly taskId: string | undefined
  readonly caller: RunState["caller"]
  readonly trace: string | undefined
  readonly forkedFrom: RunState["forkedFrom"]
  readonly agent: string
  readonly version: RunState["version"]
  readonly input: ReadonlyArray<Message>
  readonly history: number
  readonly createdAt: number
  handoff: RunState["handoff"]
  offered: RunState["offered"]
  revision: number
  status: RunState["status"]
  context: RunState["context"]
  currentTurn: Turn | undefined
  system: string | null
  phaseRevision: number
  settledRevision: number
  questions: RunState["questions"]
  background: RunState["background"]
  completing: RunState["completing"]
  deferred: RunState["deferred"]
  usage: Usage.Usage
  costUsd: number | undefined
  unreportedTurns: number
  emptyReplies: number
  outputRefused: RunState["outputRefused"]
  resumedAfter: RunState["resumedAfter"]
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
    this.caller = from.caller
    this.trace = from.trace
    this.forkedFrom = from.forkedFrom
    this.agent = from.agent
    this.version = from.version
    this.input = from.input
    this.history = from.history
    this.createdAt = from.createdAt
    this.handoff = from.handoff
    this.offered = from.offered
    this.revision = from.revision
    this.status = from.status
    this.context = from.context
    this.currentTurn = from.currentTurn
    this.system = from.system
    this.phaseRevision = from.phaseRevision
    this.settledRevision = from.settledRevision
    this.questions = from.questions
    this.background = from.background
    this.completing = from.completing
    this.deferred = from.deferred
    this.usage = from.usage
    this.costUsd = from.costUsd
    this.unreportedTurns = from.unreportedTurns
    this.emptyReplies = from.emptyReplies
    this.outputRefused = from.outputRefused
    this.resumedAfter = from.resumedAfter
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

  /** Freezes the state at every depth. Its long lists are frozen on first access. */
  seal(): this {
    if (this.#sealed) return this
    this.#sealed = true
    for (const key of Object.keys(this)) if (!(key in lists)) freeze(Reflect.get(this, key))
    return Object.freeze(this.open())
  }

  /** Turns the long lists into own properties. */
  open(): this {
    return Object.hasOwn(this, "turns") ? this : Object.defineProperties(this, lists)
  }

  setPrompt(prompt: Growing<Message>): void {
    this.#prompt = prompt
  }

  /** Adds the usage of a child run or of building a prompt. */
  count(spent: Usage.Expense | undefined): void {
    if (spent === undefined) return
    this.usage = Usage.add(this.usage, spent.usage)
    this.costUsd = Usage.addCost(this.costUsd, spent.costUsd)
  }

  close(turn: Turn): void {
    this.#prompt = this.#prompt.append(replyMessages(turn))
    this.#turns = this.#turns.append([turn])
    this.currentTurn = undefined
  }
}

/** Turns the long lists of a state into own properties, so that spreading and JSON include them. */
export const open = (state: RunState): RunState => (state instanceof State ? state.open() : state)

/** Returns the turns of a state without copying them. */
export const turnLog = (state: RunState): Growing<Turn> => State.turns(state)

/** Returns the conversation of a state without copying it. */
export const promptLog = (state: RunState): Growing<Message> => State.prompt(state)

/** Returns a copy of a state, frozen at every depth. */
export const sealed = (state: RunState): RunState => new State(state).seal()

/** Returns the running status of a phase, a value shared by all runs. */
export const running = (phase: Phase): RunState["status"] => (statuses[phase] ??= { type: "running", phase })

/** Returns the usage of a run as its parent counts it. */
export const spentBy = ({ costUsd, turns, usage }: RunState): NonNullable<Calls.CallResult["spent"]> => ({
  ...Usage.expense(usage, costUsd),
  turns: turns.length
})

/** Returns the current step for events. Turns count from 1, steps from 0. */
export const stepOf = (state: RunState): number =>
  state.currentTurn === undefined ? Math.max(0, turnLog(state).length - 1) : state.currentTurn.turn - 1

/** Returns a globally unique key of a call. Ids from a vendor may repeat; ours contain the run and the turn. */
export const keyOf = ({ currentTurn, runId }: RunState, { callId }: Pick<Call, "callId">): string => {
  const turnId = currentTurn?.turnId ?? runId
  return callId.startsWith(`${turnId}.`) ? callId : `${turnId}/${callId}`
}

/** Returns the messages that a turn adds to the conversation: steering, the reply, then results or a corrective. */
export const messagesOf = (turn: Turn): ReadonlyArray<Message> =>
  turn.steering === undefined ? replyMessages(turn) : turn.steering.concat(replyMessages(turn))

/**
 * Returns the messages that the reply of a turn adds to the conversation: the reply, a result for each of its calls, and
 * the kernel's note.
 */
export const replyMessages = (turn: Turn): ReadonlyArray<Message> => {
  const { message, outcome } = turn
  if (message === undefined) return none
  const isCorrected = outcome?.type === "corrective"
  const results = isCorrected ? none : Calls.render(turn.dialect, Calls.inOrder(turn.order, turn.completed))
  const word = isCorrected
    ? outcome.corrective
    : results.length > 0 && outcome !== undefined && "note" in outcome
      ? outcome.note
      : undefined
  const messages = [message].concat(results, Calls.unanswered(message, results))
  if (word !== undefined) messages.push(Calls.corrective(word))
  return messages
}

/** Returns the first call that has not been accepted. */
export const unreviewed = (calls: ReadonlyArray<Call>): Call | undefined =>
  calls.find((call) => call.review !== "accepted")

/** Returns the questions without an answer. */
export const unanswered = (questions: ReadonlyArray<Question>): ReadonlyArray<Question> =>
  questions.filter((question) => question.answer === undefined)

/** Returns the answer of a run: the final block or prose of its last turn. */
export const answer = (state: RunState): string | undefined => {
  const outcome = turnLog(state).last()?.outcome
  return outcome?.type === "final" || outcome?.type === "prose" ? outcome.text : undefined
}

/** Returns the newest turns, at most `limit`, whose replies ended too early one after the other. */
export const cutTurns = (state: RunState, limit: number): ReadonlyArray<Turn> => {
  const recent = turnLog(state).recent(limit)
  const whole = recent.findLastIndex((turn) => !isCutShort(turn))
  return recent.slice(whole + 1)
}

const isCutShort = ({ finishReason, outcome }: Turn): boolean =>
  outcome?.type === "corrective" && outcome.reason === "cut" && finishReason !== "stop" && finishReason !== "tool-calls"

/** Returns the text of the paused replies that the current turn continues. A message of the host begins anew. */
export const pausedText = (state: RunState): string => {
  const turns = turnLog(state)
  if (turns.last()?.outcome?.type !== "pause") return ""
  let next = state.currentTurn
  let from = turns.length
  while (next?.steering === undefined && turns.array[from - 1]?.outcome?.type === "pause") next = turns.array[--from]
  return turns.array
    .slice(from)
    .flatMap(({ message }) => message?.content ?? [])
    .map((part) => (part.type === "text" ? part.text : ""))
    .join("")
}

/** Returns the text of the newest reply with text, among the last ten. Empty if there is none. */
export const lastText = (state: RunState): string =>
  turnLog(state)
    .recent(10)
    .map(({ message }) => (message === undefined ? "" : textOf(message)))
    .findLast((text) => text.trim() !== "") ?? ""

/** Returns the correction that the last reply got, for an error. Empty if that reply was usable. */
export const lastCorrective = (state: RunState): { readonly corrective?: string } => {
  const outcome = (state.currentTurn ?? turnLog(state).last())?.outcome
  return outcome?.type === "corrective" ? { corrective: outcome.corrective } : {}
}

/** Returns the result of a completed run, with its decoded output. */
export const result = <Output>(state: RunState, output: Output): RunResult<Output> => {
  const turns = state.currentTurn === undefined ? state.turns : state.turns.concat(state.currentTurn)
  const last = state.currentTurn ?? turnLog(state).last()
  return {
    runId: state.runId,
    status: "completed",
    agent: state.handoff?.agent ?? state.agent,
    output,
    text: answer(state) ?? "",
    usage: state.usage,
    costUsd: state.costUsd,
    turns: turnLog(state).length,
    perTurnUsage: turns.map((turn) => turn.usage),
    unreportedTurns: state.unreportedTurns,
    finishReason: last?.finishReason ?? "unknown",
    messages: state.input.slice(state.history).concat(turns.flatMap(messagesOf)),
    finalMessage: last?.message,
    calls: turns.flatMap(callsMade)
  }
}

/** Returns whether a run is at rest after an event: paused, completed, failed or cancelled. */
export const isRest = ({ type }: { readonly type: string }): boolean => rests.has(type)

const lists = {
  turns: { ...Object.getOwnPropertyDescriptor(State.prototype, "turns"), enumerable: true },
  prompt: { ...Object.getOwnPropertyDescriptor(State.prototype, "prompt"), enumerable: true }
}

const none: ReadonlyArray<never> = []

const statuses: { [P in Phase]?: RunState["status"] } = {}

const callsMade = (turn: Turn): ReadonlyArray<CallMade> =>
  Calls.inOrder(turn.order, turn.completed).map((result) => ({
    callId: result.callId,
    name: result.name,
    input: result.input,
    isError: result.error !== undefined,
    ...(result.error === undefined ? {} : { error: result.error.message }),
    durationMs: result.durationMs,
    turn: turn.turn,
    recovered: turn.recovered?.includes(result.callId) ?? false
  }))

const rests: ReadonlySet<string> = new Set<PhaseEvent["type"]>([
  "paused",
  "run_completed",
  "run_failed",
  "run_cancelled"
])

/** Returns the name of the agent that a run was handed over to, or else started with. */
export const agentName = ({ agent, handoff }: Pick<RunState, "agent" | "handoff">): string => handoff?.agent ?? agent

/** Returns the facts about a run by which policies, middleware and filters decide. */
export const callerScope = (state: RunState, agent: string = agentName(state)): Scope => {
  const { caller, context, depth, rootRunId, runId } = state
  return { runId, rootRunId, agent, depth, context, ...(caller === undefined ? {} : { caller }) }
}
