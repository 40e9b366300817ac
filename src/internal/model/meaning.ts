/**
 * The meaning of a reply: the rules by which it is read, its result as a value, and the detection of loops.
 *
 * A repeated call is fine as long as its result changes. A loop is a repeated sequence of the same calls with the same
 * results, or the same faulty reply after each corrective. Only the newest turns are compared.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Block } from "../../Block.ts"
import * as Calls from "../../Call.ts"
import type { Call, CallKind } from "../../Call.ts"
import * as InstructionBuilder from "../../InstructionBuilder.ts"
import type { Limits } from "../../Limits.ts"
import type { Message } from "../../Message.ts"
import type { Outcome, RunState, Turn } from "../../RunState.ts"
import * as Bounds from "../../kit/bounds.ts"
import type { JsonObject } from "../../kit/json.ts"
import { clip } from "../../kit/text.ts"
import { type Answer, readAnswer } from "../run/readAnswer.ts"
import { type Run, currentTurn } from "../run/run.ts"
import { pausedText, turnLog } from "../state/state.ts"
import {
  agentNames,
  canAct,
  isCallList,
  isProtocol,
  isSearch,
  mayBackground,
  parametersOf,
  visibleProtocols
} from "./permissions.ts"

/** The facts besides the reply itself that decide its meaning. */
export interface ReplyRules {
  readonly turnId: string
  readonly depth: number
  readonly native: boolean
  /** Whether prose without blocks is a fault. */
  readonly correctsProse: boolean
  /** Whether an empty reply is an answer. */
  readonly takesEmpty: boolean
  /** The text of the paused replies that this one continues. */
  readonly continues: string
  readonly limits: Limits
  readonly isProtocol: (type: string) => boolean
  /** Returns the kind of a call that is not a protocol, by its name. */
  readonly kindOf: (name: string) => CallKind
  /** Returns whether the target of this name may be called in the background. */
  readonly mayBackground: (name: string) => boolean
  /** The agents that tasks of a plan may name. */
  readonly agents: ReadonlyArray<string>
  /** Returns whether an earlier call of the run had this id. */
  readonly isUsed: (id: string) => boolean
  /** Reads the text of a command block as the parameters that its skill declares. */
  readonly parameters: (skill: string, text: string) => JsonObject
  /** Reads an answer by the agent's output schema. */
  readonly readAnswer: (text: string) => Result.Result<Answer, string>
}

/** Returns the rules of the open turn. */
export const replyRules = (run: Run): Effect.Effect<ReplyRules> =>
  run.agent.skills === undefined && run.callables.size === 0
    ? Effect.map(visibleProtocols(run), (protocols) => new RunRules(run, canAct(run, protocols)))
    : Effect.succeed(new RunRules(run, true))

/** An event about a reply. */
export type Fact =
  | { readonly type: "blocks_parsed"; readonly blocks: ReadonlyArray<Block>; readonly ignored?: Ignored }
  | { readonly type: "plan_rejected"; readonly reason: string; readonly raw: string }
  | { readonly type: "plan"; readonly content: string }
  | { readonly type: "json"; readonly content: string }
  | { readonly type: "informational_only"; readonly kinds: ReadonlyArray<string> }
  | { readonly type: "no_blocks_stall"; readonly prosePreview: string; readonly kinds: ReadonlyArray<string> }

/** Blocks of a reply that have no effect. */
export interface Ignored {
  readonly blocks: ReadonlyArray<Block>
  readonly reason: string
}

/** The outcome of a reply, its calls and the events about it. */
export interface Meaning {
  readonly outcome: Outcome
  readonly calls: ReadonlyArray<Call>
  readonly facts: ReadonlyArray<Fact>
  readonly ignored?: Ignored
  /** The answer, decoded by the agent's output schema. */
  readonly output?: unknown
}

/** A meaning, and the message that represents the reply in the conversation. */
export interface Intent extends Meaning {
  readonly message: Message
}

/** Returns the meaning of a reply with calls. */
export const calling = (
  outcome: Outcome,
  calls: ReadonlyArray<Call>,
  limits: Limits,
  facts: ReadonlyArray<Fact>
): Meaning => ({ outcome, calls: bounded(oneTransfer(calls), limits), facts })

/** Returns the meaning of an answer: a corrective if it does not fit the agent's output schema. */
export const finished = (
  text: string,
  type: "final" | "prose",
  rules: ReplyRules,
  facts: ReadonlyArray<Fact>
): Meaning => {
  const answer = rules.readAnswer(text)
  return Result.isSuccess(answer)
    ? { outcome: { type, text: answer.success.text }, calls: [], facts, output: answer.success.output }
    : corrected("output", InstructionBuilder.output(answer.failure), facts)
}

/** Returns the meaning of a reply that gets a corrective instead of results. */
export const corrected = (
  reason: Extract<Outcome, { readonly type: "corrective" }>["reason"],
  corrective: string,
  facts: ReadonlyArray<Fact>
): Meaning => ({ outcome: { type: "corrective", reason, corrective }, calls: [], facts })

/** Clips the text for the model, which may quote a long reply. */
export const shortened = (outcome: Outcome, { limits: { resultBytes } }: ReplyRules): Outcome => {
  if (outcome.type === "corrective") return { ...outcome, corrective: clip(outcome.corrective, resultBytes) }
  return "note" in outcome && outcome.note !== undefined
    ? { ...outcome, note: clip(outcome.note, resultBytes) }
    : outcome
}

/** A loop that a reply completes, and the meaning of that reply. */
interface Circle {
  readonly meaning: Intent
  readonly repeats: number
  /** Whether to stop the run, because the model ignored an earlier corrective. */
  readonly isStop: boolean
}

/** Returns the loop that a reply completes. `limit` is the number of allowed rounds. */
export const repetition = (state: RunState, meaning: Intent, text: string, limit: number): Circle | undefined => {
  const recent = turnLog(state).recent(limit * longest + limit)
  const correctives = trailingCorrectives(recent)
  const before = correctives === 0 ? recent : recent.slice(0, -correctives)
  if (meaning.outcome.type === "corrective") {
    // Empty replies have their own limit.
    if (text === "") return undefined
    const same = before.slice(-limit)
    return same.length === limit && same.every((turn) => isSameReply(turn, text))
      ? { meaning, repeats: limit + 1, isStop: true }
      : undefined
  }
  if (meaning.calls.length === 0) return undefined
  const signature = signatureOf(meaning.calls)
  for (let period = 1; period <= longest; period++) {
    const rounds = before.slice(-limit * period)
    if (rounds.length < limit * period || !isRepeating(rounds, period)) continue
    // After a corrective, any step of the loop counts, because the corrected step is not among the rounds.
    const next = correctives === 0 ? rounds.slice(0, 1) : rounds.slice(0, period)
    if (next.some((turn) => signatureOf(inOrder(turn)) === signature))
      return closed(meaning, limit + correctives, correctives > 0)
  }
  return undefined
}

class RunRules implements ReplyRules {
  readonly turnId: string
  readonly depth: number
  readonly native: boolean
  readonly takesEmpty: boolean
  readonly correctsProse: boolean
  readonly continues: string
  readonly limits: Limits
  readonly #run: Run

  constructor(run: Run, acts: boolean) {
    const { agent, limits, state } = run
    const { dialect, turnId } = currentTurn(run)
    this.#run = run
    this.turnId = turnId
    this.depth = state.depth
    this.native = dialect === "tools"
    // Any prose of an agent that cannot act is an answer, unless the agent asks for correctives.
    this.takesEmpty = dialect === "blocks" && agent.prose === "auto" && !acts
    this.correctsProse = agent.prose === "corrective" || (agent.prose === "auto" && acts)
    this.continues = pausedText(state)
    this.limits = limits
  }

  get agents(): ReadonlyArray<string> {
    return agentNames(this.#run)
  }

  isProtocol(type: string): boolean {
    return isProtocol(this.#run, type)
  }

  kindOf(name: string): CallKind {
    const isBuiltin =
      name.startsWith("/") || (this.native && (isSearch(this.#run, name) || isCallList(this.#run, name)))
    return isBuiltin ? "builtin" : (this.#run.callables.get(name)?.kind ?? "skill")
  }

  mayBackground(name: string): boolean {
    return mayBackground(this.#run, name)
  }

  isUsed(id: string): boolean {
    return this.#run.isUsed(id, turnLog(this.#run.state))
  }

  parameters(skill: string, text: string): JsonObject {
    return parametersOf(this.#run, skill, text)
  }

  readAnswer(text: string): Result.Result<Answer, string> {
    return readAnswer(this.#run.agent, text)
  }
}

/** Lets the first transfer of a reply run and gives later ones an error. */
const oneTransfer = (calls: ReadonlyArray<Call>): ReadonlyArray<Call> => {
  const first = calls.find(({ kind }) => kind === "handoff")
  if (first === undefined) return calls
  const fault = Calls.error("AlreadyHandedOver", `The same reply hands the conversation over by '${first.name}'.`)
  return calls.map((call) => (call.kind === "handoff" && call !== first ? { ...call, fault } : call))
}

/** Gives calls beyond the limit an error, and drops those far beyond it. */
const bounded = (calls: ReadonlyArray<Call>, { blocksPerReply: limit }: Limits): ReadonlyArray<Call> => {
  if (calls.length <= limit) return calls
  const fault = Calls.error("LimitExceeded", `Only ${limit} calls of one reply are run.`)
  return calls.slice(0, limit + Bounds.blocksBeyond).map((call, index) => (index < limit ? call : { ...call, fault }))
}

/** The largest number of turns in one round of a loop. */
const longest = 3

const closed = (meaning: Intent, rounds: number, isStop: boolean): Circle => {
  const { calls, facts, message } = meaning
  const loop = { names: [...new Set(calls.map(({ name }) => name ?? ""))], repeats: rounds + 1 }
  const outcome: Outcome = { type: "corrective", reason: "loop", corrective: InstructionBuilder.loop(rounds), loop }
  return { repeats: loop.repeats, isStop, meaning: { message, outcome, calls: [], facts } }
}

/** Returns how many of the last turns were correctives for a loop. */
const trailingCorrectives = (turns: ReadonlyArray<Turn>): number => {
  let count = 0
  while (isLoopCorrective(turns.at(-1 - count))) count++
  return count
}

const isLoopCorrective = (turn: Turn | undefined): boolean =>
  turn?.outcome?.type === "corrective" && turn.outcome.reason === "loop"

const isSameReply = (turn: Turn, text: string): boolean =>
  turn.outcome?.type === "corrective" &&
  (turn.message?.content.map((part) => (part.type === "text" ? part.text : "")).join("") ?? "") === text

const isRepeating = (turns: ReadonlyArray<Turn>, period: number): boolean => {
  const seen: Array<string> = []
  for (const turn of turns) {
    if (turn.completed.length === 0) return false
    const results = inOrder(turn)
    const done = `${signatureOf(results)}\n${JSON.stringify(results.map(Calls.textOf))}`
    const before = seen[seen.length - period]
    if (before !== undefined && before !== done) return false
    seen.push(done)
  }
  return true
}

const inOrder = (turn: Turn) => Calls.inOrder(turn.order, turn.completed)

const signatureOf = (calls: ReadonlyArray<Pick<Call, "name" | "input">>): string =>
  JSON.stringify(calls.map(({ input, name }) => [name, input]))
