/**
 * A run's deadline: one for all its lives, as every budget of it (DR-21, R-19).
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { CancellationError, type KernelError, type StoreError } from "../KernelError.ts"
import { now, type Run } from "./run.ts"

/** Ends work on a run when the time its agent gives it is over; it counts for the whole tree of the run. */
export const withinDeadline = <A>(run: Run, work: Effect.Effect<A, KernelError>): Effect.Effect<A, KernelError> => {
  const deadline = run.state.depth === 0 ? run.agent.budget.deadlineMs : undefined
  if (deadline === undefined) return work
  const late = Effect.suspend(() => Effect.fail(new CancellationError({ reason: "deadline" })))
  return Effect.flatMap(spent(run), (spent) =>
    spent < deadline ? Effect.timeoutOrElse(work, { duration: deadline - spent, orElse: () => late }) : late
  )
}

/** How long a run is at work: from its first commit after it was submitted or forked, without what it was paused. */
const spent = /*#__PURE__*/ Effect.fnUntraced(function* (run: Run): Effect.fn.Return<number, StoreError> {
  const { forkedFrom, revision, runId } = run.state
  const begun = forkedFrom?.revision ?? 1
  let since: number | undefined
  let spent = 0
  if (revision > begun) {
    yield* Stream.runForEach(run.store.read(runId, begun), ({ createdAt, events }) =>
      Effect.sync(() => {
        since ??= createdAt
        if (!events.some((event) => event.type === "paused")) return
        spent += createdAt - since
        since = undefined
      })
    )
  }
  return since === undefined ? spent : spent + now(run) - since
})
