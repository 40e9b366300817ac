/**
 * The calls of a stored run that were started and have no result.
 */

import * as Effect from "effect/Effect"
import type { RunNotFound, StoreError } from "../../KernelError.ts"
import type { RunState } from "../../RunState.ts"
import type { CallInFlight, RunStoreShape } from "./runStoreTypes.ts"
import { treeOf } from "./family.ts"
import { keyOf } from "../state/state.ts"
import { stored } from "./stored.ts"

/** Those of a run and of the tasks below it. */
export const inFlight = (
  store: RunStoreShape,
  runId: string
): Effect.Effect<ReadonlyArray<CallInFlight>, RunNotFound | StoreError> =>
  stored(store, runId).pipe(
    Effect.flatMap((state) => treeOf(store, state)),
    Effect.map((tree) => tree.flatMap(own))
  )

/** Those of the run itself. A run that has ended waits for no call. */
const own = (state: RunState): ReadonlyArray<CallInFlight> =>
  state.currentTurn === undefined || state.status.type === "completed"
    ? []
    : state.currentTurn.inFlight
        .filter(({ kind }) => kind !== "task" && kind !== "agent")
        .map((call) => ({ ...call, runId: state.runId, idempotencyKey: keyOf(state, call) }))
