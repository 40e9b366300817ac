/**
 * The state of a run as it is in the store.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Call, CallResult } from "../../Call.ts"
import { ConcurrentAppendError, RunNotFound, type StoreError } from "../../KernelError.ts"
import type { RunState } from "../../RunState.ts"
import type { RunStoreShape } from "./runStoreTypes.ts"

/** Returns the stored state of a run. */
export const stored = (store: RunStoreShape, runId: string): Effect.Effect<RunState, RunNotFound | StoreError> =>
  Effect.flatMap(store.load(runId), (found) =>
    Option.isNone(found) ? Effect.fail(new RunNotFound({ runId })) : Effect.succeed(found.value)
  )

/** Returns the stored state of a run. Fails if a revision is given and the run is at another one. */
export const storedAt = (
  store: RunStoreShape,
  runId: string,
  revision: number | undefined
): Effect.Effect<RunState, RunNotFound | ConcurrentAppendError | StoreError> =>
  Effect.flatMap(stored(store, runId), (state) =>
    revision === undefined || revision === state.revision
      ? Effect.succeed(state)
      : Effect.fail(new ConcurrentAppendError({ runId, expectedSeq: revision, actualSeq: state.revision }))
  )

/** The usage of a stored run, as its parent counts it. */
export const spentBy = ({ costUsd, turns, usage }: RunState): NonNullable<CallResult["spent"]> => ({
  usage,
  costUsd,
  turns: turns.length
})

/**
 * Returns the stored runs of the tasks of an open turn, by the ids of their calls.
 *
 * A pending task may have a run, too, if a process resumed it and died before its launch was stored.
 */
export const storedTasks = Effect.fnUntraced(function* (
  store: RunStoreShape,
  { currentTurn, rootRunId, status }: RunState
): Effect.fn.Return<ReadonlyMap<string, RunState>, StoreError> {
  const found = new Map<string, RunState>()
  if (currentTurn === undefined || status.type === "completed") return found
  const isTask = (call: Call) => call.kind === "task"
  let tasks = currentTurn.inFlight.filter(isTask)
  const pending = currentTurn.pending.filter(isTask)
  if (pending.length > 0) {
    // Most tasks of a plan were never started, so the tree is listed once.
    const known = new Set((yield* store.list({ rootRunId })).map(({ runId }) => runId))
    tasks = tasks.concat(pending.filter(({ callId }) => known.has(callId)))
  }
  for (const { callId } of tasks) {
    const task = yield* store.load(callId)
    if (Option.isSome(task)) found.set(callId, task.value)
  }
  return found
})
