/**
 * Steps that only record and involve no hook, policy, person, store or model. They are taken synchronously, without an
 * Effect.
 */

import { turnLog } from "../state/state.ts"
import { unreviewed } from "../state/turnFold.ts"
import { deferred } from "../run/askHooks.ts"
import { record } from "../run/commit.ts"
import { emit } from "../run/publish.ts"
import { handOver } from "./handOver.ts"
import { accept } from "../call/review.ts"
import { type Run, openTurn } from "../run/run.ts"
import { isSteered } from "./steering.ts"

/** Takes the next step if it only records, and returns whether it did. Synchronous. */
export const takeAtOnce = (run: Run): boolean => {
  const { hooks, state } = run
  switch (state.status.phase) {
    case "model_completed":
      if (hooks.onModelCompleted !== undefined) return false
      return openTurn(run).pending.length > 0 ? openCalls(run) : closeTurn(run)
    case "tool_calls_started":
    case "tool_call_started":
      return acceptCall(run)
    case "tool_call_completed":
      return hooks.onToolCallCompleted === undefined && acceptCall(run)
    case "tool_calls_completed":
      return hooks.onToolCallsCompleted === undefined && closeTurn(run)
    case "turn_completed":
      return hooks.onTurnCompleted === undefined && !isDone(run) && state.emptyReplies === 0 && openNextTurn(run)
    default:
      return false
  }
}

/** Opens the calls of the reply unless a hook or a policy reviews them, and returns whether it did. Synchronous. */
export const openCalls = (run: Run): boolean => {
  if (run.hooks.onToolCallsStarted !== undefined || run.policy !== undefined) return false
  record(run, { type: "tool_calls_started" })
  return true
}

/**
 * Accepts the next call or closes the calls, and returns whether it did. False if a hook or a person must be asked, or
 * a call must be launched. Synchronous.
 */
export const acceptCall = (run: Run): boolean => {
  const { questions } = run.state
  if (deferred(run) !== undefined || run.hooks.onToolCallStarted !== undefined || questions.length > 0) return false
  const { pending } = openTurn(run)
  const next = unreviewed(pending)
  if (next !== undefined) accept(run, next)
  else if (pending.length === 0) record(run, { type: "tool_calls_completed" })
  else return false
  return true
}

/** Ends the turn and reports its answer. Synchronous. */
export const closeTurn = (run: Run): true => {
  const { outcome, turnId } = openTurn(run)
  record(run, { type: "turn_completed", turnId })
  if (outcome?.type === "final") emit(run, { type: "final", text: outcome.text })
  if (outcome?.type === "final" || outcome?.type === "prose") emit(run, { type: "result", text: outcome.text })
  return true
}

/** Returns whether the last turn made no calls and got no corrective. */
export const isDone = ({ state }: Run): boolean => {
  const turn = turnLog(state).last()
  return turn !== undefined && turn.completed.length === 0 && turn.outcome?.type !== "corrective"
}

/**
 * Opens the next turn and returns whether it did. False at the limit of turns, or if messages wait for the turn.
 * Synchronous.
 */
export const openNextTurn = (run: Run): boolean => {
  const turn = turnLog(run.state).length + 1
  if (turn > run.maxSteps) return false
  // The other agent's loop opens the turn.
  if (handOver(run)) return true
  if (isSteered(run)) return false
  record(run, { type: "turn_started", turnId: turnIdOf(run, turn) })
  return true
}

export const turnIdOf = (run: Run, turn: number): string => `${run.state.runId}:t${turn}`
