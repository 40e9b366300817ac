/**
 * Decides when a store writes the next part of a run's state.
 *
 * A part is due every 64 turns, or after 1 MiB of records once a turn has ended, and holds a state between two turns. A
 * load reads the parts and folds only the records after the last one, whose number is bounded. Encode a part with
 * `RunCodec.encodeState(part.state, part.mark)`.
 *
 * @since 0.1.0
 */

import type { Mark } from "../RunCodec.ts"
import { advance, type RunRecord, type RunState, turnCount } from "../RunState.ts"

/**
 * Tracks the written parts of the runs of this process.
 *
 * @category models
 * @since 0.1.0
 */
export interface Marks {
  /** Starts counting for a run that was created or loaded and whose parts are written up to a mark. */
  readonly set: (state: RunState, mark: Mark) => void
  /** Counts records that were appended and led to `state`. Returns the part to write now, if one is due. */
  readonly due: (records: ReadonlyArray<RunRecord>, state: RunState, bytes: number) => DuePart | undefined
  /** Notes that a part was written. */
  readonly written: (part: DuePart) => void
}

/**
 * The part of a state after a mark.
 *
 * @category models
 * @since 0.1.0
 */
export interface DuePart {
  readonly state: RunState
  readonly mark: Mark
}

/**
 * Creates marks without any runs.
 *
 * @category constructors
 * @since 0.1.0
 */
export const marks = (): Marks => {
  // Keyed by the input, an object that all states of a run share.
  const runs = new WeakMap<RunState["input"], Known>()
  return {
    set: (state, mark) => {
      runs.set(state.input, { state, mark, bytes: 0 })
    },
    due: (records, state, bytes) => {
      const known = runs.get(state.input)
      if (known === undefined || known.state.runId !== state.runId) return undefined
      const before = known.state
      known.state = state
      known.bytes += bytes
      const { mark } = known
      const turns = turnCount(state) - mark.turns
      if (turns < 64 && (turns === 0 || known.bytes < 1024 * 1024)) return undefined
      const whole = betweenTurns(before, records, state)
      return whole === undefined || turnCount(whole) === mark.turns ? undefined : { state: whole, mark }
    },
    written: ({ state: { input, prompt, turns } }) => {
      const known = runs.get(input)
      if (known === undefined) return
      known.mark = { turns: turns.length, prompt }
      known.bytes = 0
    }
  }
}

interface Known {
  /** The state after the last append. */
  state: RunState
  mark: Mark
  bytes: number
}

/** Returns the newest state between two turns that the records led to. */
const betweenTurns = (before: RunState, records: ReadonlyArray<RunRecord>, after: RunState): RunState | undefined => {
  if (after.currentTurn === undefined) return after
  if (before.revision !== after.revision - records.length) return undefined
  let state = before
  let whole: RunState | undefined
  for (const record of records) {
    state = advance(state, record)
    if (state.currentTurn === undefined) whole = state
  }
  return whole
}
