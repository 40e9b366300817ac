/**
 * Proof of ownership: the store's revision alone decides who has a run.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { ConcurrentAppendError } from "../../KernelError.ts"
import { type AppendError, flushed } from "./commit.ts"
import type { Run } from "./run.ts"

/** Stores what is pending, and fails unless the last record in the store is this worker's last one. */
export const proveOwnership = (run: Run): Effect.Effect<void, AppendError> =>
  flushed(
    run,
    Effect.flatMap(
      Effect.suspend(() => run.store.head(run.state.runId)),
      (head): Effect.Effect<void, ConcurrentAppendError> => {
        const { revision, runId } = run.state
        const expectedSeq = revision - run.records.length
        const actualSeq = Option.getOrUndefined(head)?.revision ?? 0
        return actualSeq === expectedSeq
          ? Effect.void
          : Effect.fail(new ConcurrentAppendError({ runId, expectedSeq, actualSeq }))
      }
    )
  )
