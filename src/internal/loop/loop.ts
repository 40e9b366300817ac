/**
 * The loop: where a run stands decides its next step, the first time and after every crash (DR-4, DR-15).
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { KernelError } from "../../KernelError.ts"
import { MaxStepsReached, MiddlewareTermination, OutputInvalid, RunFinished, RunPaused } from "../../KernelError.ts"
import type { ErrorInfo, Phase, RunResult } from "../../RunState.ts"
import { answer, result } from "../../RunState.ts"
import { turnLog } from "../state/state.ts"
import { continueCalls } from "./calls.ts"
import { commit, flush } from "./commit.ts"
import { withinDeadline } from "./deadline.ts"
import type { Json, JsonObject } from "../base/json.ts"
import { isEmpty, isJsonObject } from "../base/json.ts"
import { observed } from "../base/passedOver.ts"
import { deep, redact } from "../base/redact.ts"
import type { Run } from "./run.ts"
import { ask, hookArgs, settle } from "./askHooks.ts"
import { take } from "../base/snapshot.ts"
import { afterCalls, afterModel, afterTurn, prepare, restartModel, startModel, startTurn } from "./turn.ts"
import { misfit } from "./permissions.ts"

/** Drives a run to its end, its pause or its failure. */
export const drive = (run: Run): Effect.Effect<void, KernelError> => {
  // What was done is stored even while the run is being interrupted (DR-7); another worker may have it by now.
  const ended = Effect.catchCause(withinDeadline(run, loop(run)), (cause) => fail(run, cause))
  return Effect.onInterrupt(ended, () => Effect.ignore(flush(run)))
}

const loop = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, KernelError> {
  const { completing } = run.state
  // Its end was decided, and onRunCompleted was asked: all that is left is to come to it (DR-10).
  if (completing !== undefined && run.state.status.type === "running") {
    yield* commit(run, "phase", [{ type: "run_completed", ...completing }])
  }
  while (run.state.status.type === "running") {
    const reason = run.stop?.()
    if (reason !== undefined) return yield* Effect.fail(reason)
    const step = stepFrom(run.state.status.phase, run)
    if (step !== Effect.void) yield* step
    // Many calls are reviewed one after the other, and every state that waits holds a list of them all.
    if (run.outbox.records.length > 255) yield* Effect.andThen(flush(run), Effect.yieldNow)
  }
  yield* flush(run)
})

/** What comes after a phase. Most of it is done when this returns. */
const stepFrom = (phase: Phase, run: Run): Effect.Effect<void, KernelError> => {
  switch (phase) {
    case "run_started":
      return settle(run, "onRunStarted", run.hooks.onRunStarted, {}, startTurn)
    case "turn_started":
      return prepare(run)
    case "turn_prepared":
      return startModel(run)
    case "model_started":
      return restartModel(run)
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

// ---------------------------------------------------------------- failure

/** Fails a run for a reason found outside of its steps. */
export const failWith = (run: Run, error: KernelError): Effect.Effect<never, KernelError> =>
  fail(run, Cause.fail(error))

/** Records why a run stopped, where there is something to record and a store to record it in (DR-18, DR-21). */
const fail = (run: Run, cause: Cause.Cause<KernelError>): Effect.Effect<never, KernelError> => {
  if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause)
  const error = cause.reasons.find(Cause.isFailReason)?.error
  switch (error?._tag) {
    // Another worker has the run: nothing more may be tried (DR-6).
    case "ConcurrentAppendError":
    case "AgentCrashError":
      return Effect.failCause(cause)
    // Where it was the store of runs nothing waits any more; what waits while another store fails is in hand (DR-7).
    case "StoreError":
      return Effect.andThen(Effect.ignore(flush(run)), Effect.failCause(cause))
    // A stop from outside is no failure: the head stays at the last commit.
    case "CancellationError":
      return flushed(run, cause)
    case "MiddlewareTermination": {
      const end = { source: "caller", reason: "guardrail", metadata: { reason: error.reason } } as const
      return Effect.andThen(commit(run, "phase", [{ type: "run_completed", ...end }], run.unkept), flushed(run, cause))
    }
    default:
      return Effect.andThen(failed(run, infoOf(error, cause)), flushed(run, cause))
  }
}

/** Why a run stopped, once what it did until then is stored (DR-7). */
const flushed = (run: Run, cause: Cause.Cause<KernelError>): Effect.Effect<never, KernelError> =>
  Effect.andThen(flush(run), Effect.failCause(cause))

const failed = Effect.fnUntraced(function* (run: Run, error: ErrorInfo) {
  const hook = run.hooks.onRunFailed
  if (hook !== undefined) {
    // A store that fails here ends the run itself; only what the hook does wrong is passed over.
    yield* flush(run)
    yield* observed("onRunFailed", () => ask(run, "onRunFailed", () => hook(hookArgs(run, { error }))))
  }
  yield* commit(run, "phase", [{ type: "run_failed", error }], run.unkept)
})

/** A failure as the journal keeps it, without what looks like a key (S-7); a bug keeps its stack for the log. */
const infoOf = (error: KernelError | undefined, cause: Cause.Cause<unknown>): ErrorInfo => {
  if (error === undefined) {
    return { tag: "Defect", message: redact(Cause.prettyErrors(cause)[0]?.message ?? "") }
  }
  const { _tag: tag, cause: _, message, ...facts } = error
  const fields: { [key: string]: Json } = {}
  for (const [key, value] of Object.entries(facts)) {
    const known = take(value)
    if (Result.isSuccess(known)) fields[key] = deep(known.success, redact)
  }
  return { tag, message: redact(message), ...(isEmpty(fields) ? {} : { fields }) }
}

// ---------------------------------------------------------------- the end

/** What a run that stopped gives: its result, or the typed reason why there is none. */
export const conclude = (run: Run): Effect.Effect<RunResult<unknown>, KernelError> => {
  const { runId, status } = run.state
  switch (status.type) {
    case "paused":
      return Effect.fail(new RunPaused({ runId, ...status }))
    case "failed":
    case "running":
      return Effect.die(new Error(`still ${status.type}`))
    case "completed": {
      const { maxTurns, reason }: JsonObject = isJsonObject(status.metadata) ? status.metadata : {}
      if (status.source === "max_turns") {
        return Effect.fail(
          new MaxStepsReached({ runId, limit: typeof maxTurns === "number" ? maxTurns : run.agent.maxSteps })
        )
      }
      // A host may end a run with the same word as its reason.
      if (status.reason === "guardrail" && typeof reason === "string") {
        return Effect.fail(new MiddlewareTermination({ reason }))
      }
      return answer(run.state) === undefined
        ? Effect.fail(new RunFinished({ runId, reason: status.reason ?? "by its host" }))
        : Effect.succeed(result(run.state, run.output))
    }
  }
}

/** Decodes the answer of a state that comes from the store, so that its result is whole again; tells why it does not fit. */
export const restoreOutput = (run: Run): OutputInvalid | undefined => {
  const { currentTurn, runId } = run.state
  const outcome = currentTurn?.outcome ?? turnLog(run.state).last()?.outcome
  if (outcome?.type !== "final" && outcome?.type !== "prose") return undefined
  const detail = misfit(run, outcome.text)
  // An answer that another turn follows is not the one to give.
  const isOld = currentTurn !== undefined && currentTurn.outcome === undefined
  return detail === undefined || isOld ? undefined : new OutputInvalid({ runId, detail })
}
