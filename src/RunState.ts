/**
 * The state of a run as a fold of its records.
 *
 * A record is stored as a whole: the phase events of one transition, or a change without events such as a launch or a
 * resume. `advance` is pure and the only function that changes state, live and after a crash alike. State holds JSON
 * only; skills, layers and fibers are never part of it.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Fold from "./internal/state/advance.ts"
import { CurrentRun } from "./internal/state/currentRun.ts"
import { State, open, turnLog } from "./internal/state/state.ts"
import type { RunRecord } from "./RunRecord.ts"
import type { RunState } from "./RunModel.ts"

export type {
  Answer,
  Answerers,
  CallChange,
  CallLeft,
  CallMade,
  Caller,
  ErrorInfo,
  ForkedFrom,
  GivenAnswer,
  ModelArgs,
  OpenQuestion,
  Outcome,
  Phase,
  PromptDelta,
  Question,
  RunResult,
  RunSource,
  RunState,
  Status,
  Stop,
  Turn
} from "./RunModel.ts"
export type { Delta, RunRecord } from "./RunRecord.ts"

// ---------------------------------------------------------------- the fold

/**
 * Advances a run by one record. Pure: the same records give the same state, in any process. Throws if the first record
 * is not a `run_started`.
 *
 * @category folding
 * @since 0.1.0
 */
export const advance = (state: RunState | undefined, record: RunRecord): RunState => open(Fold.advance(state, record))

/**
 * Folds a whole journal. Returns undefined if it is empty.
 *
 * @category folding
 * @since 0.1.0
 */
export const fold = (records: Iterable<RunRecord>): RunState | undefined => {
  let state: RunState | undefined
  for (const record of records) state = Fold.advance(state, record)
  return state === undefined ? undefined : open(state)
}

// ---------------------------------------------------------------- getters

/**
 * Returns true if a revision of a fork was copied from the run it was forked from.
 *
 * @category guards
 * @since 0.1.0
 */
export const isCopied = (state: Pick<RunState, "forkedFrom">, revision: number): boolean =>
  state.forkedFrom !== undefined && revision <= state.forkedFrom.revision

/**
 * Returns the number of completed turns without reading them.
 *
 * @category getters
 * @since 0.1.0
 */
export const turnCount = (state: RunState): number => turnLog(state).length

export {
  /** Returns an answer in its recorded form: the result of an external call approves it, and its failure declines it. */
  decisionOf
} from "./internal/words/question.ts"

/**
 * Returns the state of the run whose loop this fiber works for: in a provider the run that it replies for, in a skill the
 * run that calls it. None outside a run.
 *
 * @category getters
 * @since 0.1.0
 */
export const current: Effect.Effect<Option.Option<RunState>> = Effect.map(CurrentRun, (run) =>
  Option.map(Option.fromUndefinedOr(run), ({ state }) => open(new State(state)))
)

export {
  /** Returns the answer of a run: the text of its last turn's final block or prose. */
  answer,
  /** Returns the messages that a turn adds to the conversation: steering, the reply, then results or a correction. */
  messagesOf,
  /** Returns the result of a completed run, with its decoded output. */
  result
} from "./internal/state/state.ts"
