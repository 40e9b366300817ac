/**
 * When a store writes down what became of a run so far, so that it need not be folded again.
 *
 * A part of the state is due every 64 turns, or earlier after 1 MiB of records,
 * always between two turns. Each turn is in one part, so parts together weigh
 * no more than the journal does, however long the run (DR-5); what a resume
 * has to fold is bounded.
 */

import type { RunState } from "../../RunState.ts"
import { turnCount } from "../../RunState.ts"
import * as Parts from "./runParts.ts"

/** Up to where each run of this process is written down. */
export interface Marks {
  /** From here on parts of this run can be written. */
  readonly set: (state: RunState, mark: Parts.Mark) => void
  /** A state is written down. */
  readonly written: (state: RunState) => void
  /** Counts a record; tells the mark behind which a part is to be written now, if it is. */
  readonly due: (state: RunState, bytes: number) => Parts.Mark | undefined
}

interface Kept {
  readonly runId: string
  readonly mark: Parts.Mark
  bytes: number
}

/** No run is known. */
export const make = (): Marks => {
  // A run is known by its input, which lives as long as its state does: nothing is held for runs that are gone.
  const kept = new WeakMap<RunState["input"], Kept>()
  const set: Marks["set"] = ({ input, runId }, mark) => {
    kept.set(input, { runId, mark, bytes: 0 })
  }
  return {
    set,
    written: (state) => set(state, { turns: state.turns.length, prompt: state.prompt }),
    due: (state, bytes) => {
      const known = kept.get(state.input)
      if (known === undefined || known.runId !== state.runId) return undefined
      known.bytes += bytes
      const added = turnCount(state) - known.mark.turns
      return state.currentTurn === undefined && (added >= 64 || (added > 0 && known.bytes >= 1024 * 1024))
        ? known.mark
        : undefined
    }
  }
}
