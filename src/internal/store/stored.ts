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

/** The stored state of a run; none of another revision, where one is meant (DR-6). */
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

/** What a stored run used, as the run it is a task of counts it (CP-15). */
export const spentBy = ({ costUsd, turns, usage }: RunState): NonNullable<CallResult["spent"]> => ({
  usage,
  costUsd,
  turns: turns.length
})

/**
 * The stored runs of the tasks of a turn that is open, by the ids of their calls.
 *
 * One that is only pending may have a run, too: a process took it up again, and died before it launched it.
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
    // Most of a plan was never begun: what there is in the tree is asked once.
    const known = new Set((yield* store.list({ rootRunId })).map(({ runId }) => runId))
    tasks = tasks.concat(pending.filter(({ callId }) => known.has(callId)))
  }
  for (const { callId } of tasks) {
    const task = yield* store.load(callId)
    if (Option.isSome(task)) found.set(callId, task.value)
  }
  return found
})
