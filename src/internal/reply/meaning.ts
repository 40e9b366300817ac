/**
 * The meaning of a reply: the rules by which it is read, the value that it becomes, and what it means to repeat itself.
 *
 * Repeating a call is no fault as long as its result changes. A circle is the same calls with the same results, over and
 * over, or the same useless reply after each corrective. Only the newest turns are compared.
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
import type { FinishReason } from "../../StreamPart.ts"
import * as Bounds from "../base/bounds.ts"
import type { JsonObject } from "../base/json.ts"
import { clip } from "../base/text.ts"
import { readOutput } from "../run/conclude.ts"
import { type Run, openTurn } from "../run/run.ts"
import { turnLog } from "../state/state.ts"
import { agentNames, canAct, isProtocol, isSearch, parametersOf, visibleProtocols } from "./permissions.ts"

/** Everything the meaning of a reply depends on besides the reply. */
export interface ReplyRules {
  readonly turnId: string
  readonly depth: number
  readonly native: boolean
  /** Is prose without blocks a fault? */
  readonly correctsProse: boolean
  /** Is an empty reply an answer? */
  readonly takesEmpty: boolean
  readonly limits: Limits
  readonly isProtocol: (type: string) => boolean
  /** The kind of a call by its name, where it is no protocol. */
  readonly kindOf: (name: string) => CallKind
  /** The agents that tasks of a plan may name. */
  readonly agents: ReadonlyArray<string>
  /** Did an earlier call of the run have this id? */
  readonly isUsed: (id: string) => boolean
  /** Reads the text of a command block as the parameters that its skill declares. */
  readonly parameters: (skill: string, text: string) => JsonObject
  /** Decodes an answer by the agent's output schema. */
  readonly readOutput: (text: string) => Result.Result<unknown, string>
}

/** The rules of the open turn. */
export const replyRules = (run: Run): Effect.Effect<ReplyRules> =>
  run.agent.skills === undefined && run.callables.size === 0
    ? Effect.map(visibleProtocols(run), (protocols) => new RunRules(run, canAct(run, protocols)))
    : Effect.succeed(new RunRules(run, true))

/** An event about a reply, in the order in which they are emitted. */
export type Fact =
  | { readonly type: "blocks_parsed"; readonly blocks: ReadonlyArray<Block> }
  | { readonly type: "plan_rejected"; readonly reason: string; readonly raw: string }
  | { readonly type: "plan"; readonly content: string }
  | { readonly type: "json"; readonly content: string }
  | { readonly type: "blocks_ignored"; readonly kinds: ReadonlyArray<string>; readonly reason: string }
  | { readonly type: "informational_only"; readonly kinds: ReadonlyArray<string> }
  | { readonly type: "no_blocks_stall"; readonly prosePreview: string; readonly kinds: ReadonlyArray<string> }
  | { readonly type: "reply_cut"; readonly finishReason: FinishReason }
  | { readonly type: "loop_detected"; readonly repeats: number; readonly names: ReadonlyArray<string> }
  | { readonly type: "output_rejected"; readonly detail: string }

/** What a reply asks for. */
export interface Meaning {
  readonly outcome: Outcome
  readonly calls: ReadonlyArray<Call>
  readonly facts: ReadonlyArray<Fact>
  /** The answer as the agent's output schema decoded it. */
  readonly output?: unknown
}

/** A meaning, and the message that the conversation keeps of the reply. */
export interface Intent extends Meaning {
  readonly message: Message
}

/** A reply that asks for calls. */
export const calling = (
  outcome: Outcome,
  calls: ReadonlyArray<Call>,
  limits: Limits,
  facts: ReadonlyArray<Fact>
): Meaning => ({ outcome, calls: bounded(oneTransfer(calls), limits), facts })

/** An answer, or a corrective when it does not fit the agent's output schema. */
export const finished = (
  text: string,
  type: "final" | "prose",
  rules: ReplyRules,
  facts: ReadonlyArray<Fact>
): Meaning => {
  const output = rules.readOutput(text)
  if (Result.isSuccess(output)) return { outcome: { type, text }, calls: [], facts, output: output.success }
  const rejected: Fact = { type: "output_rejected", detail: output.failure }
  return corrected("output", InstructionBuilder.output(output.failure), [...facts, rejected])
}

/** A reply that gets a corrective instead of results. */
export const corrected = (
  reason: Extract<Outcome, { readonly type: "corrective" }>["reason"],
  corrective: string,
  facts: ReadonlyArray<Fact>
): Meaning => ({ outcome: { type: "corrective", reason, corrective }, calls: [], facts })

/** Bounds the text for the model, which may quote what the model wrote. */
export const shortened = (outcome: Outcome, { limits: { resultBytes } }: ReplyRules): Outcome => {
  if (outcome.type === "corrective") return { ...outcome, corrective: clip(outcome.corrective, resultBytes) }
  return "note" in outcome && outcome.note !== undefined
    ? { ...outcome, note: clip(outcome.note, resultBytes) }
    : outcome
}

/** A reply that closes a circle, and what it means then. */
export interface Circle {
  readonly meaning: Intent
  readonly repeats: number
  /** The model was corrected before and did not stop. */
  readonly isStop: boolean
}

/** Returns the circle that a reply closes. `limit` is how often it may go round. */
export const repetition = (state: RunState, meaning: Intent, text: string, limit: number): Circle | undefined => {
  const recent = turnLog(state).recent(limit * longest + limit)
  const told = trailing(recent)
  const before = told === 0 ? recent : recent.slice(0, -told)
  if (meaning.outcome.type === "corrective") {
    // Empty replies have a limit of their own.
    if (text === "") return undefined
    const same = before.slice(-limit)
    return same.length === limit && same.every((turn) => isSameReply(turn, text))
      ? { meaning, repeats: limit + 1, isStop: true }
      : undefined
  }
  if (meaning.calls.length === 0) return undefined
  const asked = askedOf(meaning.calls)
  for (let period = 1; period <= longest; period++) {
    const rounds = before.slice(-limit * period)
    if (rounds.length < limit * period || !goesRound(rounds, period)) continue
    // Once corrected, any step of the circle counts, because the refused step is missing from it.
    const next = told === 0 ? rounds.slice(0, 1) : rounds.slice(0, period)
    if (next.some((turn) => askedOf(inOrder(turn)) === asked)) return closed(meaning, limit + told, told > 0)
  }
  return undefined
}

class RunRules implements ReplyRules {
  readonly turnId: string
  readonly depth: number
  readonly native: boolean
  readonly takesEmpty: boolean
  readonly correctsProse: boolean
  readonly limits: Limits
  readonly #run: Run

  constructor(run: Run, acts: boolean) {
    const { agent, limits, state } = run
    const { dialect, turnId } = openTurn(run)
    this.#run = run
    this.turnId = turnId
    this.depth = state.depth
    this.native = dialect === "tools"
    // An agent that cannot act answers with whatever it says, unless the agent asks for a correction.
    this.takesEmpty = dialect === "blocks" && agent.prose === "auto" && !acts
    this.correctsProse = agent.prose === "corrective" || (agent.prose === "auto" && acts)
    this.limits = limits
  }

  get agents(): ReadonlyArray<string> {
    return agentNames(this.#run)
  }

  isProtocol(type: string): boolean {
    return isProtocol(this.#run, type)
  }

  kindOf(name: string): CallKind {
    const isBuiltin = name.startsWith("/") || (this.native && isSearch(this.#run, name))
    return isBuiltin ? "builtin" : (this.#run.callables.get(name)?.kind ?? "skill")
  }

  isUsed(id: string): boolean {
    return this.#run.isUsed(id, turnLog(this.#run.state))
  }

  parameters(skill: string, text: string): JsonObject {
    return parametersOf(this.#run, skill, text)
  }

  readOutput(text: string): Result.Result<unknown, string> {
    return readOutput(this.#run.agent, text)
  }
}

/** A conversation is handed over once: later transfers of a reply get an error instead of running. */
const oneTransfer = (calls: ReadonlyArray<Call>): ReadonlyArray<Call> => {
  const first = calls.find(({ kind }) => kind === "handoff")
  if (first === undefined) return calls
  const fault = Calls.error("AlreadyHandedOver", `The same reply hands the conversation over by '${first.name}'.`)
  return calls.map((call) => (call.kind === "handoff" && call !== first ? { ...call, fault } : call))
}

/** Calls beyond the limit get an error instead of running; those far beyond it are dropped. */
const bounded = (calls: ReadonlyArray<Call>, { blocksPerReply: limit }: Limits): ReadonlyArray<Call> => {
  if (calls.length <= limit) return calls
  const fault = Calls.error("LimitExceeded", `Only ${limit} calls of one reply are run.`)
  return calls.slice(0, limit + Bounds.blocksBeyond).map((call, index) => (index < limit ? call : { ...call, fault }))
}

/** How many calls or groups of calls may make one circle. */
const longest = 3

const closed = (meaning: Intent, repeats: number, isStop: boolean): Circle => {
  const names = [...new Set(meaning.calls.map((call) => call.name ?? ""))]
  return {
    repeats: repeats + 1,
    isStop,
    meaning: {
      message: meaning.message,
      outcome: { type: "corrective", reason: "loop", corrective: InstructionBuilder.loop(repeats) },
      calls: [],
      facts: [...meaning.facts, { type: "loop_detected", repeats: repeats + 1, names }]
    }
  }
}

/** How many of the last turns corrected the model. */
const trailing = (turns: ReadonlyArray<Turn>): number => {
  let count = 0
  while (isTold(turns.at(-1 - count))) count++
  return count
}

const isTold = (turn: Turn | undefined): boolean =>
  turn?.outcome?.type === "corrective" && turn.outcome.reason === "loop"

const isSameReply = (turn: Turn, text: string): boolean =>
  turn.outcome?.type === "corrective" &&
  (turn.message?.content.map((part) => (part.type === "text" ? part.text : "")).join("") ?? "") === text

const goesRound = (turns: ReadonlyArray<Turn>, period: number): boolean => {
  const seen: Array<string> = []
  for (const turn of turns) {
    if (turn.completed.length === 0) return false
    const results = inOrder(turn)
    const done = `${askedOf(results)}\n${JSON.stringify(results.map(Calls.textOf))}`
    const before = seen[seen.length - period]
    if (before !== undefined && before !== done) return false
    seen.push(done)
  }
  return true
}

const inOrder = (turn: Turn) => Calls.inOrder(turn.order, turn.completed)

const askedOf = (calls: ReadonlyArray<Pick<Call, "name" | "input">>): string =>
  JSON.stringify(calls.map(({ input, name }) => [name, input]))
