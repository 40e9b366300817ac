/**
 * Reads the state of a run from the store.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Call, CallResult } from "../../Call.ts"
import { ConcurrentAppendError, RunNotFound, type StoreError } from "../../KernelError.ts"
import type { RunState } from "../../RunState.ts"
import type { RunStoreShape } from "./runStoreTypes.ts"
import { childRunId } from "../words/ids.ts"

/** Returns the stored state of a run. */
export const stored = (store: RunStoreShape, runId: string): Effect.Effect<RunState, RunNotFound | StoreError> =>
  Effect.flatMap(store.load(runId), (found) =>
    Option.isNone(found) ? Effect.fail(new RunNotFound({ runId })) : Effect.succeed(found.value)
  )

/** Returns the stored state of a run. Fails if the run is not at the given revision. */
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

/** The usage of a stored run, as counted in its parent. */
export const spentBy = ({ costUsd, turns, usage }: RunState): NonNullable<CallResult["spent"]> => ({
  usage,
  costUsd,
  turns: turns.length
})

/**
 * Returns the stored children of an open turn by id: tasks of its plan, and agents that it calls.
 *
 * A pending task may also have a run, if a process resumed it and died before storing its launch.
 */
export const storedTasks = Effect.fnUntraced(function* (
  store: RunStoreShape,
  { currentTurn, rootRunId, status }: RunState
): Effect.fn.Return<ReadonlyMap<string, RunState>, StoreError> {
  const found = new Map<string, RunState>()
  if (currentTurn === undefined || status.type === "completed") return found
  const idsOf = (calls: ReadonlyArray<Call>) => calls.flatMap((call) => childRunId(currentTurn.turnId, call) ?? none)
  let children = idsOf(currentTurn.inFlight)
  const pending = idsOf(currentTurn.pending)
  if (pending.length > 0) {
    // Most tasks of a plan were never started, so the tree is listed once.
    const known = new Set((yield* store.list({ rootRunId })).map(({ runId }) => runId))
    children = children.concat(pending.filter((runId) => known.has(runId)))
  }
  for (const runId of children) {
    const child = yield* store.load(runId)
    if (Option.isSome(child)) found.set(runId, child.value)
  }
  return found
})

const none: ReadonlyArray<never> = []
