/**
 * The state of a run as it is in the store.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Call, CallResult } from "../../Call.ts"
import { ConcurrentAppendError, RunNotFound, type StoreError } from "../../KernelError.ts"
import type { RunState } from "../../RunState.ts"
import type { RunStoreShape } from "./runStoreTypes.ts"
import { childRunId } from "../words/callIds.ts"

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
 * The stored child runs of a turn that is open, by their ids: tasks of its plan, and agents that it calls.
 *
 * One that is only pending may have a run, too: a process took it up again, and died before it launched it.
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
    // Most of a plan was never begun: what there is in the tree is asked once.
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
