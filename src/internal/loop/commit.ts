/**
 * How a run moves: the record, the new state, the store, the events.
 *
 * `commit` is the only place where state advances. What it made waits for the
 * next barrier: before a model is asked, a call is launched, a hook or a policy
 * is heard, and when the run stops. There it goes to the store, all at once
 * where the store can, else one revision after the other, and is told. So no
 * other ever sees what is not stored.
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { ConcurrentAppendError, StoreError } from "../../KernelError.ts"
import type { CallEvent, PhaseEvent, RunEvent, RunScope, TaskEvent, TurnEvent } from "../../RunEvent.ts"
import type { Delta, RunRecord, RunState } from "../../RunState.ts"
import { answer as answerOf, result as resultOf } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import { advance } from "../state/advance.ts"
import * as InTime from "../base/inTime.ts"
import type { JsonObject } from "../base/json.ts"
import * as MemoryRuns from "../store/memoryRuns.ts"
import { isHiccup } from "../base/transient.ts"
import { redact } from "../base/redact.ts"
import { type Ground, now, type Outbox, type Run, stepOf } from "./run.ts"
import { turnLog } from "../state/state.ts"

/** What can go wrong around a commit: nothing else may be tried on this run then. */
export type CommitError = ConcurrentAppendError | StoreError

/** The facts of an event that its run fills in. */
export type Draft = PhaseEvent extends infer E
  ? E extends PhaseEvent
    ? Omit<E, keyof RunScope | "revision">
    : never
  : never

type LiveOf<E> = E extends RunScope ? Omit<E, keyof RunScope> : never
/** A live event without its scope. */
export type Live =
  | LiveOf<TurnEvent | CallEvent | TaskEvent>
  | { readonly type: "skill_execute"; readonly skill: string; readonly callId: string; readonly input: unknown }
  | {
      readonly type: "skill_result"
      readonly skill: string
      readonly callId: string
      readonly output: unknown
      readonly durationMs: number
      readonly metadata?: JsonObject
      readonly truncated?: boolean
    }

/** Publishes something that is not part of the journal. */
export const tell = (run: Run, event: Live): void => {
  if (run.tell === undefined) return
  const { depth, rootRunId, runId, taskId } = run.state
  const scope = { runId, rootRunId, step: stepOf(run.state), depth, taskId, at: timeOf(run) }
  const told: RunEvent = Object.assign(scope, event)
  // It comes after what happened before it.
  if (run.outbox.records.length > 0) run.outbox.events.push(told)
  else run.tell(told)
}

/** What waits for the same barrier has one time. */
const timeOf = (run: Run): number => run.outbox.records.at(-1)?.createdAt ?? now(run)

const nothing: Delta = {}

/**
 * One commit: the record and the new state, which wait for the next barrier.
 *
 * The state has moved when this returns: a dozen steps of a turn cost no effect
 * of their own. So it is called when it is due, not before. Calls that run
 * beside each other share a lock: their commits are stored at once.
 */
export const commit = (
  run: Run,
  op: RunRecord["op"],
  events: ReadonlyArray<Draft>,
  delta: Delta = nothing
): Effect.Effect<void, CommitError> => {
  const { outbox } = run
  if (run.lock !== undefined) return locked(run, Effect.uninterruptible(write(run, op, events, delta)))
  const record = recordOf(run, op, events, delta)
  enter(run, advance(run.state, record))
  outbox.records.push(record)
  outbox.states.push(run.state)
  announce(run, run.state, record, outbox.events)
  return Effect.void
}

/** What happens while no other call of the run commits. */
export const locked = <A, E>({ lock }: Run, body: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  lock === undefined ? body : lock.withPermits(1)(body)

/** A barrier: what waits is stored, even while the run is being interrupted, and told (DR-7). */
export const flush = (run: Run): Effect.Effect<void, CommitError> =>
  Effect.uninterruptible(Effect.suspend(() => send(run)))

/** Nothing that waits to be stored. */
export const emptyOutbox = (): Outbox => ({ records: [], states: [], events: [] })

/** So many revisions have one time limit and one patience. */
const atOnce = 32

/** A barrier where nothing can interrupt: what waits is taken when this is called, so it is called when it is due. */
export const send = (run: Run): Effect.Effect<void, CommitError> => {
  const { outbox } = run
  if (outbox.records.length === 0) return Effect.void
  const sent = outbox.records.length <= atOnce ? sendGroup(run, outbox) : sendFrom(run, outbox, 0, 0)
  // A store that throws has taken nothing: all of it waits on.
  run.outbox = emptyOutbox()
  return sent
}

/** Sends group by group, from the records at `start` and the events at `told` on. */
const sendFrom = (run: Run, outbox: Outbox, start: number, told: number): Effect.Effect<void, CommitError> => {
  const records = outbox.records.slice(start, start + atOnce)
  const last = records.at(-1)
  if (last === undefined) return Effect.void
  const end = endOf(outbox.events, told, last)
  const states = outbox.states.slice(start, start + atOnce)
  const group = { records, states, events: outbox.events.slice(told, end) }
  return Effect.flatMap(sendGroup(run, group), () => sendFrom(run, outbox, start + atOnce, end))
}

const sendGroup = (run: Run, outbox: Outbox): Effect.Effect<void, CommitError> => {
  const { store } = run
  const { events, records, states } = outbox
  if (!Arr.isArrayNonEmpty(records) || !Arr.isArrayNonEmpty(states)) return Effect.void
  const direct = MemoryRuns.direct(store)
  if (direct !== undefined) {
    // A store of this process neither hangs nor forgets to answer: nobody waits for it in a fiber of its own.
    const refused = direct(records, states)
    if (refused !== undefined) return Effect.fail(refused)
    tellAll(run, events)
    return Effect.void
  }
  const last = records.at(-1) ?? records[0]
  if (store.commitAll === undefined) return patiently(run, last, oneByOne(run, outbox))
  return Effect.map(patiently(run, last, store.commitAll(records, states)), () => tellAll(run, events))
}

/** Stores and tells one revision after the other. What failed goes on, when it is run again, where it failed. */
const oneByOne = (run: Run, { events, records, states }: Outbox): Effect.Effect<void, CommitError> => {
  let next = 0
  let told = 0
  let tried = -1
  const rest: Effect.Effect<void, CommitError> = Effect.suspend(() => {
    const [record, state] = [records[next], states[next]]
    if (record === undefined || state === undefined) return Effect.void
    const sent = run.store.commit(record, state)
    // Whoever is late tells nothing.
    const stored = tried === next ? Effect.andThen(sent, stillLast(run.store, record)) : sent
    tried = next
    return Effect.flatMap(stored, () => {
      next++
      const end = endOf(events, told, record)
      tellAll(run, events.slice(told, end))
      told = end
      return rest
    })
  })
  return rest
}

/** Where the events from `start` on are those of a later record. */
const endOf = (events: ReadonlyArray<RunEvent>, start: number, { revision }: RunRecord): number => {
  let end = start
  for (let event = events[end]; event !== undefined; event = events[++end]) {
    if ("revision" in event && event.revision > revision) break
  }
  return end
}

const tellAll = (run: Run, events: ReadonlyArray<RunEvent>): void => {
  if (run.tell !== undefined) for (const event of events) run.tell(event)
}

/** Stores a commit at once, for callers that hold the lock already. */
export const write = (
  run: Run,
  op: RunRecord["op"],
  events: ReadonlyArray<Draft>,
  delta: Delta
): Effect.Effect<void, CommitError> =>
  Effect.suspend(() => {
    const record = recordOf(run, op, events, delta)
    const state = advance(run.state, record)
    const told = announce(run, state, record, [])
    const group = { records: [record], states: [state], events: told }
    const written = Effect.map(sendGroup(run, group), () => enter(run, state))
    // Thousands of calls that end at once, each in a fiber of its own, would let nobody else have a moment.
    return state.revision % 256 === 0 ? Effect.andThen(written, Effect.yieldNow) : written
  })

/** From here on the run is where its record says. */
const enter = (run: Run, state: RunState): void => {
  run.state = state
  run.settled = false
  run.changed = undefined
}

/** Adds what a record that led to a state has to tell, where somebody listens. */
const announce = (run: Run, state: RunState, { events }: RunRecord, told: Array<RunEvent>): Array<RunEvent> => {
  if (run.tell === undefined) return told
  for (const event of events) told.push(event.type === "run_completed" ? withResult(run, state, event) : event)
  return told
}

const recordOf = (run: Run, op: RunRecord["op"], events: ReadonlyArray<Draft>, delta: Delta): RunRecord => {
  const at = timeOf(run)
  const { runId } = run.state
  const revision = run.state.revision + 1
  const first = events[0]
  const step = first?.type === "turn_started" ? turnLog(run.state).length : stepOf(run.state)
  return {
    runId,
    revision,
    op,
    // Nearly all records have one event: no list to fill, no closure to fill it.
    events:
      events.length === 1 && first !== undefined
        ? [scoped(run.state, step, at, first)]
        : events.map((event) => scoped(run.state, step, at, event)),
    delta: run.settled || run.changed !== undefined || run.deferred !== undefined ? pending(run, delta) : delta,
    createdAt: at,
    workerId: run.workerId
  }
}

/** An event of the record that follows a state. The fields all events share come first: such an object is quick to make, and small. */
const scoped = (state: RunState, step: number, at: number, event: Draft): PhaseEvent => {
  const { depth, revision, rootRunId, runId, taskId } = state
  return Object.assign({ runId, rootRunId, step, depth, taskId, at, revision: revision + 1, type: event.type }, event)
}

/**
 * Sends what a store did not take, or did not acknowledge, a few times more: the
 * same record once more is no second one. Without this, every hiccup of a
 * store would leave a call in flight that nobody knows the outcome of.
 */
export const patiently = <E>(
  ground: Pick<Ground, "store"> & { readonly limits: Pick<Ground["limits"], "appendTimeout"> },
  last: { readonly runId: string; readonly revision: number },
  write: Effect.Effect<void, E>,
  waits: ReadonlyArray<number> = [50, 250]
): Effect.Effect<void, E | StoreError | ConcurrentAppendError> =>
  Effect.catchCause(inTime(write, ground.limits.appendTimeout), (cause) => {
    const defect = cause.reasons.find(Cause.isDieReason)
    if (defect !== undefined) return unsound(defect.defect)
    const [wait, ...rest] = waits
    if (wait === undefined || !isHiccup(cause.reasons.find(Cause.isFailReason)?.error)) return Effect.failCause(cause)
    return Effect.andThen(
      Effect.sleep(wait),
      // While it waited, another may have taken the run up from that very record.
      patiently(ground, last, Effect.andThen(write, stillLast(ground.store, last)), rest)
    )
  })

/** Nothing interrupts a run that commits, so a store that hangs would hold it for ever. */
const inTime = <A, E>(asked: Effect.Effect<A, E>, limit: Duration.Duration): Effect.Effect<A, E | StoreError> =>
  InTime.inTime(asked, limit, () =>
    Effect.fail(
      new StoreError({
        operation: "commit",
        reason: "timeout",
        detail: `it took longer than ${Duration.toMillis(limit)} ms`
      })
    )
  )

/** A bug of a store is a failure of it, after which nothing more is tried: what it holds by now is unknown. */
const unsound = (defect: unknown): Effect.Effect<never, StoreError> =>
  Effect.andThen(
    Effect.logError("a store failed unexpectedly", redact(Cause.pretty(Cause.die(defect)))),
    Effect.fail(new StoreError({ operation: "commit", reason: "invalid", detail: "it failed unexpectedly" }))
  )

/** Fails when another has a run by now: its last record is not the one of that revision. */
export const stillLast = (
  store: RunStore.RunStoreShape,
  { revision, runId }: { readonly runId: string; readonly revision: number }
): Effect.Effect<void, StoreError | ConcurrentAppendError> =>
  Effect.flatMap(store.head(runId), (head) => {
    const actualSeq = Option.getOrUndefined(head)?.revision ?? 0
    return actualSeq === revision
      ? Effect.void
      : Effect.fail(new ConcurrentAppendError({ runId, expectedSeq: revision - 1, actualSeq }))
  })

/** Whether the store has a record of this run, also one that failed as it was stored. Who cannot tell says no. */
export const isKept = (
  { limits, state, store, workerId }: Pick<Run, "limits" | "state" | "store" | "workerId">,
  revision: number,
  stored: Exit.Exit<unknown, unknown>
): Effect.Effect<boolean> => {
  if (Exit.isSuccess(stored)) return Effect.succeed(true)
  const found = Stream.runCollect(store.read(state.runId, revision - 1))
  return Effect.catchCause(
    Effect.map(inTime(found, limits.appendTimeout), ([record]) => record?.workerId === workerId),
    () => Effect.succeed(false)
  )
}

/** The result is computed from the journal, so it is told but not kept in it (AC-21). A task's goes to its parent. */
const withResult = (
  { output }: Run,
  state: RunState,
  event: Extract<PhaseEvent, { type: "run_completed" }>
): PhaseEvent =>
  state.depth > 0 || answerOf(state) === undefined ? event : { ...event, result: resultOf(state, output) }

const pending = (run: Run, delta: Delta): Delta => ({
  ...(run.settled ? { settled: true } : {}),
  ...delta,
  ...(run.changed === undefined ? {} : { context: { ...run.changed, ...delta.context } }),
  ...(run.deferred === undefined || run.deferred === run.state.deferred ? {} : { deferred: run.deferred })
})
