/**
 * Cancels stored runs, from any process, and runs a loop until its run is cancelled.
 *
 * A cancellation is a record like any other. Appending it fences out the process that executes the run: that process
 * can append nothing more and stops. A run that no process executes is at rest immediately.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import type { CancelError, ConcurrentAppendError, RunCancelled, RunNotFound, StoreError } from "../../KernelError.ts"
import { NotRootRun, RunAlreadyCompleted } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { CancelOptions } from "../../RunOptions.ts"
import type { PhaseEvent, RunRecord } from "../../RunRecord.ts"
import { type CallLeft, type RunState, advance } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import { redact } from "../../kit/redact.ts"
import { expenseOf } from "../state/expenses.ts"
import { stepOf } from "../state/state.ts"
import { foldFrom } from "../../store-kit/StoreRules.ts"
import { stored, treeOf } from "../../store-kit/StoredRuns.ts"
import { patient } from "../../store-kit/internal/storeGuard.ts"
import { randomId } from "../../kit/randomId.ts"
import { cancelled } from "./conclude.ts"
import { timeOf } from "./publish.ts"
import type { Run } from "./run.ts"

/**
 * Everything that a cancellation ended. Empty for a run that was cancelled before.
 *
 * @category models
 * @since 0.1.0
 */
export interface Cancelled {
  /** The runs that had not ended, the root first. */
  readonly runs: ReadonlyArray<string>
  /** The workers that had the root run. They notice within about 100 milliseconds. */
  readonly workers: ReadonlyArray<string>
  /** The runs whose model was being asked. Its reply is discarded, and what it used is counted. */
  readonly requests: ReadonlyArray<string>
  /** The calls that were in flight. A `write` call may have acted. */
  readonly calls: ReadonlyArray<CallLeft & { readonly runId: string }>
}

/**
 * Cancels a run and the runs below it, the root first. A cancelled run stays as it is, so an interrupted cancellation
 * can be repeated.
 */
export const cancel = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  runId: string,
  options: CancelOptions
): Effect.fn.Return<Cancelled, RunNotFound | NotRootRun | RunAlreadyCompleted | ConcurrentAppendError | StoreError> {
  const workerId = `${options.workerId ?? "local"}#${randomId(yield* Random.Random)}`
  const writer = { store: patient(store, yield* Limits), workerId, options }
  const [root, head] = yield* Effect.all([stored(store, runId), store.head(runId)], { concurrency: 2 })
  const { parentRunId, rootRunId } = root
  if (parentRunId !== undefined) return yield* new NotRootRun({ runId, rootRunId })
  const { lease } = Option.getOrUndefined(head) ?? {}
  const first = yield* cancelRun(writer, root)
  const [, ...below] = yield* treeOf(store, first.state)
  const others = yield* Effect.forEach(
    below,
    (task) => Effect.catchTag(cancelRun(writer, task), "RunAlreadyCompleted", () => Effect.succeed(nothing)),
    { concurrency: 8 }
  )
  const ended = [first, ...others].flatMap(({ before }) => before ?? [])
  return {
    runs: ended.map(({ runId }) => runId),
    workers: ended.length > 0 && lease?.isLive === true ? [lease.workerId] : [],
    requests: ended.flatMap(({ runId, status }) => (status.phase === "model_started" ? [runId] : [])),
    calls: ended.flatMap((state) => leftIn(state).map((call) => ({ runId: state.runId, ...call })))
  }
})

/** A cancelled run, and its state before. Undefined for a run that was cancelled already. */
interface Ended {
  readonly state: RunState
  readonly before: RunState | undefined
}

const nothing = { before: undefined }

/**
 * Runs a loop, and interrupts the loop of a root run once its cancellation is stored. This also ends the runs below it.
 */
export const untilCancelled = <E>(
  run: Run,
  loop: Effect.Effect<void, E>
): Effect.Effect<void, E | RunCancelled | StoreError> => {
  if (run.state.depth > 0) return loop
  const { signal } = run
  // A signal that has already been aborted cancels the run before its first step.
  if (signal?.aborted === true) return run.restore(Effect.andThen(cancelBySignal(run, signal), failOnceCancelled(run)))
  const stopped =
    signal === undefined ? failOnceCancelled(run) : Effect.raceFirst(failOnceCancelled(run), onAbort(run, signal))
  return run.restore(Effect.raceFirst(Effect.uninterruptible(loop), stopped))
}

/** Returns the cancellation of a root run. Undefined if it is not cancelled. */
export const cancellationOf = (run: Run): Effect.Effect<RunCancelled | undefined, StoreError> =>
  Effect.map(run.store.head(run.state.runId), (head) => {
    const status = Option.getOrUndefined(head)?.status
    if (status?.type !== "cancelled") return undefined
    return cancelled(run.state.runId, status)
  })

/** Publishes the cancellation of a root run, and cancels child runs that were created in the meantime. */
export const afterCancellation = (run: Run, { by, reason }: RunCancelled): Effect.Effect<void, CancelError> =>
  Effect.andThen(publishCancellation(run), cancel(run.store, run.state.runId, { by, reason, workerId: run.holder }))

/**
 * Stores what a cancelled run used before it stopped, behind its cancellation. A run that was not cancelled, or was
 * resumed in the meantime, stays as it is.
 */
export const storeLateExpense = Effect.fnUntraced(function* (
  run: Run
): Effect.fn.Return<void, ConcurrentAppendError | StoreError> {
  const spent = expenseOf([...run.records, { delta: run.next, events: [] }])
  if (spent === undefined) return
  const { runId } = run.state
  const state = yield* stored(run.store, runId).pipe(Effect.catchTag("RunNotFound", () => Effect.undefined))
  if (state?.status.type !== "cancelled") return
  const revision = state.revision + 1
  const createdAt = timeOf(run)
  const record: RunRecord = {
    runId,
    revision,
    op: "phase",
    events: [],
    delta: { spent },
    createdAt,
    workerId: run.workerId
  }
  yield* Effect.catchTag(run.store.append([record], advance(state, record)), "RunExists", Effect.die)
})

/** Cancels a child run of an active run, and the runs below it. A run that has ended stays as it is. */
export const cancelChild = Effect.fnUntraced(function* (
  { holder, store }: Run,
  runId: string,
  options: Pick<CancelOptions, "reason" | "by">
): Effect.fn.Return<void, ConcurrentAppendError | StoreError> {
  const child = Option.getOrUndefined(yield* store.load(runId))
  if (child === undefined) return
  const writer = { store, workerId: `${holder}#${randomId(yield* Random.Random)}`, options }
  for (const run of yield* treeOf(store, child)) {
    yield* Effect.catchTag(cancelRun(writer, run), "RunAlreadyCompleted", () => Effect.void)
  }
})

/** The writer of a cancellation. */
interface Writer {
  readonly store: RunStore.RunStoreShape
  readonly workerId: string
  readonly options: Pick<CancelOptions, "reason" | "by">
}

/** Appends the cancellation of one run. Tries again behind records that were stored in the meantime. */
const cancelRun = Effect.fnUntraced(function* (
  writer: Writer,
  from: RunState
): Effect.fn.Return<Ended, RunAlreadyCompleted | ConcurrentAppendError | StoreError> {
  const { store } = writer
  const { runId } = from
  let state = from
  for (let attempt = 1; ; attempt++) {
    if (state.status.type === "cancelled") return { state, before: undefined }
    if (state.status.type === "completed") return yield* new RunAlreadyCompleted({ runId })
    const record = yield* cancellation(writer, state)
    const next = advance(state, record)
    const late = yield* Effect.catchTags(Effect.as(store.append([record], next), undefined), {
      // `RunExists` is an error of first records only.
      RunExists: (error) => Effect.die(error),
      ConcurrentAppendError: (error) => Effect.succeed(error)
    })
    if (late === undefined) return { state: next, before: state }
    if (attempt === attempts) return yield* late
    const since = yield* Stream.runCollect(store.read(runId, state.revision))
    state = (yield* foldFrom(state, since)) ?? state
  }
})

/** Even for a run that appends constantly, an attempt soon succeeds between two of its records. */
const attempts = 100

const cancellation = ({ options, workerId }: Writer, state: RunState): Effect.Effect<RunRecord> =>
  Effect.map(Clock.currentTimeMillis, (at) => {
    const revision = state.revision + 1
    const event = { ...cancelledEvent(state, options), ...scopeOf(state, at), revision }
    return { runId: state.runId, revision, op: "pause", events: [event], delta: {}, createdAt: at, workerId }
  })

const scopeOf = (state: RunState, at: number) => {
  const { depth, rootRunId, runId, taskId } = state
  return { runId, rootRunId, step: stepOf(state), depth, taskId, at }
}

type CancelledEvent = Extract<PhaseEvent, { readonly type: "run_cancelled" }>

/** Returns the event that cancels a run at its current phase. */
const cancelledEvent = (
  state: Pick<RunState, "currentTurn">,
  { by, reason }: Pick<CancelOptions, "reason" | "by">
): Pick<CancelledEvent, "type" | "reason" | "by" | "inFlight"> => ({
  type: "run_cancelled",
  ...(reason === undefined ? {} : { reason }),
  ...(by === undefined ? {} : { by }),
  inFlight: leftIn(state)
})

const leftIn = ({ currentTurn }: Pick<RunState, "currentTurn">): ReadonlyArray<CallLeft> =>
  (currentTurn?.inFlight ?? []).map(({ callId, effects, name }) => ({
    callId,
    name,
    ...(effects === undefined ? {} : { effects })
  }))

/** Fails once the run is cancelled. */
const failOnceCancelled = (run: Run): Effect.Effect<never, RunCancelled> =>
  Effect.flatMap(run.store.cancelled(run.state.runId), () =>
    Effect.flatMap(
      Effect.orElseSucceed(cancellationOf(run), () => undefined),
      // The run may have been resumed since the cancellation was announced.
      (found) => (found === undefined ? Effect.andThen(Effect.sleep(100), failOnceCancelled(run)) : Effect.fail(found))
    )
  )

/** Publishes the stored cancellation. Events that could not be stored before it are dropped. */
const publishCancellation = (run: Run): Effect.Effect<void, StoreError> =>
  Effect.suspend(() => {
    run.events = []
    const { publish } = run.live
    if (publish === undefined) return Effect.void
    const { runId } = run.state
    return Effect.flatMap(run.store.head(runId), (head) => {
      const last = Option.getOrUndefined(head)?.revision ?? 1
      return Stream.runForEach(run.store.read(runId, last - 1), ({ events }) =>
        Effect.sync(() => {
          for (const event of events) if (event.type === "run_cancelled") publish(event, run.agent.name)
        })
      )
    })
  })

/** Cancels the run when its signal is aborted. `failOnceCancelled` then ends the loop. */
const onAbort = (run: Run, signal: AbortSignal): Effect.Effect<never, StoreError> =>
  Effect.andThen(
    Effect.callback<void>((resume) => {
      const abort = () => resume(Effect.void)
      signal.addEventListener("abort", abort, { once: true })
      return Effect.sync(() => signal.removeEventListener("abort", abort))
    }),
    Effect.andThen(cancelBySignal(run, signal), Effect.never)
  )

/** Cancels the run because of its signal. A run that has ended or was removed stays as it is. */
const cancelBySignal = (run: Run, signal: AbortSignal): Effect.Effect<void, StoreError> => {
  const { holder, state, store } = run
  const stored = Effect.suspend(() =>
    cancel(store, state.runId, { reason: textOf(signal.reason), by: "signal", workerId: holder })
  )
  return Effect.catch(
    Effect.retry(stored, { while: (error) => error._tag === "ConcurrentAppendError" }),
    (error): Effect.Effect<void, StoreError> => (error._tag === "StoreError" ? Effect.fail(error) : Effect.void)
  )
}

/** Returns the reason of an abort as redacted text. */
const textOf = (reason: unknown): string => redact(reason instanceof Error ? reason.message : String(reason))
