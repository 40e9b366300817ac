/**
 * Runs the calls of one reply. Each step is a record.
 *
 * All calls are reviewed before any is launched. A call is in flight from the record of its launch to the record of its
 * result. Single calls, concurrent calls and the tasks of a plan take the same steps.
 */

import * as Effect from "effect/Effect"
import type { Call } from "../../Call.ts"
import type { StopError } from "../../KernelError.ts"
import { unanswered, unreviewed } from "../state/state.ts"
import { defer, deferred, pause, settle, stopDeferred } from "../run/askHooks.ts"
import { hasCallMiddleware } from "../call/aroundCall.ts"
import { isAsking } from "../call/callAsks.ts"
import { commit, flush, manyRecords, record } from "../run/commit.ts"
import { pauseAsking, recordResult, runWorkflow, together } from "../call/concurrentCalls.ts"
import { dispatch } from "../call/dispatch.ts"
import { startInBackground } from "../call/inBackground.ts"
import { accept, needsReview, pauseReason, questionMetadata, review } from "../call/review.ts"
import { type CallsError, type Run, currentTurn, isRecovered, unlessStopped } from "../run/run.ts"
import * as Budget from "../run/treeBudget.ts"
import { effectsOf, termsOf } from "../policy/callEffects.ts"

/** Returns whether the calls of a reply are open. */
export const isCalling = ({ state: { status } }: Run): boolean =>
  status.type === "running" &&
  (status.phase === "tool_calls_started" ||
    status.phase === "tool_call_started" ||
    status.phase === "tool_call_completed")

/** Reviews the calls of a reply, launches them and closes them, or stops the run. */
export function* runCalls(run: Run): Effect.fn.Return<void, CallsError | StopError> {
  while (isCalling(run)) {
    yield* unlessStopped(run)
    if (run.records.length >= manyRecords) yield* Effect.andThen(flush(run), Effect.yieldNow)
    if (run.state.status.phase === "tool_call_completed") yield* afterCall(run)
    const { pending } = currentTurn(run)
    const open = unanswered(run.state.questions)
    const next = unreviewed(pending)
    if (deferred(run) !== undefined) {
      // Calls that were in flight when the run was interrupted finish before it stops.
      if (pending.some((call) => isRecovered(run, call))) yield* launchAccepted(run)
      else yield* stopDeferred(run)
    } else if (open.length > 0) yield* pause(run, pauseReason(open), questionMetadata(open))
    else if (next !== undefined && needsReview(run)) yield* review(run, next)
    else if (next !== undefined) accept(run, next)
    else if (pending.length > 0) yield* launchAccepted(run)
    else record(run, { type: "tool_calls_completed" })
  }
}

/** Runs the hook of the last result. A stop that it requests takes effect once no call is in flight. */
function* afterCall(run: Run): Effect.fn.Return<void, CallsError> {
  const result = currentTurn(run).completed.at(-1)
  if (result === undefined) return
  const control = yield* settle(run, "onToolCallCompleted", run.hooks.onToolCallCompleted, { result })
  if (control !== undefined && control.type !== "continue") defer(run, control)
}

/** Launches accepted calls: one, several at once, or the tasks of a plan. */
function* launchAccepted(run: Run): Effect.fn.Return<void, CallsError> {
  const { outcome, pending } = currentTurn(run)
  if (outcome?.type === "workflow") {
    return yield* together(run, (beside, waits) => runWorkflow(run, outcome.plan, beside, waits))
  }
  const { concurrency } = run.agent
  const batch = concurrency === 1 ? pending.slice(0, 1) : pending
  const [first, second] = batch
  if (first === undefined) return
  const asksAgents = batch.some(({ kind }) => kind === "agent")
  if (second === undefined && !asksAgents) return yield* launchAlone(run, first)
  const all = together(run, (beside) =>
    Effect.forEach(
      batch,
      (call) => beside(call, call.background ? startInBackground(run, call) : dispatch(run, call)),
      { concurrency, discard: true }
    )
  )
  yield* asksAgents ? Budget.lending(run.budget, run.state.depth, all) : all
}

/**
 * Launches one call. Unless it is a `read`, its launch is stored before it runs. The launch of a `read` is stored while it
 * waits; if it ends at once, launch and result are stored together. The result is stored with the next launch or model
 * call, which follows at once: whatever waits in between flushes first.
 */
function* launchAlone(run: Run, call: Call): Effect.fn.Return<void, CallsError> {
  const effects = effectsOf(run, call)
  commit(run, "launch", [], { launched: [call.callId], effects, ...termsOf(run, call) })
  // Middleware may take its time before it sends a call.
  if (effects !== "read" || hasCallMiddleware(run)) yield* flush(run)
  const result = yield* run.restore(dispatch(run, call))
  // Without its launch in the store, a result cannot be recorded.
  if (effects === "read" && run.failed !== undefined) return yield* Effect.fail(run.failed)
  if (isAsking(result)) return yield* pauseAsking(run, [result])
  recordResult(run, result)
}
