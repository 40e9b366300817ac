/**
 * Records why a run stopped, unless it was stopped from outside, belongs to another worker, or lost its store.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { KernelError, RunCancelled } from "../../KernelError.ts"
import type { ErrorInfo } from "../../RunState.ts"
import { isEmpty, type Json } from "../../kit/json.ts"
import { attempt, failureIn, messageOf, observed, reasonIn } from "../../kit/foreignCode.ts"
import { isSound } from "../errors/extensionError.ts"
import { deep, redact } from "../../kit/redact.ts"
import { take } from "../../kit/snapshot.ts"
import { ask, hookArgs } from "./askHooks.ts"
import { commit, flush, record } from "./commit.ts"
import type { FlushError } from "../../store-kit/internal/storeGuard.ts"
import { turnLog } from "../state/state.ts"
import { type Run, noDelta } from "./run.ts"
import { afterCancellation, cancellationOf, storeLateExpense } from "./cancel.ts"

/** Fails a run for a reason found outside the loop. */
export const failWith = <E extends KernelError>(
  run: Run,
  error: E
): Effect.Effect<never, E | RunCancelled | FlushError> => stopped(run, Cause.fail(error))

/** Stores pending records and the reason why the run stopped, then fails with that reason. */
export const stopped = Effect.fnUntraced(function* <E extends KernelError>(
  run: Run,
  cause: Cause.Cause<E>
): Effect.fn.Return<never, E | RunCancelled | FlushError> {
  if (Cause.hasInterruptsOnly(cause)) {
    recordRelease(run)
    yield* Effect.ignore(Effect.catchTag(flush(run), "ConcurrentAppendError", () => storeLateExpense(run)))
    return yield* Effect.failCause(cause)
  }
  const error = soundIn(cause)
  switch (error?._tag) {
    case "ConcurrentAppendError":
      return yield* fencedOut(run, cause)
    case "RunCancelled":
      yield* Effect.ignore(afterCancellation(run, error))
      yield* Effect.ignore(storeLateExpense(run))
      break
    // Another worker owns the run, so nothing more may be written.
    case "AgentCrashError":
      break
    // If the media store failed, pending records can still be stored.
    case "StoreError":
      run.failed = undefined
      yield* Effect.ignore(flush(run))
      break
    // A stop from outside is not a failure. The run stays where it is.
    case "CancellationError":
    case "DeadlineExceeded":
      recordRelease(run)
      yield* flush(run)
      break
    case "MiddlewareTermination": {
      const metadata = { reason: error.reason }
      record(run, { type: "run_completed", source: "caller", reason: "guardrail", metadata })
      yield* flush(run)
      break
    }
    default:
      yield* recordFailure(run, infoOf(error, cause))
      yield* flush(run)
  }
  return yield* Effect.failCause(cause)
})

/** Replaces a fencing error by the cancellation that caused it, if the run was cancelled. */
const fencedOut = Effect.fnUntraced(function* <E extends KernelError>(
  run: Run,
  cause: Cause.Cause<E>
): Effect.fn.Return<never, E | RunCancelled | FlushError> {
  if (run.state.depth > 0) yield* Effect.ignore(storeLateExpense(run))
  const cancelled = run.state.depth > 0 ? undefined : yield* Effect.orElseSucceed(cancellationOf(run), () => undefined)
  return yield* cancelled === undefined ? Effect.failCause(cause) : failWith(run, cancelled)
})

/** Returns the first failure of a cause if it is an error of the kernel. */
const soundIn = (cause: Cause.Cause<unknown>): KernelError | undefined => {
  const error = failureIn(cause)
  return isSound(error) ? error : undefined
}

/**
 * Records that a process gives up a run as it shuts down, so that the resume without progress does not count as a crash.
 * Records the usage of a reply that was cut off if no other record will carry it.
 */
const recordRelease = (run: Run): void => {
  const isReleased = run.state.depth === 0 && run.stop?.()?._tag === "CancellationError"
  if (isReleased && turnLog(run.state).length === run.turnsBefore) commit(run, "phase", [], { released: true })
  else if (run.next.spent !== undefined) commit(run, "phase", [], noDelta)
}

const recordFailure = Effect.fnUntraced(function* (run: Run, error: ErrorInfo) {
  const hook = run.hooks.onRunFailed
  if (hook !== undefined) {
    // A failure of the store ends the run. A failure of the hook is only logged.
    yield* flush(run)
    yield* observed("onRunFailed", () => ask(run, "onRunFailed", () => hook(hookArgs(run, { error }))))
  }
  record(run, { type: "run_failed", error })
})

/** Returns a failure in its stored form. A defect keeps only its first message. */
const infoOf = (error: KernelError | undefined, cause: Cause.Cause<unknown>): ErrorInfo =>
  error === undefined ? { tag: "Defect", message: messageOf(reasonIn(cause)) } : errorInfo(error)

/** Returns an error in its stored form, redacted. */
export const errorInfo = (error: KernelError): ErrorInfo => {
  const { _tag: tag } = error
  const fields: { [key: string]: Json } = {}
  for (const [key, value] of attempt(() => Object.entries(error), [])) {
    const known = key === "_tag" || key === "cause" || key === "message" ? Result.fail(undefined) : take(value)
    if (Result.isSuccess(known)) fields[key] = deep(known.success, redact)
  }
  return { tag, message: messageOf(error), ...(isEmpty(fields) ? {} : { fields }) }
}
