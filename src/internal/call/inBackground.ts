/**
 * Starts background calls, and continues those of a resumed run.
 *
 * A background call is a task of the run: a child run that is named by its call. The call itself has a result at once,
 * the id of the task.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { Call, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import * as Contents from "../../Content.ts"
import * as InstructionBuilder from "../../InstructionBuilder.ts"
import { type CallsError, type Run, type TaskError, currentTurn } from "../run/run.ts"
import { cancelledCall, work } from "./background.ts"
import { agentTarget } from "./childTarget.ts"
import { dispatch, send } from "./dispatch.ts"
import { askable, scopeOf } from "./targets.ts"

/** Starts a call in the background and returns its id as its result. A call that cannot be made is refused as usual. */
export const startInBackground = (run: Run, call: Call): Effect.Effect<CallResult, CallsError> =>
  Effect.suspend(() => {
    const callId = Calls.childRunId(currentTurn(run).turnId, call)
    if (callId === undefined || call.fault !== undefined || Result.isFailure(askable(run, call))) {
      return dispatch(run, call)
    }
    const task: Call = { ...call, callId, kind: "task" }
    const text = InstructionBuilder.inBackground(Calls.backgroundId(task))
    return Effect.as(work(run, task, perform(run, task)), Calls.succeeded(call, [Contents.text(text)]))
  })

/** Continues the open background calls of a run that this process has taken over. */
export const continueInBackground = (run: Run): Effect.Effect<void> =>
  Effect.forEach(
    (run.state.background ?? []).filter(({ callId }) => run.background?.ended.has(callId) !== true),
    (call) => work(run, call, perform(run, call)),
    { discard: true }
  )

const perform = Effect.fnUntraced(function* (run: Run, task: Call): Effect.fn.Return<CallResult, TaskError> {
  const head = Option.getOrUndefined(yield* run.store.head(task.callId))
  if (head?.status.type === "cancelled") return cancelledCall(task)
  const callable = askable(run, { ...task, kind: "agent" })
  if (Result.isFailure(callable)) return Calls.failed(task, callable.failure)
  const { durationMs: _, ...result } = yield* send(
    run,
    task,
    agentTarget(run, task, callable.success, scopeOf(run, task))
  )
  // The journal of the child run says when it worked. Here the time would be that of one process.
  return result
})
