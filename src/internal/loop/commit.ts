/**
 * Moves a run: folds events into its state, queues their records, stores them, publishes them.
 *
 * `record` is the only place where state advances. Records stay pending until the next `flush`: before a model is
 * asked, before a `write` skill is entered, before a hook or a policy is asked, and when the run stops. So nobody
 * outside ever sees what is not stored.
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { Delta, RunRecord } from "../../RunState.ts"
import { move } from "../state/advance.ts"
import { State, stepOf, turnLog } from "../state/state.ts"
import type { FlushError } from "../store/storeGuard.ts"
import { type Draft, publish, scoped, timeOf, withResult } from "../run/publish.ts"
import { type Run, noDelta } from "../run/run.ts"

/** Folds an event into the run's state and queues its record for the next flush. Synchronous. */
export const record = (run: Run, event: Draft, op: RunRecord["op"] = "phase"): void => commit(run, op, [event], noDelta)

/** Folds several events, or a change that no event describes, into one record. Synchronous. */
export const commit = (run: Run, op: RunRecord["op"], drafts: ReadonlyArray<Draft>, delta: Delta): void => {
  const { runId, revision } = run.state
  const at = timeOf(run)
  const step = drafts[0]?.type === "turn_started" ? turnLog(run.state).length : stepOf(run.state)
  const entry: RunRecord = {
    runId,
    revision: revision + 1,
    op,
    events: drafts.map((draft) => scoped(run.state, step, at, draft)),
    delta: run.next === noDelta ? delta : { ...run.next, ...delta },
    createdAt: at,
    workerId: run.workerId
  }
  run.next = noDelta
  move(run.state, entry)
  run.records.push(entry)
  // Also without a listener: a follower may join before they are stored.
  for (const event of entry.events) run.events.push(withResult(run.state, run.output, event))
}

/** Appends all pending records to the store, then publishes their events, even while the run is being interrupted. */
export const flush = (run: Run): Effect.Effect<void, FlushError> => locked(run, send(run))

/** Flushes, and lets no other flush of the run begin before `body` has looked at the store. */
export const flushed = <A, E>(run: Run, body: Effect.Effect<A, E>): Effect.Effect<A, E | FlushError> =>
  locked(run, Effect.andThen(send(run), body))

/** Only calls that run beside each other have a lock. */
const locked = <A, E>({ lock }: Run, body: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  lock === undefined ? body : Effect.uninterruptible(lock.withPermits(1)(body))

const send = (run: Run): Effect.Effect<void, FlushError> =>
  Effect.suspend(() => {
    const { failed, records } = run
    if (failed !== undefined) return Effect.fail(failed)
    if (!Arr.isArrayNonEmpty(records)) return Effect.void
    const events = run.events.length
    const state = new State(run.state)
    run.records = []
    return Effect.matchEffect(run.store.append(records, state), {
      onFailure: (error) => {
        run.failed = error
        // A defect of a store may have taken nothing: the run tries once more when it stops.
        if (error._tag === "StoreError" && error.reason === "invalid") run.records = records.concat(run.records)
        return Effect.fail(error)
      },
      onSuccess: () => {
        run.published = state.revision
        publish(run, events)
        return Effect.void
      }
    })
  })

/** After so many records a run lets others have a moment. */
export const manyRecords = 256
