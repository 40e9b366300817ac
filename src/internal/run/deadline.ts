/**
 * The deadline of a run, shared by all its processes and its whole tree.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { DeadlineExceeded, type StoreError } from "../../KernelError.ts"
import type * as RunStore from "../../RunStore.ts"
import { now, type Run } from "./run.ts"

/** Ends a run's loop when the time its agent allows is over. */
export const withinDeadline = <E>(
  run: Run,
  loop: Effect.Effect<void, E>
): Effect.Effect<void, E | DeadlineExceeded | StoreError> => {
  const given = run.deadline
  if (given === undefined) return loop
  const deadline = Duration.toMillis(given)
  const late = Effect.suspend(() =>
    Effect.fail(new DeadlineExceeded({ runId: run.state.runId, deadline: Duration.millis(deadline) }))
  )
  return Effect.flatMap(workedFor(run.store, run.state, now(run)), (spent) =>
    spent < deadline
      ? run.restore(
          Effect.timeoutOrElse(Effect.uninterruptible(loop), { duration: deadline - spent, orElse: () => late })
        )
      : late
  )
}
/**
 * Whether a run was resumed after its time was over. Resuming it again without more time would have the same outcome.
 */
export const isOverdue = (
  store: RunStore.RunStoreShape,
  head: RunStore.RunHead,
  deadlineMs: number
): Effect.Effect<boolean, StoreError> =>
  head.updatedAt - head.createdAt < deadlineMs
    ? Effect.succeed(false)
    : Effect.map(workedFor(store, head, head.updatedAt), (spent) => spent >= deadlineMs)

/**
 * How many milliseconds a run has worked: from its first record after it was submitted or forked, without its pauses.
 */
const workedFor = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  { revision, runId }: Pick<RunStore.RunHead, "revision" | "runId">,
  until: number
): Effect.fn.Return<number, StoreError> {
  let begun = 1
  let since: number | undefined
  let spent = 0
  if (revision > begun) {
    yield* Stream.runForEach(store.read(runId), ({ createdAt, events, revision }) =>
      Effect.sync(() => {
        for (const event of events) if (event.type === "run_started") begun = event.forkedFrom?.revision ?? begun
        if (revision <= begun) return
        since ??= createdAt
        if (!events.some((event) => event.type === "paused" || event.type === "run_cancelled")) return
        spent += createdAt - since
        since = undefined
      })
    )
  }
  return since === undefined ? spent : spent + until - since
})
