/**
 * The loop of a run. The phase in the run's state decides the next step, at the start and after every crash.
 *
 * A turn builds its prompt, calls the model once, decides what the reply means, runs the calls of the reply, and ends.
 * `turn.ts` holds these steps in order, `calls.ts` the steps of the calls. `stepAtOnce.ts` takes steps that only
 * record.
 */

import * as Effect from "effect/Effect"
import type { StopError } from "../../KernelError.ts"
import { continueCalls } from "./calls.ts"
import { flush, manyRecords, record } from "../run/commit.ts"
import { withinDeadline } from "../run/deadline.ts"
import { stopped } from "../run/failure.ts"
import { entered, isHandedOver } from "./handOver.ts"
import { type DriveError, type Run, type StepError, makeRun } from "../run/run.ts"
import { takeAtOnce } from "./stepAtOnce.ts"
import { afterCalls, afterModel, afterTurn, askModel, askModelAgain, preparePrompt, startRun } from "./turn.ts"
import { untilCancelled } from "../run/cancel.ts"

/**
 * Drives a run until it completes, pauses, fails or is cancelled. Returns the run with the agent it ended with. The
 * loop itself is uninterruptible, so a result that arrived is always recorded. Models, skills, hooks and waits are
 * interruptible.
 */
export const drive = (run: Run): Effect.Effect<Run, DriveError> => {
  const driven = Effect.uninterruptibleMask((restore) => {
    run.restore = restore
    const { rootRunId, runId } = run.state
    run.live.enter(rootRunId, runId, run)
    const driven = Effect.catchCause(untilCancelled(run, withinDeadline(run, loop(run))), (cause) =>
      stopped(run, cause)
    )
    return Effect.ensuring(
      driven,
      Effect.sync(() => run.live.leave(rootRunId, runId))
    )
  })
  return Effect.flatMap(driven, () =>
    isHandedOver(run)
      ? Effect.flatMap(entered(run), (environment) => drive(makeRun(environment, run.state, undefined)))
      : Effect.succeed(run)
  )
}

const loop = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, StepError | StopError> {
  endIfDecided(run)
  while (run.state.status.type === "running" && !isHandedOver(run)) {
    const reason = run.stop?.()
    if (reason !== undefined) return yield* Effect.fail(reason)
    if (!takeAtOnce(run)) yield* step(run)
    if (run.records.length >= manyRecords) yield* Effect.andThen(flush(run), Effect.yieldNow)
  }
  yield* flush(run)
})

/** Takes the next step of a run. */
const step = (run: Run): Effect.Effect<void, StepError> => {
  switch (run.state.status.phase) {
    case "run_started":
      return startRun(run)
    case "turn_started":
      return preparePrompt(run)
    case "turn_prepared":
      return askModel(run)
    case "model_started":
      return askModelAgain(run)
    case "model_completed":
      return afterModel(run)
    case "tool_calls_started":
    case "tool_call_started":
    case "tool_call_completed":
      return continueCalls(run)
    case "tool_calls_completed":
      return afterCalls(run)
    case "turn_completed":
      return afterTurn(run)
  }
}

/** Completes a run that `onRunCompleted` paused before its end was recorded. */
const endIfDecided = (run: Run): void => {
  const { completing, status } = run.state
  if (completing !== undefined && status.type === "running") record(run, { type: "run_completed", ...completing })
}
