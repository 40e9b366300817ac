/**
 * The state of a run as it is in the store.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { ConcurrentAppendError, RunNotFound, type StoreError } from "../KernelError.ts"
import type { RunState } from "../RunState.ts"
import type * as RunStore from "../RunStore.ts"

/** The stored state of a run. */
export const stored = (store: RunStore.Shape, runId: string): Effect.Effect<RunState, RunNotFound | StoreError> =>
  Effect.flatMap(store.load(runId), (found) =>
    Option.isNone(found) ? Effect.fail(new RunNotFound({ runId })) : Effect.succeed(found.value)
  )

/** The stored state of a run; none of another revision, where one is meant (DR-6). */
export const storedAt = (
  store: RunStore.Shape,
  runId: string,
  revision: number | undefined
): Effect.Effect<RunState, RunNotFound | ConcurrentAppendError | StoreError> =>
  Effect.flatMap(stored(store, runId), (state) =>
    revision === undefined || revision === state.revision
      ? Effect.succeed(state)
      : Effect.fail(new ConcurrentAppendError({ runId, expectedSeq: revision, actualSeq: state.revision }))
  )
