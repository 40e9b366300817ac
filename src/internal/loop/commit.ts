/**
 * Moves a run: folds events into its state, queues their records, stores them, publishes them.
 *
 * `record` is the only place where state advances. Records stay pending until the next `flush`: before a model is
 * asked, before a `write` skill is entered, before a hook or a policy is asked, and when the run stops. So nobody
 * outside ever sees what is not stored.
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { RunEvent } from "../../RunEvent.ts"
import type { Delta, RunRecord } from "../../RunState.ts"
import type { JsonObject } from "../base/json.ts"
import { move } from "../state/advance.ts"
import { State, stepOf, turnLog } from "../state/state.ts"
import type { AppendError, FlushError } from "../store/patientStore.ts"
import { type Draft, type LiveEvent, scoped, withResult } from "./drafts.ts"
import { now, type Run } from "./run.ts"

export type { AppendError, FlushError }

/** Folds an event into the run's state and queues its record for the next flush. Synchronous. */
export const record = (run: Run, event: Draft, op: RunRecord["op"] = "phase"): void => commit(run, op, [event], nothing)

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
    delta: run.next === nothing ? delta : { ...run.next, ...delta },
    createdAt: at,
    workerId: run.workerId
  }
  run.next = nothing
  move(run.state, entry)
  run.records.push(entry)
  run.states.push(new State(run.state))
  // Also without a listener: a follower may join before they are stored.
  for (const event of entry.events) run.events.push(withResult(run.state, run.output, event))
}

/** Adds to the delta of the next record. Synchronous. */
export const carry = (run: Run, delta: Delta): void => {
  run.next = { ...run.next, ...delta }
}

/** Takes fields back out of the delta of the next record. Synchronous. */
export const drop = (run: Run, field: keyof Delta): void => {
  const { [field]: _, ...rest } = run.next
  run.next = Object.keys(rest).length === 0 ? nothing : rest
}

/** Merges into the context of the run, now and with the next record. Synchronous. */
export const mergeContext = (run: Run, context: JsonObject): void => {
  carry(run, { context: { ...run.next.context, ...context } })
  run.state.context = { ...run.state.context, ...context }
}

/** Publishes an event that is not part of the journal, after all events that wait for the store. Synchronous. */
export const emit = (run: Run, event: LiveEvent): void => {
  if (run.live.publish === undefined) return
  const { depth, rootRunId, runId, taskId } = run.state
  const scope = { runId, rootRunId, step: stepOf(run.state), depth, taskId, at: timeOf(run) }
  const published: RunEvent = Object.assign(scope, event)
  if (run.records.length + run.events.length > 0) run.events.push(published)
  else run.live.publish(published, run.agent.name)
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
    const { failed, records, states } = run
    if (failed !== undefined) return Effect.fail(failed)
    if (!Arr.isArrayNonEmpty(records) || !Arr.isArrayNonEmpty(states)) return Effect.void
    const events = run.events.length
    run.records = []
    run.states = []
    return Effect.matchEffect(run.store.append(records, states.at(-1) ?? states[0]), {
      onFailure: (error) => {
        run.failed = error
        // A defect of a store may have taken nothing: the run tries once more when it stops.
        if (error._tag === "StoreError" && error.reason === "invalid") {
          run.records = records.concat(run.records)
          run.states = states.concat(run.states)
        }
        return Effect.fail(error)
      },
      onSuccess: () => {
        run.published = (states.at(-1) ?? states[0]).revision
        publish(run, events)
        return Effect.void
      }
    })
  })

/** Publishes the events of stored records, and those after them that wait for no other record. */
const publish = (run: Run, stored: number): void => {
  const count = run.records.length === 0 ? run.events.length : stored
  const events = run.events.splice(0, count)
  if (run.live.publish !== undefined) for (const event of events) run.live.publish(event, run.agent.name)
}

/** After so many records a run lets others have a moment. */
export const manyRecords = 256

/** A delta without changes. */
export const nothing: Delta = {}

/** Everything that is stored together has one time. */
const timeOf = (run: Run): number => run.records.at(-1)?.createdAt ?? now(run)
