/**
 * What follows what in a journal: the rules every store of runs refuses and reads by.
 *
 * A journal has no gap and is of one run: its first record is revision 1, each
 * later one follows the one before it. No store takes what another would not
 * (DR-6), and what was stored folds, or is corrupt.
 */

import type * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { ConcurrentAppendError, StoreError } from "../../KernelError.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import { advance } from "../../RunState.ts"

/** Why a record cannot be the first of a run, if it cannot. */
export const notFirst = ({ revision }: RunRecord): StoreError | undefined =>
  revision === 1
    ? undefined
    : new StoreError({
        operation: "create",
        reason: "invalid",
        detail: `a run begins with revision 1, not ${revision}`
      })

/**
 * Why records cannot be stored at once, if they cannot: they are of one run, follow one another, and lead to a state each.
 */
export const notTogether = (
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  states: ReadonlyArray<RunState>
): ConcurrentAppendError | StoreError | undefined => notOfOne(records, states) ?? gapIn(records)

/** Why records are not those of one run with a state each, if they are not. */
export const notOfOne = (
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  states: ReadonlyArray<RunState>
): StoreError | undefined => {
  const { runId } = records[0]
  const isOne = records.every((record, index) => record.runId === runId && states[index]?.runId === runId)
  return isOne && states.length === records.length
    ? undefined
    : new StoreError({
        operation: "commit",
        reason: "invalid",
        detail: `not all of run '${runId}' with a state each`
      })
}

/** The first record that does not follow the one before it: a store would have got as far as that one. */
const gapIn = (records: Arr.NonEmptyReadonlyArray<RunRecord>): ConcurrentAppendError | undefined => {
  let actualSeq = records[0].revision - 1
  for (const { revision, runId } of records) {
    const expectedSeq = revision - 1
    if (expectedSeq !== actualSeq) return new ConcurrentAppendError({ runId, expectedSeq, actualSeq })
    actualSeq = revision
  }
  return undefined
}

/** Records that were read, and why the one after them cannot be, if so. */
export interface Page {
  readonly records: ReadonlyArray<RunRecord>
  readonly fault: StoreError | undefined
}

/** Reads the texts after a revision, up to one that cannot be read or does not follow: what is before it is sound. */
export const readAfter = (
  revision: number,
  texts: Iterable<string>,
  decode: (text: string) => Result.Result<RunRecord, StoreError>
): Page => {
  const records: Array<RunRecord> = []
  for (const text of texts) {
    const record = decode(text)
    if (Result.isFailure(record)) return { records, fault: record.failure }
    if (record.success.revision !== revision + records.length + 1) {
      const detail = `a record before revision ${record.success.revision} is missing`
      return { records, fault: new StoreError({ operation: "read", reason: "corrupt", detail }) }
    }
    records.push(record.success)
  }
  return { records, fault: undefined }
}

/** Folds records that were read, from a state on. */
export const foldFrom = (
  state: RunState | undefined,
  records: ReadonlyArray<RunRecord>
): Effect.Effect<RunState | undefined, StoreError> =>
  Effect.try({
    try: () => {
      let next = state
      for (const record of records) next = advance(next, record)
      return next
    },
    catch: (error) => new StoreError({ operation: "load", reason: "corrupt", detail: String(error) })
  })
