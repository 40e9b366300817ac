/**
 * The rules by which every store appends and reads.
 *
 * A journal holds the records of one run. The first has revision 1, and each later one follows the one before it.
 */

import type * as Arr from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { ConcurrentAppendError, StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import { advance } from "../../RunState.ts"
import { journalStatus } from "./runHead.ts"
import type { Claim, RunHead } from "./runStoreTypes.ts"
import { timeSpan } from "../base/time.ts"

/**
 * Returns the error for records that no store accepts: they belong to several runs, or do not lead to `state` one by
 * one.
 */
export const refusal = (
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  { revision, runId }: RunState
): StoreError | undefined => {
  const first = revision - records.length + 1
  const isInOrder = records.every((record, index) => record.runId === runId && record.revision === first + index)
  return isInOrder && first >= 1
    ? undefined
    : new StoreError({
        operation: "append",
        reason: "invalid",
        detail: `its records do not lead to revision ${revision} of run '${runId}' one by one`
      })
}

/** Returns the length of a claim in milliseconds. Rejects a lease that is endless or not a duration. */
export const leaseOf = ({ lease }: Claim): Result.Result<number, StoreError> => {
  const millis = Option.match(timeSpan(lease), { onNone: () => Number.NaN, onSome: Duration.toMillis })
  return Number.isFinite(millis)
    ? Result.succeed(millis)
    : Result.fail(
        new StoreError({ operation: "acquire", reason: "invalid", detail: "a lease is a finite time of zero or more" })
      )
}

/** Whether a claim offers its run to any worker. */
export const isOffer = (claim: Claim): boolean => Result.getOrElse(leaseOf(claim), () => Number.NaN) === 0

/** Returns the error for a claim on a run that has changed since the worker saw it. */
export const movedSince = (
  { seen }: Claim,
  { revision, runId, status }: Pick<RunHead, "runId" | "revision" | "status">
): ConcurrentAppendError | undefined =>
  seen === undefined || (seen.revision === revision && journalStatus(seen.status.type) === journalStatus(status.type))
    ? undefined
    : new ConcurrentAppendError({ runId, expectedSeq: seen.revision, actualSeq: revision })

/**
 * Whether records are stored already, given the stored ones from the first of them on. A caller without an answer sends
 * them again, perhaps created anew.
 */
export const areStored = (records: ReadonlyArray<RunRecord>, stored: ReadonlyArray<RunRecord>): boolean =>
  records.every((record, index) => {
    const found = stored[index]
    return found !== undefined && RunCodec.isSame(found, record)
  })

/**
 * Reads the records of a run after a revision from the texts of appends, up to the first that is unreadable or out of
 * order. Its fault names the run, the revision and the reason.
 */
export const readAfter = (
  runId: string,
  revision: number,
  texts: Iterable<string>,
  decode: (text: string) => RunCodec.Decoded
): RunCodec.Decoded => {
  const records: Array<RunRecord> = []
  for (const text of texts) {
    const appended = decode(text)
    for (const record of appended.records) {
      if (record.revision <= revision && records.length === 0) continue
      if (record.revision !== revision + records.length + 1) {
        return { records, fault: damaged(runId, revision + records.length + 1, "it is missing") }
      }
      records.push(record)
    }
    if (appended.fault !== undefined) {
      const { detail, reason } = appended.fault
      return { records, fault: damaged(runId, revision + records.length + 1, detail, reason) }
    }
  }
  return { records, fault: undefined }
}

/** The error for an unreadable record. */
export const damaged = (
  runId: string,
  revision: number,
  why: string,
  reason: StoreError["reason"] = "corrupt"
): StoreError => new StoreError({ operation: "read", reason, detail: `record ${revision} of run '${runId}': ${why}` })

/** Folds records into a state. */
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
