/** The journal of a run in the page, and the state of the run at any of its revisions. */

import { advance, type Answer, type RunRecord, type RunState } from "../../RunState.ts"
import { type Row, rowsOf } from "./rows.ts"

const kept = 64

/** Adds records, and folds states from the nearest snapshot. */
export class Journal {
  readonly records: Array<RunRecord> = []
  readonly rows: Array<Row> = []
  /** The rows of errors, in their order. */
  readonly errors: Array<Row> = []
  /** The decisions about calls, by call: the first one counts. */
  readonly decisions = new Map<string, Answer>()
  readonly #snapshots = new Map<number, RunState>()
  /** The distance between snapshots. Doubles as the journal grows, so that their number stays bounded. */
  #spacing = 256
  /** The last returned state, since the next query is often the next revision. */
  #last: RunState | undefined

  /** Returns the last loaded revision. */
  get revision(): number {
    return this.records.at(-1)?.revision ?? 0
  }

  /** Adds the following records. */
  add(records: ReadonlyArray<RunRecord>): void {
    for (const record of records) {
      if (record.revision !== this.revision + 1) continue
      this.records.push(record)
      for (const answer of record.delta.answers ?? []) {
        if (!this.decisions.has(answer.callId)) this.decisions.set(answer.callId, answer)
      }
      for (const row of rowsOf(record)) {
        this.rows.push(row)
        if (row.tone === "error") this.errors.push(row)
      }
    }
  }

  /** Returns the state after a revision, or undefined before the first. */
  stateAt(revision: number): RunState | undefined {
    const last = Math.min(revision, this.revision)
    let state = this.#nearest(last)
    for (let index = state?.revision ?? 0; index < last; index++) {
      const record = this.records[index]
      if (record === undefined) break
      state = advance(state, record)
      if (record.revision % this.#spacing === 0) this.#keep(record.revision, state)
    }
    this.#last = state
    return state
  }

  /** Returns the index of the last row up to a revision, or -1 before the first. */
  rowAt(revision: number): number {
    let from = 0
    let to = this.rows.length
    while (from < to) {
      const middle = (from + to) >> 1
      if ((this.rows[middle]?.revision ?? 0) <= revision) from = middle + 1
      else to = middle
    }
    return from - 1
  }

  #nearest(revision: number): RunState | undefined {
    let at = Math.floor(revision / this.#spacing) * this.#spacing
    while (at > 0 && !this.#snapshots.has(at)) at -= this.#spacing
    const last = this.#last
    return last !== undefined && last.revision <= revision && last.revision >= at ? last : this.#snapshots.get(at)
  }

  #keep(revision: number, state: RunState): void {
    this.#snapshots.set(revision, state)
    if (this.#snapshots.size <= kept) return
    this.#spacing *= 2
    for (const at of this.#snapshots.keys()) if (at % this.#spacing !== 0) this.#snapshots.delete(at)
  }
}
