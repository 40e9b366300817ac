/**
 * Runs kept in this process: a map of journals, and who follows them.
 */

import type * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, type StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { PhaseEvent } from "../../RunEvent.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import type { Lease, RunFilter, RunHead, RunStoreShape } from "../../RunStore.ts"
import { isEmpty } from "../base/json.ts"
import * as Mailbox from "../base/mailbox.ts"
import { atMost, headOf, inOrder, matches } from "./runHead.ts"
import * as Search from "./runSearch.ts"
import { open } from "../state/state.ts"
import { notFirst, notTogether } from "./journalRules.ts"

interface Kept {
  readonly journal: Array<Entry>
  /** Who wrote the first record, and nearly always all of them. */
  readonly workerId: string
  state: RunState
  lease: Lease | undefined
}

/**
 * A record, or just its event where that is all there is to it, as with most: what is kept of a run is most of what it
 * costs.
 */
type Entry = RunRecord | PhaseEvent

const entryOf = (workerId: string, record: RunRecord): Entry => {
  const event = record.events[0]
  return event !== undefined && isSaid(workerId, event, record) ? event : record
}

/** Whether a record says what `recordOf` makes of its first event alone. */
const isSaid = (workerId: string, { at, revision, runId }: PhaseEvent, record: RunRecord): boolean =>
  record.events.length === 1 &&
  record.op === "phase" &&
  isEmpty(record.delta) &&
  record.runId === runId &&
  record.revision === revision &&
  record.createdAt === at &&
  record.workerId === workerId

const recordOf = (workerId: string, entry: Entry): RunRecord => {
  if ("op" in entry) return entry
  const { at, revision, runId } = entry
  return { runId, revision, op: "phase", events: [entry], delta: {}, createdAt: at, workerId }
}

/** The records of a run after a revision. */
const recordsOf = (kept: Kept | undefined, revision: number): ReadonlyArray<RunRecord> =>
  kept === undefined ? [] : kept.journal.slice(revision).map((entry) => recordOf(kept.workerId, entry))

/** A commit without an effect: the records are stored when it returns, or refused for a reason. */
type Direct = (
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  states: Arr.NonEmptyReadonlyArray<RunState>
) => ConcurrentAppendError | StoreError | undefined

const directly = new WeakMap<RunStoreShape, Direct>()

/** The same store, known to take commits without an effect, too. */
export const taking = <S extends RunStoreShape>(store: S, commit: Direct): S => {
  directly.set(store, commit)
  return store
}

/** How a store of this process takes commits without an effect. No other store can, nor one that wraps such a store. */
export const direct = (store: RunStoreShape): Direct | undefined => directly.get(store)

/** Who follows a run from a revision on. */
interface Follower {
  readonly runId: string
  readonly from: number
  readonly mailbox: Mailbox.Mailbox<RunRecord>
}

/** A store, and its end. */
interface Memory {
  readonly store: RunStoreShape & Required<Pick<RunStoreShape, "commitAll">>
  /** Ends it for all who follow a run, and for whoever comes later. */
  readonly end: () => void
}

/** A store in this process, which takes what happened between two effects at once. */
export const make = (): Memory => {
  const runs = new Map<string, Kept>()
  const followers = new Set<Follower>()
  let isOver = false

  const tell = (record: RunRecord) => {
    for (const { from, mailbox, runId } of followers) {
      if (record.runId === runId && record.revision > from) mailbox.offer(record)
    }
  }

  const create = (record: RunRecord, state: RunState) =>
    Effect.suspend((): Effect.Effect<void, RunExists | StoreError> => {
      const kept = runs.get(record.runId)
      if (kept !== undefined) {
        return isSame(kept, record) ? Effect.void : Effect.fail(new RunExists({ runId: record.runId }))
      }
      const refused = RunCodec.refusal(record) ?? notFirst(record)
      if (refused !== undefined) return Effect.fail(refused)
      const { workerId } = record
      runs.set(record.runId, { journal: [entryOf(workerId, record)], workerId, state, lease: undefined })
      tell(record)
      return Effect.void
    })

  const commitNow: Direct = (records, states) => {
    const apart = notTogether(records, states)
    if (apart !== undefined) return apart
    const { revision, runId } = records[0]
    const kept = runs.get(runId)
    const actualSeq = kept?.journal.length ?? 0
    const expectedSeq = revision - 1
    if (kept === undefined || actualSeq !== expectedSeq) {
      const isKept = records.every((record) => isSame(kept, record))
      return isKept ? undefined : new ConcurrentAppendError({ runId, expectedSeq, actualSeq })
    }
    for (const record of records) {
      const refused = RunCodec.refusal(record)
      if (refused !== undefined) return refused
    }
    for (const record of records) kept.journal.push(entryOf(kept.workerId, record))
    kept.state = states.at(-1) ?? states[0]
    if (followers.size > 0) for (const record of records) tell(record)
    return undefined
  }

  const load = (runId: string) => Effect.sync(() => Option.map(Option.fromUndefinedOr(runs.get(runId)?.state), open))

  const head = (runId: string) =>
    Effect.sync(() => Option.map(Option.fromUndefinedOr(runs.get(runId)), (kept) => headOf(kept.state, kept.lease)))

  const read = (runId: string, fromRevision = 0) =>
    Stream.suspend(() => Stream.fromArray(recordsOf(runs.get(runId), fromRevision)))

  const tail = (runId: string, from = 0) =>
    Stream.unwrap(
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => {
            const mailbox = Mailbox.make<RunRecord>({ limit: Infinity, keep: () => true })
            if (isOver) mailbox.end()
            recordsOf(runs.get(runId), from).forEach(mailbox.offer)
            const follower = { runId, from, mailbox }
            followers.add(follower)
            return follower
          }),
          (follower) => Effect.sync(() => followers.delete(follower))
        ),
        ({ mailbox }) => mailbox.stream
      )
    )

  const list = (filter: RunFilter = {}) =>
    Effect.sync(() => {
      const found: Array<RunHead> = []
      const asked = Search.wanted(filter.search)
      for (const kept of runs.values()) {
        const head = headOf(kept.state, kept.lease)
        if (matches(head, filter) && Search.mentions(kept.state, asked)) found.push(head)
      }
      return found.sort(inOrder(filter)).slice(0, atMost(filter))
    })

  const acquire = (runId: string, lease: Lease, now: number) =>
    Effect.suspend((): Effect.Effect<void, RunBusy | RunNotFound> => {
      const kept = runs.get(runId)
      if (kept === undefined) return Effect.fail(new RunNotFound({ runId }))
      const held = kept.lease
      if (held !== undefined && held.workerId !== lease.workerId && held.expiresAt > now) {
        return Effect.fail(new RunBusy({ runId, ...held }))
      }
      kept.lease = lease
      return Effect.void
    })

  const release = (runId: string, workerId: string) =>
    Effect.sync(() => {
      const kept = runs.get(runId)
      if (kept?.lease?.workerId === workerId) kept.lease = undefined
    })

  const remove = (runIds: ReadonlyArray<string>) =>
    Effect.sync(() => {
      for (const runId of runIds) runs.delete(runId)
    })

  const commitAll: Required<RunStoreShape>["commitAll"] = (records, states) =>
    Effect.suspend(() => {
      const refused = commitNow(records, states)
      return refused === undefined ? Effect.void : Effect.fail(refused)
    })

  const commit = (record: RunRecord, state: RunState) => commitAll([record], [state])

  const end = () => {
    isOver = true
    for (const { mailbox } of followers) mailbox.end()
  }

  const store = { create, commit, commitAll, load, head, read, tail, list, acquire, release, remove }
  return { store: taking(store, commitNow), end }
}

// An acknowledgement was lost: the same record comes again, as it is or made anew.
const isSame = (kept: Kept | undefined, record: RunRecord): boolean => {
  const entry = kept?.journal[record.revision - 1]
  if (kept === undefined || entry === undefined || entry === record) return entry === record
  const [one, other] = [RunCodec.encodeRecord(recordOf(kept.workerId, entry)), RunCodec.encodeRecord(record)]
  if (Result.isFailure(one) || Result.isFailure(other)) return false
  // Both were made by this process: what they say is compared as it is, without the schemas of what is read back.
  return Equal.equals(JSON.parse(one.success), JSON.parse(other.success))
}
