/**
 * What a run gives in the end: its answer, and what can be told of the way there (AC-21).
 */

import * as Calls from "../../Call.ts"
import type { Message } from "../../Message.ts"
import type { RunState, Turn } from "../../RunState.ts"
import type { FinishReason } from "../../StreamPart.ts"
import type * as Usage from "../../Usage.ts"
import { turnLog } from "./state.ts"
import { messagesOf as added } from "./turnFold.ts"
import type { Json } from "../base/json.ts"

/**
 * What a finished run gives (AC-21). Computed from its state, so a resumed run gives what an undisturbed one does.
 */
export interface RunResult<out Output = string> {
  readonly runId: string
  /** A run that ended otherwise has no result. */
  readonly status: "completed"
  readonly output: Output
  readonly text: string
  /** What the turns, their tasks, what made their prompts and refused replies used, as far as it was reported. */
  readonly usage: Usage.Usage
  /** What it cost by the prices of the models; a model without a `price` adds nothing. */
  readonly costUsd: number
  readonly turns: number
  /** Null for a turn whose provider reported none. */
  readonly perTurnUsage: ReadonlyArray<Usage.Usage | null>
  /** Model calls whose provider reported no usage: `usage` is too low by them. */
  readonly unreportedTurns: number
  readonly finishReason: FinishReason
  /** The messages of this run: its input, answers and results, and what was said to it meanwhile. */
  readonly messages: ReadonlyArray<Message>
  /** The last answer of the model, whole. */
  readonly finalMessage: Message | undefined
  readonly toolCallsMade: ReadonlyArray<CallMade>
}

/** A call of a run, as its result tells it (AC-21). */
export interface CallMade {
  readonly callId: string
  readonly name: string | null
  readonly input: Json
  readonly isError: boolean
  readonly error?: string
  readonly durationMs: number | undefined
  readonly turn: number
  /** Whether it was cut off and run again, or given a result, by a resume (DR-17). */
  readonly replayed: boolean
}

/** What a turn adds to the conversation: what was said to it, the answer, then results or a corrective. */
export const messagesOf = (turn: Turn): ReadonlyArray<Message> =>
  turn.steering === undefined ? added(turn) : turn.steering.concat(added(turn))

/** The answer a completed run ended with: the text of its last turn's final block or prose. */
export const answer = (state: RunState): string | undefined => {
  const outcome = turnLog(state).last()?.outcome
  return outcome?.type === "final" || outcome?.type === "prose" ? outcome.text : undefined
}

/** The result of a completed run, given its decoded output (AC-21). */
export const result = <Output>(state: RunState, output: Output): RunResult<Output> => {
  const turns = () => (state.currentTurn === undefined ? state.turns : state.turns.concat(state.currentTurn))
  const last = state.currentTurn ?? turnLog(state).last()
  return {
    runId: state.runId,
    status: "completed",
    output,
    text: answer(state) ?? "",
    usage: state.usage,
    costUsd: state.costUsd,
    turns: turnLog(state).length,
    // Computed when asked for: most callers want the text, and a run may have thousands of turns.
    get perTurnUsage() {
      return turns().map((turn) => turn.usage)
    },
    unreportedTurns: state.unreportedTurns,
    finishReason: last?.finishReason ?? "unknown",
    get messages() {
      return state.input.slice(state.history).concat(turns().flatMap(messagesOf))
    },
    finalMessage: last?.message,
    get toolCallsMade() {
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
    replayed: turn.recovered?.includes(result.callId) ?? false
  }))
