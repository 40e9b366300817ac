/**
 * Cancels stored runs, from any process.
 *
 * A cancellation is a record like any other. It is appended after the last one, so it fences out the process that runs
 * the run: that process can append nothing more, and stops. A run that no process runs is at rest at once.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import {
  type ConcurrentAppendError,
  NotRootRun,
  RunAlreadyCompleted,
  type RunNotFound,
  type StoreError
} from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { CancelOptions } from "../../RunOptions.ts"
import type { PhaseEvent, RunRecord } from "../../RunRecord.ts"
import type { RunState } from "../../RunState.ts"
import { advance } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import { randomId } from "../words/ids.ts"
import { stepOf } from "../state/state.ts"
import { foldFrom } from "../store/journalRules.ts"
import { stored, treeOf } from "../store/stored.ts"
import { patient } from "../store/storeGuard.ts"

/** Writes a cancellation. */
interface Writer {
  readonly store: RunStore.RunStoreShape
  readonly workerId: string
  readonly options: Pick<CancelOptions, "reason" | "by">
}

/**
 * Cancels a run and the runs below it, the root first. A run that is cancelled already stays as it is, so a caller that
 * was cut off repeats the cancellation.
 */
export const cancel = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  runId: string,
  options: CancelOptions
): Effect.fn.Return<void, RunNotFound | NotRootRun | RunAlreadyCompleted | ConcurrentAppendError | StoreError> {
  const workerId = `${options.workerId ?? "local"}#${randomId(yield* Random.Random)}`
  const writer = { store: patient(store, yield* Limits), workerId, options }
  const root = yield* stored(store, runId)
  const { parentRunId, rootRunId } = root
  if (parentRunId !== undefined) return yield* new NotRootRun({ runId, rootRunId })
  const cancelled = yield* cancelRun(writer, root)
  const [, ...below] = yield* treeOf(store, cancelled)
  yield* Effect.forEach(below, (task) => Effect.catchTag(cancelRun(writer, task), "RunAlreadyCompleted", () => none), {
    concurrency: 8,
    discard: true
  })
})

const none = Effect.void

/** Appends the cancellation of one run. Whatever is stored meanwhile comes before it. */
const cancelRun = Effect.fnUntraced(function* (
  writer: Writer,
  from: RunState
): Effect.fn.Return<RunState, RunAlreadyCompleted | ConcurrentAppendError | StoreError> {
  const { store } = writer
  const { runId } = from
  let state = from
  for (let attempt = 1; ; attempt++) {
    if (state.status.type === "cancelled") return state
    if (state.status.type === "completed") return yield* new RunAlreadyCompleted({ runId })
    const record = yield* cancellation(writer, state)
    const next = advance(state, record)
    const late = yield* Effect.catchTags(Effect.as(store.append([record], next), undefined), {
      // Only a first record can meet a run that exists.
      RunExists: (error) => Effect.die(error),
      ConcurrentAppendError: (error) => Effect.succeed(error)
    })
    if (late === undefined) return next
    if (attempt === attempts) return yield* late
    const since = yield* Stream.runCollect(store.read(runId, state.revision))
    state = (yield* foldFrom(state, since)) ?? state
  }
})

/** A run that stores a record every moment is met between two of them after a few attempts. */
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

/** The event that cancels a run where it stands. */
const cancelledEvent = (
  { currentTurn }: Pick<RunState, "currentTurn">,
  { by, reason }: Pick<CancelOptions, "reason" | "by">
): Pick<CancelledEvent, "type" | "reason" | "by" | "inFlight"> => ({
  type: "run_cancelled",
  ...(reason === undefined ? {} : { reason }),
  ...(by === undefined ? {} : { by }),
  inFlight: (currentTurn?.inFlight ?? []).map(({ callId, effects, name }) => ({
    callId,
    name,
    ...(effects === undefined ? {} : { effects })
  }))
})
