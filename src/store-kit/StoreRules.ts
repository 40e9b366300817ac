/**
 * The rules that every run store follows: appending to journals, reading them, and the heads of runs.
 *
 * A journal holds the records of one run, with consecutive revisions from 1. A head summarizes a run without its
 * journal. A filter selects and orders heads.
 *
 * @since 0.1.0
 */

import type * as Arr from "effect/Array"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { isSelected } from "../Caller.ts"
import { ConcurrentAppendError, StoreError } from "../KernelError.ts"
import * as RunCodec from "../RunCodec.ts"
import { type RunRecord, type RunState, type Status, advance, turnCount } from "../RunState.ts"
import * as Storable from "../kit/storable.ts"
import { flat } from "../kit/text.ts"
import { timeSpan } from "../kit/time.ts"
import { answerBy, selects, statusOf, storedStatuses } from "../internal/store/runStatus.ts"
import type { Claim, Lease, ListPlace, Note, RunFilter, RunHead, Tags } from "../internal/store/runStoreTypes.ts"

/**
 * Returns the error for records that no store accepts: records of several runs, or records that do not lead to `state`
 * one by one.
 *
 * @category guards
 * @since 0.1.0
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

/**
 * Returns the length of a claim in milliseconds. Rejects a lease that is endless or not a duration.
 *
 * @category getters
 * @since 0.1.0
 */
export const leaseOf = ({ lease }: Claim): Result.Result<number, StoreError> => {
  const millis = Option.match(timeSpan(lease), { onNone: () => Number.NaN, onSome: Duration.toMillis })
  return Number.isFinite(millis)
    ? Result.succeed(millis)
    : Result.fail(
        new StoreError({
          operation: "acquire",
          reason: "invalid",
          detail: "a lease must be a finite duration of zero or more"
        })
      )
}

/**
 * Returns whether a claim offers its run to any worker.
 *
 * @category guards
 * @since 0.1.0
 */
export const isOffer = (claim: Claim): boolean => Result.getOrElse(leaseOf(claim), () => Number.NaN) === 0

/**
 * Returns the error for a claim on a run that has changed since the worker read it.
 *
 * @category guards
 * @since 0.1.0
 */
export const movedSince = (
  { seen }: Claim,
  { revision, runId, status }: Pick<RunHead, "runId" | "revision" | "status">
): ConcurrentAppendError | undefined =>
  seen === undefined || (seen.revision === revision && isSameStored(seen, status))
    ? undefined
    : new ConcurrentAppendError({ runId, expected: seen.revision, actual: revision })

/** A lease changes the status of a run, but not the run. */
const isSameStored = (seen: Pick<RunHead, "status">, status: RunHead["status"]): boolean =>
  storedStatuses(seen.status.type)[0] === storedStatuses(status.type)[0]

/**
 * Returns whether records are stored already, given the stored records from the same revision on. A caller that got no
 * response appends the records again, possibly as new objects.
 *
 * @category guards
 * @since 0.1.0
 */
export const areStored = (records: ReadonlyArray<RunRecord>, stored: ReadonlyArray<RunRecord>): boolean =>
  records.every((record, index) => {
    const found = stored[index]
    return found !== undefined && RunCodec.isSame(found, record)
  })

/**
 * The records that could be read, and the first revision whose text has no checksum, if any.
 *
 * @category models
 * @since 0.1.0
 */
export interface Found extends RunCodec.Decoded {
  readonly unsealed: number | undefined
}

/**
 * Reads the records of a run after a revision from the texts of appends, up to the first that is unreadable or out of
 * order. Its fault names the run, the revision and the reason.
 *
 * @category codecs
 * @since 0.1.0
 */
export const readAfter = (
  runId: string,
  revision: number,
  texts: Iterable<string>,
  decode: (text: string) => RunCodec.Decoded
): Found => {
  const records: Array<RunRecord> = []
  let unsealed: number | undefined
  for (const text of texts) {
    if (!Storable.isSealed(text)) unsealed ??= revision + records.length + 1
    const appended = decode(text)
    for (const record of appended.records) {
      if (record.revision <= revision && records.length === 0) continue
      if (record.revision !== revision + records.length + 1) {
        return { records, fault: damaged(runId, revision + records.length + 1, "it is missing"), unsealed }
      }
      records.push(record)
    }
    if (appended.fault !== undefined) {
      const { detail, reason } = appended.fault
      return { records, fault: damaged(runId, revision + records.length + 1, detail, reason), unsealed }
    }
  }
  return { records, fault: undefined, unsealed }
}

/**
 * Logs a warning about a record without a checksum: another program wrote or edited it, and damage to it is not noticed.
 *
 * @category running
 * @since 0.1.0
 */
export const noteUnsealed = (runId: string, { unsealed }: Pick<Found, "unsealed">): Effect.Effect<void> =>
  unsealed === undefined
    ? Effect.void
    : Effect.logWarning(`record ${unsealed} of run '${flat(runId)}' has no checksum, so damage to it is not noticed`)

/**
 * Returns the error for an unreadable record.
 *
 * @category constructors
 * @since 0.1.0
 */
export const damaged = (
  runId: string,
  revision: number,
  why: string,
  reason: StoreError["reason"] = "corrupt"
): StoreError => new StoreError({ operation: "read", reason, detail: `record ${revision} of run '${runId}': ${why}` })

/**
 * Folds records into a state.
 *
 * @category running
 * @since 0.1.0
 */
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

// ---------------------------------------------------------------- heads

/**
 * The part of a head that follows from the journal alone.
 *
 * @category models
 * @since 0.1.0
 */
export interface JournalHead extends Omit<RunHead, "status" | "lease" | "tags"> {
  readonly status: Status
}

/**
 * Returns the part of a head that follows from the journal.
 *
 * @category getters
 * @since 0.1.0
 */
export const journalHeadOf = (state: RunState): JournalHead => ({
  runId: state.runId,
  rootRunId: state.rootRunId,
  parentRunId: state.parentRunId,
  agent: state.agent,
  version: state.version,
  caller: state.caller,
  revision: state.revision,
  status: state.status,
  turns: turnCount(state),
  model: modelOf(state),
  createdAt: state.createdAt,
  updatedAt: state.updatedAt
})

/**
 * Returns the model of the last reply of a root run that has ended. A copy of an ended run has none: it used no model.
 *
 * @category getters
 * @since 0.1.0
 */
export const modelOf = (state: RunState): string | undefined => {
  const { currentTurn, forkedFrom, parentRunId, revision, status, turns } = state
  if (parentRunId !== undefined || status.type === "running" || status.type === "paused") return undefined
  if (revision === forkedFrom?.revision) return undefined
  const replied = currentTurn?.message === undefined ? turns.at(-1) : currentTurn
  return replied?.message === undefined ? undefined : replied.model
}

/**
 * Returns the head of a state and a lease.
 *
 * @category getters
 * @since 0.1.0
 */
export const headOf = (state: RunState, lease?: Lease | undefined): RunHead => underLease(journalHeadOf(state), lease)

/**
 * Adds the lease to the head of a journal.
 *
 * @category getters
 * @since 0.1.0
 */
export const underLease = (head: JournalHead, lease: Lease | undefined): RunHead => ({
  ...head,
  status: statusOf(head.status, lease),
  lease
})

/**
 * Adds the tags of a run to its head.
 *
 * @category getters
 * @since 0.1.0
 */
export const withTags = (head: RunHead, tags: ReadonlyArray<string>): RunHead =>
  tags.length === 0 ? head : { ...head, tags }

/**
 * Returns the tags of a run, sorted, after one is added or removed.
 *
 * @category getters
 * @since 0.1.0
 */
export const tagsAfter = (tags: ReadonlyArray<string>, change: "add" | "remove", tag: string): ReadonlyArray<string> =>
  [...tags.filter((one) => one !== tag), ...(change === "add" ? [tag] : [])].toSorted()

/**
 * Creates the tags of a store from a function that adds or removes one. Refuses a tag of more than 64 characters.
 *
 * @category constructors
 * @since 0.1.0
 */
export const tagsBy = (
  put: (change: "add" | "remove", tag: string, runIds: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
): Tags => {
  const by =
    (change: "add" | "remove"): Tags["add"] =>
    (tag, runIds) =>
      tag.length > longestTag ? Effect.fail(longTag()) : put(change, tag, runIds)
  return { add: by("add"), remove: by("remove") }
}

const longestTag = 64

const longTag = () =>
  new StoreError({ operation: "write", reason: "invalid", detail: `a tag has more than ${longestTag} characters` })

export {
  /**
   * Returns whether a run has ended for good, so that no worker continues it and no follower waits for it: it completed,
   * was cancelled, or took all its turns.
   *
   * @category guards
   * @since 0.1.0
   */
  isEnded,
  /**
   * Returns whether workers gave up a run because their processes died of it.
   *
   * @category guards
   * @since 0.1.0
   */
  isPoisoned,
  /**
   * Returns the status of a run from its journal and, while the run can continue, from its lease.
   *
   * @category getters
   * @since 0.1.0
   */
  statusOf,
  /**
   * Returns the name in the offer of a run that no runner of a cluster can execute, which is the reason in its status.
   *
   * @category getters
   * @since 0.1.0
   */
  unplaced,
  /**
   * Returns the status of a run for the rows of a store, which does not change with a lease.
   *
   * @category getters
   * @since 0.1.0
   */
  storedStatus,
  /**
   * Returns the statuses that the row of a run with this status may have.
   *
   * @category getters
   * @since 0.1.0
   */
  storedStatuses,
  type StoredStatus
} from "../internal/store/runStatus.ts"

/**
 * Returns whether a head passes a filter, apart from its `search`.
 *
 * @category guards
 * @since 0.1.0
 */
export const matches = (head: RunHead, filter: RunFilter): boolean =>
  selects(filter, head.status) &&
  (filter.agent === undefined || filter.agent === head.agent) &&
  (filter.caller === undefined || filter.caller === head.caller?.id) &&
  (filter.model === undefined || filter.model === head.model) &&
  (filter.tag === undefined || head.tags?.includes(filter.tag) === true) &&
  isSelected(head.caller, filter) &&
  (filter.prefix === undefined || head.runId.startsWith(filter.prefix)) &&
  (filter.rootRunId === undefined || filter.rootRunId === head.rootRunId) &&
  (filter.roots !== true || head.parentRunId === undefined) &&
  (filter.updatedBefore === undefined || head.updatedAt < filter.updatedBefore) &&
  (filter.order !== "due" || dueAt(head) !== undefined) &&
  (filter.after === undefined || inOrder(filter)(filter.after, head) < 0) &&
  (filter.unleased !== true || head.lease?.isLive !== true)

/**
 * The position of a head in a list.
 *
 * @category models
 * @since 0.1.0
 */
export type Place = Pick<RunHead, "createdAt" | "runId">

/**
 * Returns the position after a page as text for clients.
 *
 * @category codecs
 * @since 0.1.0
 */
export const placeText = ({ createdAt, runId }: Place): string => `${createdAt}.${runId}`

/**
 * Parses the position after a page. Undefined if the text is invalid.
 *
 * @category codecs
 * @since 0.1.0
 */
export const placeIn = (text: string): Place | undefined => {
  const [, createdAt, runId] = /^(\d{1,15})\.(.+)$/.exec(text) ?? []
  return createdAt === undefined || runId === undefined ? undefined : { createdAt: Number(createdAt), runId }
}

/**
 * Returns the largest number of heads that a filter selects: all without a limit, none for a limit below one.
 *
 * @category getters
 * @since 0.1.0
 */
export const atMost = ({ limit = Infinity }: RunFilter): number =>
  limit >= 1 ? Math.min(Math.floor(limit), Number.MAX_SAFE_INTEGER) : 0

/**
 * Returns the order of a filter as a comparator.
 *
 * @category getters
 * @since 0.1.0
 */
export const inOrder =
  ({ order }: RunFilter) =>
  (a: ListPlace, b: ListPlace): number =>
    (order === "due"
      ? (dueAt(a) ?? 0) - (dueAt(b) ?? 0)
      : order === "oldest"
        ? a.createdAt - b.createdAt
        : b.createdAt - a.createdAt) || (a.runId < b.runId ? -1 : a.runId > b.runId ? 1 : 0)

/**
 * Returns the deadline by which the order `due` sorts a waiting run, in milliseconds since the epoch and no later than a
 * `Date` can be. Undefined if its questions have none.
 *
 * @category getters
 * @since 0.1.0
 */
export const dueAt = ({ status }: { readonly status?: RunHead["status"] | Status }): number | undefined => {
  const deadline = status === undefined ? undefined : answerBy({ status })
  return deadline === undefined ? undefined : Math.min(deadline, 8.64e15)
}

/**
 * Returns the notes whose keys begin with a text, in the order of their keys.
 *
 * @category filtering
 * @since 0.1.0
 */
export const sortedNotes = (notes: ReadonlyArray<Note>, prefix: string): ReadonlyArray<Note> =>
  notes.filter(({ key }) => key.startsWith(prefix)).sort((one, other) => (one.key < other.key ? -1 : 1))
