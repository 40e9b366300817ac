/**
 * Detects a model that repeats itself.
 *
 * Repeating a call is no fault as long as its result changes. A circle is the same calls with the same results, over and
 * over, or the same useless reply after each corrective. Only the newest turns are compared.
 */

import type { Call } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import * as InstructionBuilder from "../../InstructionBuilder.ts"
import type { RunState, Turn } from "../../RunState.ts"
import { turnLog } from "../state/state.ts"
import type { Intent } from "./meaning.ts"

/** A reply that closes a circle, and what it means then. */
export interface Circle {
  readonly meaning: Intent
  readonly repeats: number
  /** The model was corrected before and did not stop. */
  readonly isStop: boolean
}

/** How many calls or groups of calls may make one circle. */
const longest = 3

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
