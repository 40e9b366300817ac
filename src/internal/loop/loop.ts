/**
 * The loop of a run. A turn builds its prompt, asks the model, runs the calls of the reply, and ends. The phase in the
 * run's state decides where a turn continues, so a run that was stopped anywhere takes the same steps.
 *
 * `turn.ts` holds the steps in order, `calls.ts` the calls of a reply.
 */

import * as Effect from "effect/Effect"
import type { StopError } from "../../KernelError.ts"
import { endBackground, settled } from "../call/background.ts"
import { continueInBackground } from "../call/inBackground.ts"
import { isReviewed, reviewAll } from "../call/review.ts"
import { preparePrompt } from "../model/buildPrompt.ts"
import { onResume, stopsAt } from "../run/askHooks.ts"
import { untilCancelled } from "../run/cancel.ts"
import { flush, record } from "../run/commit.ts"
import { withinDeadline } from "../run/deadline.ts"
import { stopped } from "../run/failure.ts"
import { type DriveError, type Run, type StepError, currentTurn, isAt, makeRun, unlessStopped } from "../run/run.ts"
import { CurrentRun } from "../state/currentRun.ts"
import { isCalling, runCalls } from "./calls.ts"
import { entered, isHandedOver } from "./handOver.ts"
import { closeTurn, endOrContinue, readReply, restartModel, startTurn } from "./turn.ts"

/**
 * Drives a run until it completes, pauses, fails or is cancelled. Returns the run with the agent it ended with. The
 * loop itself is uninterruptible, so a result that arrived is always recorded. Models, skills, hooks and waits are
 * interruptible.
 */
export const drive = Effect.fnUntraced(function* (first: Run): Effect.fn.Return<Run, DriveError> {
  let run = first
  yield* driveOne(run, run.state.revision > 1)
  while (isHandedOver(run)) {
    const { background } = run
    run = { ...makeRun(yield* entered(run), run.state, undefined), background }
    yield* driveOne(run, false)
  }
  return run
})

/** Drives a run as long as it belongs to one agent. Followers see it in the meantime. */
const driveOne = (run: Run, isResumed: boolean): Effect.Effect<void, DriveError> =>
  Effect.uninterruptibleMask((restore) => {
    const { rootRunId, runId } = run.state
    run.restore = restore
    run.live.enter(rootRunId, runId, run)
    const limited = untilCancelled(
      run,
      withinDeadline(run, Effect.provideService(loop(run, isResumed), CurrentRun, run))
    )
    return Effect.ensuring(
      Effect.catchCause(Effect.ensuring(limited, endBackground(run)), (cause) => stopped(run, cause)),
      Effect.sync(() => run.live.leave(rootRunId, runId))
    )
  })

const loop = Effect.fnUntraced(function* (run: Run, isResumed: boolean): Effect.fn.Return<void, StepError | StopError> {
  endIfDecided(run)
  if (isResumed && run.state.status.type === "running") yield* onResume(run)
  if (run.state.background !== undefined && run.state.status.type === "running") yield* continueInBackground(run)
  while (run.state.status.type === "running" && !isHandedOver(run)) yield* turn(run)
  // A run comes to rest, or to another agent, once its calls have.
  if (run.state.status.type !== "completed") yield* settled(run)
  yield* flush(run)
})

/** Takes the turn of a run, from its current phase until the next turn is open or the run stops. */
const turn = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, StepError | StopError> {
  const { hooks } = run
  yield* unlessStopped(run)
  if (isAt(run, "run_started")) {
    if (yield* stopsAt(run, "onRunStarted", hooks.onRunStarted, {})) return
    yield* startTurn(run)
  }
  if (isAt(run, "turn_started")) {
    if (yield* stopsAt(run, "onTurnStarted", hooks.onTurnStarted, {})) return
    yield* preparePrompt(run)
  }
  yield* unlessStopped(run)
  if (isAt(run, "turn_prepared")) {
    record(run, { type: "model_started", attempt: 1 })
    if (yield* stopsAt(run, "onModelStarted", hooks.onModelStarted, {})) return
  } else if (isAt(run, "model_started")) yield* restartModel(run)
  const raw = isAt(run, "model_started") ? yield* readReply(run) : []
  if (isAt(run, "model_completed")) {
    if (yield* stopsAt(run, "onModelCompleted", hooks.onModelCompleted, { raw })) return
    if (currentTurn(run).pending.length === 0) closeTurn(run)
    else if (isReviewed(run)) yield* reviewAll(run)
    else record(run, { type: "tool_calls_started" })
  }
  if (isCalling(run)) yield* runCalls(run)
  if (isAt(run, "tool_calls_completed")) {
    if (yield* stopsAt(run, "onToolCallsCompleted", hooks.onToolCallsCompleted, {})) return
    closeTurn(run)
  }
  if (isAt(run, "turn_completed")) yield* endOrContinue(run)
})

/** Completes a run that `onRunCompleted` paused before its end was recorded. */
const endIfDecided = (run: Run): void => {
  const { completing, status } = run.state
  if (completing !== undefined && status.type === "running") record(run, { type: "run_completed", ...completing })
}
