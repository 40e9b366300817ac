/**
 * The state of a run as it is in the store.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { ConcurrentAppendError, type KernelError, RunNotFound } from "../KernelError.ts"
import type { RunState } from "../RunState.ts"
import type * as RunStore from "../RunStore.ts"

/** The stored state of a run; none of another revision, where one is meant (DR-6). */
export const stored = /*#__PURE__*/ Effect.fnUntraced(function* (
  store: RunStore.Shape,
  runId: string,
  revision?: number
): Effect.fn.Return<RunState, KernelError> {
  const state = Option.getOrUndefined(yield* store.load(runId))
  if (state === undefined) return yield* new RunNotFound({ runId })
  if (revision !== undefined && revision !== state.revision) {
    return yield* new ConcurrentAppendError({ runId, expectedSeq: revision, actualSeq: state.revision })
  }
  return state
})
