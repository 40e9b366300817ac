/**
 * Opens, reviews and launches the calls of one reply. Each step is a record.
 *
 * All calls are reviewed before any is launched. A call is in flight from the record of its launch to the record of its
 * result. Single calls, concurrent calls and the tasks of a plan take the same steps.
 */

import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Call, CallResult } from "../../Call.ts"
import { begin } from "../../kit/foreignCode.ts"
import { unanswered, unreviewed } from "../state/turnFold.ts"
import { defer, deferred, pause, settle, stopDeferred } from "../run/askHooks.ts"
import { isAsking } from "../call/callAsks.ts"
import { commit, flush, record } from "../run/commit.ts"
import { isRecovered, pauseAsking, recordResult, runWorkflow, together } from "../call/concurrentCalls.ts"
import { dispatch } from "../call/dispatch.ts"
import { openReview, questionMetadata, review } from "../call/review.ts"
import { type CallsError, type HookError, type Run, openTurn } from "../run/run.ts"
import * as Budget from "../run/sharedBudget.ts"
import { effectsOf } from "../call/targets.ts"
import { acceptCall, openCalls } from "./stepAtOnce.ts"

/** Opens the calls of the reply. A hook can change them, and a policy can deny them or ask a person. */
export const startCalls = (run: Run): Effect.Effect<void, HookError> =>
  Effect.suspend(() => (openCalls(run) ? Effect.void : openReview(run)))

/** Takes the next step of open calls: waits for answers, reviews, launches or closes them. */
export const continueCalls = (run: Run): Effect.Effect<void, CallsError> => {
  const result = openTurn(run).completed.at(-1)
  const hook = run.hooks.onToolCallCompleted
  if (run.state.status.phase !== "tool_call_completed" || result === undefined || hook === undefined) return next(run)
  return Effect.flatMap(settle(run, "onToolCallCompleted", hook, { result }), (control) => {
    if (control !== undefined && control.type !== "continue") defer(run, control)
    return next(run)
  })
}

const next = (run: Run): Effect.Effect<void, CallsError> =>
  Effect.suspend((): Effect.Effect<void, CallsError> => {
    const { pending } = openTurn(run)
    if (deferred(run) !== undefined) {
      // Calls that were in flight when the run was interrupted finish before it stops.
      return pending.some((call) => isRecovered(run, call)) ? launch(run) : stopDeferred(run)
    }
    const open = unanswered(run.state.questions)
    if (open.length > 0) return pause(run, "approval_required", questionMetadata(open))
    if (acceptCall(run)) return Effect.void
    const call = unreviewed(pending)
    if (call !== undefined) return review(run, call)
    return pending.length > 0 ? launch(run) : Effect.sync(() => record(run, { type: "tool_calls_completed" }))
  })

/** Launches accepted calls: one, several at once, or the tasks of a plan. */
const launch = (run: Run): Effect.Effect<void, CallsError> => {
  const { outcome, pending } = openTurn(run)
  const [next] = pending
  if (next === undefined) return Effect.void
  const { concurrency } = run.agent
  if (outcome?.type === "workflow") {
    return together(run, (beside, waits) => runWorkflow(run, outcome.plan, beside, waits))
  }
  const batch = concurrency === 1 ? [next] : pending
  const asksAgents = batch.some(({ kind }) => kind === "agent")
  if (batch.length === 1 && !asksAgents) return alone(run, next)
  const all = together(run, (beside) =>
    Effect.forEach(batch, (call) => beside(call, dispatch(run, call)), { concurrency, discard: true })
  )
  return asksAgents ? Budget.lending(run.budget, run.state.depth, all) : all
}

/** Launches one call. Unless it is a `read`, its launch is stored before it runs and its result right after. */
const alone = (run: Run, call: Call): Effect.Effect<void, CallsError> =>
  Effect.suspend(() => {
    commit(run, "launch", [], { launched: [call.callId], effects: effectsOf(run, call) })
    const entered = run.restore(dispatch(run, call))
    if (effectsOf(run, call) === "read") return Effect.flatMap(whileStored(run, entered), (result) => end(run, result))
    return Effect.andThen(
      flush(run),
      Effect.flatMap(entered, (result) => Effect.andThen(end(run, result), flush(run)))
    )
  })

/**
 * Runs a `read` call while its launch is being stored. If the call ends synchronously, launch and result are stored
 * together.
 */
const whileStored = (run: Run, call: Effect.Effect<CallResult, CallsError>): Effect.Effect<CallResult, CallsError> =>
  begin(call, (fiber): Effect.Effect<CallResult, CallsError> => {
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return exit
    return Effect.onExit(Effect.andThen(flush(run), run.restore(Fiber.join(fiber))), () => Fiber.interrupt(fiber))
  })

const end = (run: Run, result: CallResult): Effect.Effect<void, CallsError> => {
  if (isAsking(result)) return pauseAsking(run, [result])
  recordResult(run, result)
  return Effect.void
}
