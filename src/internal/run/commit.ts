/**
 * Advances a run: folds events into its state, queues their records, then stores and publishes them.
 *
 * State advances only in `record` and `commit`. Records stay pending until the next `flush`: before a model call,
 * before a `write` skill runs, before a hook or a policy runs, and when the run stops. Code outside the kernel never
 * sees an unstored record.
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { PhaseEvent } from "../../RunRecord.ts"
import type { Delta, RunRecord } from "../../RunState.ts"
import { move } from "../state/advance.ts"
import { State, stepOf, turnLog } from "../state/state.ts"
import type { FlushError } from "../../store-kit/internal/storeGuard.ts"
import { type Draft, publish, scoped, timeOf } from "./publish.ts"
import { type Run, noDelta } from "./run.ts"

/** Folds an event into the run's state and queues its record for the next flush. Synchronous. */
export const record = (run: Run, event: Draft, op: RunRecord["op"] = "phase"): void => commit(run, op, [event], noDelta)

/** Folds several events, or a change that no event describes, into one record. Synchronous. */
export const commit = (run: Run, op: RunRecord["op"], drafts: ReadonlyArray<Draft>, delta: Delta): void => {
  const { runId, revision } = run.state
  const at = timeOf(run)
  const step = drafts[0]?.type === "turn_started" ? turnLog(run.state).length : stepOf(run.state)
  const events: Array<PhaseEvent> = []
  for (const draft of drafts) events.push(scoped(run.state, step, at, draft))
  const entry: RunRecord = {
    runId,
    revision: revision + 1,
    op,
    events,
    delta: run.next === noDelta ? delta : { ...run.next, ...delta },
    createdAt: at,
    workerId: run.workerId
  }
  run.next = noDelta
  move(run.state, entry)
  run.records.push(entry)
  // Queued even without a listener, because a follower may join before they are stored.
  for (const event of events) run.events.push(event)
}

/** Appends all pending records to the store, then publishes their events, even while the run is being interrupted. */
export const flush = (run: Run): Effect.Effect<void, FlushError> => locked(run, appendPending(run))

/** Flushes and runs `body` before any other flush of the run can start. */
export const flushed = <A, E>(run: Run, body: Effect.Effect<A, E>): Effect.Effect<A, E | FlushError> =>
  locked(run, Effect.andThen(Effect.uninterruptible(appendPending(run)), body))

/** Serializes flushes of concurrent calls. Without concurrent calls there is no lock. */
const locked = <A, E>(run: Run, body: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.suspend(() => (run.lock === undefined ? body : Effect.uninterruptible(run.lock.withPermits(1)(body))))

const appendPending = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, FlushError> {
  const { failed, records } = run
  if (failed !== undefined) return yield* Effect.fail(failed)
  if (!Arr.isArrayNonEmpty(records)) return
  const events = run.events.length
  const state = new State(run.state)
  run.records = []
  const exit = yield* Effect.exit(run.store.append(records, state))
  if (Exit.isSuccess(exit)) {
    run.published = state.revision
    return publish(run, events)
  }
  run.failed = exit.cause.reasons.find(Cause.isFailReason)?.error
  // A store that died may have stored nothing, so the records are sent once more when the run stops. Of records behind
  // a cancellation, the usage is still stored.
  const { failed: fault } = run
  const isKept = fault?._tag === "ConcurrentAppendError" || (fault?._tag === "StoreError" && fault.reason === "invalid")
  if (isKept) run.records = records.concat(run.records)
  return yield* exit
})

/** Number of pending records after which a run flushes and yields. */
export const manyRecords = 256
