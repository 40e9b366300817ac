/**
 * Decides when a store writes a part of a state, so that loading a run need not fold its whole journal.
 *
 * A part is due every 64 turns, or after 1 MiB of records once a turn has ended, and always holds a state between two
 * turns. Each turn is in one part, so the parts of a run are never larger than its journal, and a load folds a bounded
 * number of records.
 */

import type { RunRecord, RunState } from "../../RunState.ts"
import { turnCount } from "../../RunState.ts"
import { advance } from "../state/advance.ts"
import type * as Parts from "./runParts.ts"

/** The parts written for the runs of this process. */
export interface Marks {
  /** Starts counting for a run that was created or loaded and whose parts are written up to a mark. */
  readonly set: (state: RunState, mark: Parts.Mark) => void
  /** Counts records that were appended and led to `state`. Returns the part to write now, if one is due. */
  readonly due: (records: ReadonlyArray<RunRecord>, state: RunState, bytes: number) => Part | undefined
  /** Notes that a part was written. */
  readonly written: (part: Part) => void
}

/** The part of a state after a mark. */
export interface Part {
  readonly state: RunState
  readonly mark: Parts.Mark
}

interface Known {
  /** The state after the last append. */
  state: RunState
  mark: Parts.Mark
  bytes: number
}

/** Creates marks without any runs. */
export const make = (): Marks => {
  // All states of a run share one input object, so it is kept with them.
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
