/**
 * How a resume changes a state: decisions about questions, calls in flight, and the open turn.
 */

import type { Delta } from "../../RunModel.ts"
import { Growing } from "../base/lists.ts"
import { running, type State } from "./state.ts"
import { none, openTurn } from "./turnFold.ts"

/** Lets a run continue where it stopped; with `rewind`, the open turn starts again. */
export const resume = (next: State, delta: Delta): void => {
  answerApprovals(next, delta)
  const { phase } = next.status
  const turn = next.currentTurn
  next.status = running(phase)
  if (turn === undefined) return
  if (delta.rewind === true) {
    if (turn.before !== undefined) {
      next.setPrompt(Growing.of(turn.before.prompt))
      next.system = turn.before.system
    }
    next.currentTurn = openTurn(turn.turnId, turn.turn, turn.startedAt, turn.steering)
    // After turn_started its hook has run; preparing the turn again does not start it again.
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
    // Calls return to the front, in the order of the batch: they were requested before the calls that still wait.
    pending: turn.inFlight.filter((call) => retried.has(call.callId)).concat(turn.pending),
    inFlight: turn.inFlight.filter((call) => !known.has(call.callId)),
    // A result whose hook has not run stays last, where its hook finds it.
    completed:
      phase === "tool_call_completed" && next.settledRevision < next.phaseRevision
        ? turn.completed.slice(0, -1).concat(resolved, turn.completed.slice(-1))
        : turn.completed.concat(resolved)
  }
}

const answerApprovals = (next: State, delta: Delta): void => {
  const answers = delta.answers
  if (answers === undefined || answers.length === 0) return
  next.questions = next.questions.map((approval) => {
    const answer = answers.find((answer) => answer.callId === approval.callId)
    return answer === undefined || approval.answer !== undefined ? approval : { ...approval, answer }
  })
}
