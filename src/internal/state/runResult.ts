/**
 * The result of a run, computed from its state.
 */

import * as Calls from "../../Call.ts"
import type { Message } from "../../Message.ts"
import type { CallMade, RunResult, RunState, Turn } from "../../RunModel.ts"
import { turnLog } from "./state.ts"
import { messagesOf as added } from "./turnFold.ts"

/** The messages that a turn adds to the conversation: steering, the reply, then results or a corrective. */
export const messagesOf = (turn: Turn): ReadonlyArray<Message> =>
  turn.steering === undefined ? added(turn) : turn.steering.concat(added(turn))

/** The answer of a run: the text of its last turn's final block or prose. */
export const answer = (state: RunState): string | undefined => {
  const outcome = turnLog(state).last()?.outcome
  return outcome?.type === "final" || outcome?.type === "prose" ? outcome.text : undefined
}

/** The result of a completed run, with its decoded output. */
export const result = <Output>(state: RunState, output: Output): RunResult<Output> => {
  const turns = () => (state.currentTurn === undefined ? state.turns : state.turns.concat(state.currentTurn))
  const last = state.currentTurn ?? turnLog(state).last()
  return {
    runId: state.runId,
    status: "completed",
    agent: state.handed?.agent ?? state.agent,
    output,
    text: answer(state) ?? "",
    usage: state.usage,
    costUsd: state.costUsd,
    turns: turnLog(state).length,
    // Computed when read: most callers want the text, and a run may have thousands of turns.
    get perTurnUsage() {
      return turns().map((turn) => turn.usage)
    },
    unreportedTurns: state.unreportedTurns,
    finishReason: last?.finishReason ?? "unknown",
    get messages() {
      return state.input.slice(state.history).concat(turns().flatMap(messagesOf))
    },
    finalMessage: last?.message,
    get calls() {
      return turns().flatMap(callsMade)
    }
  }
}

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
