/**
 * What a run is: a fold of its records.
 *
 * A record is one commit: the phase events of one transition, or a change
 * without events (a launch, a resume). `advance` is pure and is the only way
 * state moves, live and after a crash alike. Everything here is JSON-safe;
 * skills, layers and fibers are never part of it (DR-2 to DR-5).
 *
 * @since 0.1.0
 */

import * as Fold from "./internal/state/advance.ts"
import { open, turnLog } from "./internal/state/state.ts"
import type { RunRecord } from "./RunRecord.ts"
import type {
  Answer,
  CallMade,
  CallChange,
  Delta,
  ErrorInfo,
  ForkedFrom,
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

export type {
  Answer,
  CallMade,
  CallChange,
  Delta,
  ErrorInfo,
  ForkedFrom,
  ModelArgs,
  OpenQuestion,
  Outcome,
  Phase,
  PromptDelta,
  Question,
  RunRecord,
  RunResult,
  RunSource,
  RunState,
  Status,
  Stop,
  Turn
}

// ---------------------------------------------------------------- the fold

/**
 * Moves a run forward by one record. The first record makes the state: it
 * throws when that is not a `run_started`. Pure: the same records give the same
 * state, in any process.
 *
 * @category combinators
 * @since 0.1.0
 */
export const advance = (state: RunState | undefined, record: RunRecord): RunState => open(Fold.advance(state, record))

/**
 * Folds a whole journal, as `advance` does; nothing when it is empty.
 *
 * @category combinators
 * @since 0.1.0
 */
export const fold = (records: Iterable<RunRecord>): RunState | undefined => {
  let state: RunState | undefined
  for (const record of records) state = Fold.advance(state, record)
  return state === undefined ? undefined : open(state)
}

// ---------------------------------------------------------------- getters

/**
 * Tells whether a commit of a run was copied from the run it was forked from, not run again.
 *
 * @category guards
 * @since 0.1.0
 */
export const isCopied = (state: Pick<RunState, "forkedFrom">, revision: number): boolean =>
  state.forkedFrom !== undefined && revision <= state.forkedFrom.revision

/**
 * How many turns are completed, without looking at them.
 *
 * @category getters
 * @since 0.1.0
 */
export const turnCount = (state: RunState): number => turnLog(state).length

export {
  /** The answer of a run: the text of its last turn's final block or prose. */
  answer,
  /** The messages that a turn adds to the conversation: steering, the reply, then results or a corrective. */
  messagesOf,
  /** The result of a completed run, with its decoded output. */
  result
} from "./internal/state/runResult.ts"
