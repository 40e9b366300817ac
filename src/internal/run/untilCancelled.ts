/**
 * Runs a run's loop until the run is cancelled, by any process or by the signal of its host.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { CancelError, RunCancelled, StoreError } from "../../KernelError.ts"
import { redact } from "../base/redact.ts"
import { cancel } from "./cancel.ts"
import { cancelled } from "./conclude.ts"
import type { Run } from "./run.ts"

/** Ends a root run's loop, and with it the runs below, once a cancellation of the run is stored. */
export const untilCancelled = <E>(
  run: Run,
  loop: Effect.Effect<void, E>
): Effect.Effect<void, E | RunCancelled | StoreError> => {
  if (run.state.depth > 0) return loop
  const { signal } = run
  // A signal that is aborted already cancels the run before its first step.
  if (signal?.aborted === true) return run.restore(Effect.andThen(obey(run, signal), stop(run)))
  const stopped = signal === undefined ? stop(run) : Effect.raceFirst(stop(run), abortion(run, signal))
  return run.restore(Effect.raceFirst(Effect.uninterruptible(loop), stopped))
}

/** Fails once the run is cancelled. */
const stop = (run: Run): Effect.Effect<never, RunCancelled> =>
  Effect.flatMap(run.store.cancelled(run.state.runId), () =>
    Effect.flatMap(
      Effect.orElseSucceed(cancellationOf(run), () => undefined),
      // What was announced may have been undone, or the run may be resumed by another worker by now.
      (found) => (found === undefined ? Effect.andThen(Effect.sleep(100), stop(run)) : Effect.fail(found))
    )
  )

/** How a root run was cancelled, if it is. */
export const cancellationOf = (run: Run): Effect.Effect<RunCancelled | undefined, StoreError> =>
  Effect.map(run.store.head(run.state.runId), (head) => {
    const status = Option.getOrUndefined(head)?.status
    if (status?.type !== "cancelled") return undefined
    return cancelled(run.state.runId, status)
  })

/** Publishes the cancellation of a root run, and cancels the child runs that were created meanwhile. */
export const afterCancellation = (run: Run, { by, reason }: RunCancelled): Effect.Effect<void, CancelError> =>
  Effect.andThen(publishCancellation(run), cancel(run.store, run.state.runId, { by, reason, workerId: run.holder }))

/** Publishes the cancellation as it is stored. What could not be stored before it is not published. */
const publishCancellation = (run: Run): Effect.Effect<void, StoreError> =>
  Effect.suspend(() => {
    run.events = []
    const { publish } = run.live
    if (publish === undefined) return Effect.void
    const { runId } = run.state
    return Effect.flatMap(run.store.head(runId), (head) => {
      const last = Option.getOrUndefined(head)?.revision ?? 1
      return Stream.runForEach(run.store.read(runId, last - 1), ({ events }) =>
        Effect.sync(() => {
          for (const event of events) if (event.type === "run_cancelled") publish(event, run.agent.name)
        })
      )
    })
  })

/** Cancels the run when its signal is aborted, and leaves it to `stop` to end the loop. */
const abortion = (run: Run, signal: AbortSignal): Effect.Effect<never, StoreError> =>
  Effect.andThen(
    Effect.callback<void>((resume) => {
      const abort = () => resume(Effect.void)
      signal.addEventListener("abort", abort, { once: true })
      return Effect.sync(() => signal.removeEventListener("abort", abort))
    }),
    Effect.andThen(obey(run, signal), Effect.never)
  )

/** Stores that the signal cancels the run. A run that is over, or gone, is left as it is. */
const obey = (run: Run, signal: AbortSignal): Effect.Effect<void, StoreError> => {
  const { holder, state, store } = run
  const stored = Effect.suspend(() =>
    cancel(store, state.runId, { reason: textOf(signal.reason), by: "signal", workerId: holder })
  )
  return Effect.catch(
    Effect.retry(stored, { while: (error) => error._tag === "ConcurrentAppendError" }),
    (error): Effect.Effect<void, StoreError> => (error._tag === "StoreError" ? Effect.fail(error) : Effect.void)
  )
}

/** The reason of an abortion as text. */
const textOf = (reason: unknown): string => redact(reason instanceof Error ? reason.message : String(reason))
