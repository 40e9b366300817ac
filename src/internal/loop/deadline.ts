/**
 * A run's deadline: one for all its lives, as every budget of it (DR-21, R-19).
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { CancellationError, type KernelError, type StoreError } from "../../KernelError.ts"
import type * as RunStore from "../../RunStore.ts"
import { now, type Run } from "./run.ts"

/** Ends work on a run when the time its agent gives it is over; it counts for the whole tree of the run. */
export const withinDeadline = <A>(run: Run, work: Effect.Effect<A, KernelError>): Effect.Effect<A, KernelError> => {
  const given = run.state.depth === 0 ? run.agent.budget.deadline : undefined
  if (given === undefined) return work
  const deadline = Duration.toMillis(given)
  const late = Effect.suspend(() => Effect.fail(new CancellationError({ reason: "deadline" })))
  return Effect.flatMap(workedFor(run.store, run.state, now(run)), (spent) =>
    spent < deadline ? Effect.timeoutOrElse(work, { duration: deadline - spent, orElse: () => late }) : late
  )
}

/** Whether a run was taken up when its time was over: whoever takes it up again with no more of it finds the same. */
export const isOverdue = (
  store: RunStore.RunStoreShape,
  head: RunStore.RunHead,
  deadlineMs: number
): Effect.Effect<boolean, StoreError> =>
  head.updatedAt - head.createdAt < deadlineMs
    ? Effect.succeed(false)
    : Effect.map(workedFor(store, head, head.updatedAt), (spent) => spent >= deadlineMs)

/**
 * How many milliseconds a run was at work until then: from its first commit after it was submitted or forked, without
 * what it was paused.
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
        if (!events.some((event) => event.type === "paused")) return
        spent += createdAt - since
        since = undefined
      })
    )
  }
  return since === undefined ? spent : spent + until - since
})
