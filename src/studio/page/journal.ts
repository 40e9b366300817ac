/** The journal of a run in the page, and the state of the run at any of its revisions. */

import * as Fold from "../../internal/state/advance.ts"
import { open } from "../../internal/state/state.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import { type Row, rowsOf } from "./rows.ts"

const every = 256
const kept = 32

/** Grows by records; folds from the nearest snapshot. */
export class Journal {
  readonly records: Array<RunRecord> = []
  readonly rows: Array<Row> = []
  readonly #snapshots = new Map<number, RunState>()

  /** The last revision that is here. */
  get revision(): number {
    return this.records.at(-1)?.revision ?? 0
  }

  /** Adds the records that follow. */
  add(records: ReadonlyArray<RunRecord>): void {
    for (const record of records) {
      if (record.revision !== this.revision + 1) continue
      this.records.push(record)
      this.rows.push(...rowsOf(record))
    }
  }

  /** The state after a revision; undefined before the first. */
  stateAt(revision: number): RunState | undefined {
    const last = Math.min(revision, this.revision)
    let at = Math.floor(last / every) * every
    while (at > 0 && !this.#snapshots.has(at)) at -= every
    let state = this.#snapshots.get(at)
    for (let index = at; index < last; index++) {
      const record = this.records[index]
      if (record === undefined) break
      state = Fold.advance(state, record)
      if (record.revision % every === 0) this.#keep(record.revision, state)
    }
    return state === undefined ? undefined : open(state)
  }

  /** The revision at which the prompt of a turn was ready. */
  preparedAt(turn: number): number | undefined {
    return this.rows.findLast(({ event }) => event?.type === "turn_prepared" && event.step === turn - 1)?.revision
  }

  #keep(revision: number, state: RunState): void {
    if (this.#snapshots.size >= kept) {
      const [oldest] = this.#snapshots.keys()
      if (oldest !== undefined) this.#snapshots.delete(oldest)
    }
    this.#snapshots.set(revision, state)
  }
}
