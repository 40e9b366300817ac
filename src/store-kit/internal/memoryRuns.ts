/**
 * A run store in memory: a map of journals, and their followers.
 */

import type * as Arr from "effect/Array"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, type StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { PhaseEvent } from "../../RunEvent.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import type {
  Claim,
  Lease,
  Notes,
  RunFilter,
  RunHead,
  RunStoreShape,
  Tags
} from "../../internal/store/runStoreTypes.ts"
import { isEmpty } from "../../kit/json.ts"
import * as Streams from "../../kit/streams.ts"
import { open } from "../../internal/state/state.ts"
import * as Polling from "../Polling.ts"
import * as Ended from "./endedRuns.ts"
import { type Listener, emitted } from "../Offers.ts"
import {
  areStored,
  atMost,
  headOf,
  inOrder,
  leaseOf,
  matches,
  movedSince,
  refusal,
  sortedNotes,
  tagsAfter,
  tagsBy,
  withTags
} from "../StoreRules.ts"
import * as StoreSearch from "../StoreSearch.ts"

/** A store and its finalizer. */
interface Memory {
  readonly store: RunStoreShape
  /** Ends the streams of all present and future followers. */
  readonly end: () => void
}

/** The runs of a store, and the followers of their journals. */
interface Runs {
  readonly kept: Map<string, Kept>
  readonly ended: Ended.EndedRuns
  readonly followers: Set<Follower>
  /** Called with each run that is offered. */
  readonly listeners: Set<Listener>
  readonly clock: Clock.Clock
  readonly changes: Polling.Followers
  readonly cancellations: Polling.Cancellations
  isOver: boolean
}

interface Kept {
  readonly journal: Array<Entry>
  /** The worker of the first record, and almost always of all of them. */
  readonly workerId: string
  bytes: number
  state: RunState
  lease: Held | undefined
  tags: ReadonlyArray<string>
}

/** A lease, with its end by the monotonic clock. */
interface Held extends Omit<Lease, "isLive"> {
  readonly until: bigint
}

/** A follower of a run from a revision on. */
interface Follower {
  readonly runId: string
  readonly from: number
  readonly mailbox: Streams.Mailbox<RunRecord>
}

/** Creates an empty store, which drops the oldest ended runs beyond its limits. Its leases follow `clock`. */
export const make = (limits: Ended.EndedLimits, clock: Clock.Clock): Memory => {
  const runs: Runs = {
    kept: new Map(),
    ended: Ended.make(limits),
    followers: new Set(),
    listeners: new Set(),
    cancellations: Polling.cancellations(),
    changes: Polling.followers(),
    clock,
    isOver: false
  }
  const find = (runId: string) => Option.fromUndefinedOr(runs.kept.get(runId))
  return {
    store: {
      append: (records, state) => Effect.suspend(() => append(runs, records, state)),
      load: (runId) => Effect.sync(() => Option.map(find(runId), ({ state }) => open(state))),
      head: (runId) => Effect.sync(() => Option.map(find(runId), (run) => headIn(runs, run))),
      read: (runId, from = 0) => Stream.suspend(() => Stream.fromArray(recordsOf(runs.kept.get(runId), from))),
      tail: (runId, from = 0) => Stream.unwrap(Effect.map(follow(runs, runId, from), ({ mailbox }) => mailbox.stream)),
      list: (filter = {}) => Effect.sync(() => list(runs, filter)),
      acquire: (runId, claim) => Effect.suspend(() => acquire(runs, runId, claim)),
      release: (runId, workerId) => Effect.sync(() => release(runs, runId, workerId)),
      cancelled: (runId) =>
        Effect.suspend(() =>
          runs.kept.get(runId)?.state.status.type === "cancelled" ? Effect.void : runs.cancellations.of(runId)
        ),
      offers: emitted((listener) => {
        runs.listeners.add(listener)
        return () => void runs.listeners.delete(listener)
      }),
      changes: { next: runs.changes.next, recheck: Infinity },
      notes: notesIn(new Map(), Polling.followers()),
      tags: tagsIn(runs),
      remove: (runIds) =>
        Effect.sync(() => {
          for (const runId of runIds) remove(runs, runId)
        })
    },
    end: () => {
      runs.isOver = true
      for (const { mailbox } of runs.followers) mailbox.end()
    }
  }
}

const notesIn = (texts: Map<string, string>, { next, wake }: Polling.Followers): Notes => ({
  list: (prefix) =>
    Effect.sync(() =>
      sortedNotes(
        Array.from(texts, ([key, text]) => ({ key, text })),
        prefix
      )
    ),
  set: (key, text) =>
    Effect.sync(() => {
      if (text === undefined) texts.delete(key)
      else texts.set(key, text)
      wake()
    }),
  changes: { next, recheck: Infinity }
})

const tagsIn = ({ kept }: Runs): Tags =>
  tagsBy((change, tag, runIds) =>
    Effect.sync(() => {
      for (const runId of runIds) {
        const run = kept.get(runId)
        if (run !== undefined) run.tags = tagsAfter(run.tags, change, tag)
      }
    })
  )

// ---------------------------------------------------------------- appending

const append = (
  runs: Runs,
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  state: RunState
): Effect.Effect<void, RunExists | ConcurrentAppendError | StoreError> => {
  const { ended, followers, kept } = runs
  const refused = refusal(records, state)
  if (refused !== undefined) return Effect.fail(refused)
  const [{ revision, runId, workerId }] = records
  const run = kept.get(runId)
  const actual = run?.journal.length ?? 0
  const expected = revision - 1
  if (actual !== expected) {
    if (areStored(records, recordsOf(run, expected))) return Effect.void
    if (expected === 0) return Effect.fail(new RunExists({ runId }))
    return Effect.fail(new ConcurrentAppendError({ runId, expected, actual }))
  }
  for (const record of records) {
    const misfit = RunCodec.refusal(record)
    if (misfit !== undefined) return Effect.fail(misfit)
  }
  const target = run ?? { journal: [], workerId, bytes: 0, state, lease: undefined, tags: [] }
  if (run === undefined) kept.set(runId, target)
  for (const record of records) {
    target.journal.push(entryOf(target.workerId, record))
    target.bytes += Ended.weighRecord(record)
  }
  target.state = state
  for (const follower of followers) if (follower.runId === runId) offer(follower, records)
  if (state.status.type === "cancelled") runs.cancellations.complete(runId)
  runs.changes.wake(runId)
  for (const id of Ended.note(ended, kept, state)) remove(runs, id)
  return Effect.void
}

const remove = ({ ended, kept }: Runs, runId: string): void => {
  const run = kept.get(runId)
  if (run === undefined) return
  kept.delete(runId)
  Ended.forget(ended, run.state)
}

/** A record, or its only event if the record can be rebuilt from it. Most records are kept as events to save memory. */
type Entry = RunRecord | PhaseEvent

const entryOf = (workerId: string, record: RunRecord): Entry => {
  const event = record.events[0]
  return event !== undefined && canRebuild(workerId, event, record) ? event : record
}

/** Returns whether `recordOf` can rebuild a record from its first event. */
const canRebuild = (workerId: string, { at, revision, runId }: PhaseEvent, record: RunRecord): boolean =>
  record.events.length === 1 &&
  record.op === "phase" &&
  isEmpty(record.delta) &&
  record.runId === runId &&
  record.revision === revision &&
  record.createdAt === at &&
  record.workerId === workerId

// ---------------------------------------------------------------- reading

const recordOf = (workerId: string, entry: Entry): RunRecord => {
  if ("op" in entry) return entry
  const { at, revision, runId } = entry
  return { runId, revision, op: "phase", events: [entry], delta: {}, createdAt: at, workerId }
}

const recordsOf = (run: Kept | undefined, from: number): ReadonlyArray<RunRecord> =>
  run === undefined ? [] : run.journal.slice(from).map((entry) => recordOf(run.workerId, entry))

const follow = (runs: Runs, runId: string, from: number): Effect.Effect<Follower, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const mailbox = Streams.mailbox<RunRecord>({ limit: Infinity, keep: () => true })
      const follower = { runId, from, mailbox }
      if (runs.isOver) mailbox.end()
      offer(follower, recordsOf(runs.kept.get(runId), from))
      runs.followers.add(follower)
      return follower
    }),
    (follower) => Effect.sync(() => runs.followers.delete(follower))
  )

const offer = ({ from, mailbox }: Follower, records: ReadonlyArray<RunRecord>): void => {
  for (const record of records) if (record.revision > from) mailbox.offer(record)
}

const list = (runs: Runs, filter: RunFilter): ReadonlyArray<RunHead> => {
  const found: Array<RunHead> = []
  const wanted = StoreSearch.wordsOf(filter.search)
  const { prefix = "" } = filter
  for (const [runId, run] of runs.kept) {
    if (!runId.startsWith(prefix)) continue
    const head = headIn(runs, run)
    if (matches(head, filter) && StoreSearch.mentions(run.state, wanted)) found.push(head)
  }
  return found.sort(inOrder(filter)).slice(0, atMost(filter))
}

// ---------------------------------------------------------------- leases

const headIn = ({ clock }: Runs, { lease, state, tags }: Kept): RunHead => {
  if (lease === undefined) return withTags(headOf(state), tags)
  const { until: _, ...kept } = lease
  return withTags(headOf(state, { ...kept, isLive: isLive(clock, lease) }), tags)
}

const isLive = (clock: Clock.Clock, { until }: Held): boolean => clock.monotonicTimeNanosUnsafe() < until

const heldFor = (clock: Clock.Clock, workerId: string, millis: number, before: Held | undefined): Held => {
  if (millis === 0) return { workerId, expiresAt: 0, until: 0n }
  const now = clock.currentTimeMillisUnsafe()
  const isRenewed = before?.workerId === workerId && isLive(clock, before)
  return {
    workerId,
    expiresAt: now + millis,
    since: (isRenewed ? before.since : undefined) ?? now,
    until: clock.monotonicTimeNanosUnsafe() + BigInt(Math.round(millis * 1e6))
  }
}

const acquire = (
  { changes, clock, kept, listeners }: Runs,
  runId: string,
  claim: Claim
): Effect.Effect<void, RunBusy | RunNotFound | ConcurrentAppendError | StoreError> => {
  const lease = leaseOf(claim)
  if (Result.isFailure(lease)) return Effect.fail(lease.failure)
  const run = kept.get(runId)
  if (run === undefined) return Effect.fail(new RunNotFound({ runId }))
  const held = run.lease
  if (held !== undefined && held.workerId !== claim.workerId && isLive(clock, held)) {
    return Effect.fail(new RunBusy({ runId, workerId: held.workerId, expiresAt: held.expiresAt }))
  }
  const moved = movedSince(claim, headOf(run.state))
  if (moved !== undefined) return Effect.fail(moved)
  run.lease = heldFor(clock, claim.workerId, lease.success, held)
  if (lease.success === 0) {
    for (const listener of listeners) listener(runId)
    changes.wake(runId)
  }
  return Effect.void
}

const release = (runs: Runs, runId: string, workerId: string): void => {
  const { ended, kept } = runs
  const run = kept.get(runId)
  if (run?.lease?.workerId !== workerId) return
  run.lease = undefined
  for (const id of Ended.noteInterrupted(ended, kept, run.state)) remove(runs, id)
}
