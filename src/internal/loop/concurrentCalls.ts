/**
 * Several calls of one reply at once.
 */

import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { Call, CallResult } from "../../Call.ts"
import { ask, defer, deferred, hookArgs, stopDeferred } from "./askHooks.ts"
import { carry, commit, flush, manyRecords, record } from "./commit.ts"
import { openTurn, type Run } from "./run.ts"
import type { CallsError, HookError } from "./stepErrors.ts"

/** Puts one of several calls through launch and result. */
export type Beside = (
  call: Call,
  body: Effect.Effect<CallResult | undefined, CallsError>
) => Effect.Effect<CallResult | undefined, CallsError>

/** Runs several calls at once. A stop that a hook or a task asks for waits until all have ended. */
export const together = (
  run: Run,
  calls: (beside: Beside) => Effect.Effect<void, CallsError>
): Effect.Effect<void, CallsError> =>
  Effect.suspend(() => {
    run.lock ??= Semaphore.makeUnsafe(1)
    const oneHook = Semaphore.makeUnsafe(1).withPermits(1)
    const beside: Beside = (call, body) =>
      Effect.suspend(() => {
        if (deferred(run) !== undefined && !isRecovered(run, call)) return Effect.undefined
        commit(run, "launch", [], { launched: [call.callId] })
        return Effect.uninterruptible(
          Effect.andThen(
            flush(run),
            Effect.tap(run.restore(body), (result) =>
              result === undefined ? Effect.void : oneHook(finish(run, result))
            )
          )
        )
      })
    return Effect.andThen(
      Effect.andThen(flush(run), run.restore(calls(beside))),
      Effect.suspend(() => stopDeferred(run))
    )
  })

/** Stores the result of one of several calls and asks its hook. A call without a result stays in flight. */
const finish = Effect.fnUntraced(function* (run: Run, result: CallResult): Effect.fn.Return<void, HookError> {
  recordResult(run, result)
  // Thousands of calls that end at once leave others a moment.
  if (run.state.revision % manyRecords < 2) yield* Effect.yieldNow
  const hook = run.hooks.onToolCallCompleted
  if (hook === undefined) return yield* flush(run)
  carry(run, { settled: true })
  const { control } = yield* ask(run, "onToolCallCompleted", () => hook(hookArgs(run, { result })))
  if (control !== undefined && control.type !== "continue") defer(run, control)
})

/** Records the result of a call. Synchronous. */
export const recordResult = (run: Run, completed: CallResult): void => {
  const { callId, input: _input, kind: _kind, name: _name, spent, ...result } = completed
  record(run, { type: "tool_call_completed", callId, result, ...(spent && { spent }) })
}

/** Was this call launched before the run was cut off, and is it launched again? */
export const isRecovered = (run: Run, call: Call): boolean => openTurn(run).recovered?.includes(call.callId) === true
