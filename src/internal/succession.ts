/**
 * What a store of runs holds what it is given against, before it looks at what it has.
 *
 * A journal has no gap and is of one run: its first record is revision 1, each
 * later one follows the one before it. Every store refuses by these rules, so
 * none takes what another would not (DR-6).
 *
 * @since 0.1.0
 */
import type * as Arr from "effect/Array"
import { ConcurrentAppendError, StoreError } from "../KernelError.ts"
import type { RunRecord, RunState } from "../RunState.ts"

/**
 * Why a record cannot be the first of a run, if it cannot.
 *
 * @category guards
 * @since 0.1.0
 */
export const notFirst = ({ revision }: RunRecord): StoreError | undefined =>
  revision === 1
    ? undefined
    : new StoreError({
        operation: "create",
        reason: "invalid",
        detail: `the first revision of a run is 1, not ${revision}`
      })

/**
 * Why records cannot be stored at once, if they cannot: they are of one run, follow one another, and lead to a state each.
 *
 * @category guards
 * @since 0.1.0
 */
export const notTogether = (
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  states: ReadonlyArray<RunState>
): ConcurrentAppendError | StoreError | undefined => notOfOne(records, states) ?? gapIn(records)

/**
 * Why records are not those of one run with a state each, if they are not.
 *
 * @category guards
 * @since 0.1.0
 */
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
        detail: `records stored at once are of one run and lead to a state each: these begin with one of run '${runId}'`
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
