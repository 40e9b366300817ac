/**
 * Turns a call into its result, for every kind of target: a skill, a protocol, a builtin, a task or another agent.
 *
 * Failures, defects, timeouts and values that are not JSON become error results whose text the model can read; causes
 * are logged. Only middleware and errors that concern the run itself fail the effect.
 */

import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import type { Call, CallError, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import { InFlightToolCalls } from "../../KernelError.ts"
import { failureIn } from "../../kit/foreignCode.ts"
import { agentTarget } from "./childTarget.ts"
import { isLost, lose, throughMiddleware, tracedCall, unlessLost } from "./aroundCall.ts"
import { asking } from "./callAsks.ts"
import { short } from "../skill/failureText.ts"
import { type LiveEvent, emit, endReports, keepReports } from "../run/publish.ts"
import { type CallsError, type Run, type TaskError, isRecovered, now } from "../run/run.ts"
import { type Answer, askable, refusedEvent, scopeOf, type Target, targetFor, targetOf } from "./targets.ts"
import { withinTimeout } from "../run/deadline.ts"

/**
 * Runs a call. A call of another agent is a child run; the middleware wraps the calls inside it instead.
 *
 * A call that was in flight before and cannot run here stays in flight: it may have had its effect, so "not found" is no
 * result of it.
 */
export const dispatch = (run: Run, call: Call): Effect.Effect<CallResult, CallsError> =>
  Effect.suspend((): Effect.Effect<CallResult, CallsError> => {
    const lost = isRecovered(run, call) ? unavailable(run, call) : undefined
    if (lost !== undefined) return Effect.fail(lost)
    return call.kind === "agent" ? askAgent(run, call) : throughMiddleware(run, call, (call) => sendCall(run, call))
  })

/** Returns the error for a call that cannot run here. */
const unavailable = (run: Run, call: Call): InFlightToolCalls | undefined => {
  const found = targetFor(run, call)
  if (Result.isSuccess(found)) return undefined
  return new InFlightToolCalls({ runId: run.state.runId, callIds: [call.callId], detail: found.failure.message })
}

const askAgent = (run: Run, call: Call): Effect.Effect<CallResult, TaskError> =>
  Effect.suspend(() => {
    const callable = call.fault === undefined ? askable(run, call) : Result.fail(call.fault)
    return Result.isSuccess(callable)
      ? send(run, call, agentTarget(run, call, callable.success, scopeOf(run, call)))
      : Effect.succeed(refuse(run, call, callable.failure))
  })

const sendCall = (run: Run, call: Call): Effect.Effect<CallResult> =>
  Effect.suspend(() => {
    const target = targetOf(run, call)
    return Result.isSuccess(target)
      ? send(run, call, target.success)
      : Effect.succeed(refuse(run, call, target.failure))
  })

/** Emits why a call cannot be sent, and returns that as its result. Synchronous. */
const refuse = (run: Run, call: Call, reason: CallError): CallResult => {
  const error = short(reason, run.limits)
  emit(run, refusedEvent(call, error))
  return Calls.failed(call, error)
}

/** Sends a call to its target and returns its result. A call that asks a person returns an `AskingResult`. */
export const send = Effect.fnUntraced(function* <A, E>(
  run: Run,
  call: Call,
  target: Target<A, E>
): Effect.fn.Return<CallResult, E> {
  const isWrite = target.effects === "write"
  if (isWrite) {
    const lost = yield* unlessLost(run, call)
    if (lost !== undefined) return lost
  }
  const { started } = target
  if (started !== undefined) emit(run, started)
  // Listeners may have taken longer than the lease.
  if (isWrite && isLost(run)) return lose(run, call)
  if (started?.type === "task_start") keepReports(run, call.callId, () => [started])
  const startedAt = now(run)
  const exit = yield* withinTimeout(run, target.limit, tracedCall(run, call, target))
  const durationMs = now(run) - startedAt
  if (started?.type === "task_start") endReports(run, call.callId)
  const spent = target.asks?.spent()
  const question = target.asks?.open()
  if (question !== undefined) return asking(call, question, spent)
  const kept = Exit.isSuccess(exit)
    ? yield* Effect.exit(Effect.suspend(() => target.keep(exit.value, durationMs)))
    : Exit.failCause(exit.cause)
  const used = spent === undefined ? { durationMs } : { durationMs, spent }
  const { after, event, result } = Exit.isSuccess(kept)
    ? succeeded(call, kept.value, used)
    : yield* failed(call, target, kept.cause, used)
  emit(run, event)
  if (after !== undefined) yield* after
  return result
})

/** The result of a call, the event about it, and what runs after the event. */
interface Ended {
  readonly result: CallResult
  readonly event: LiveEvent
  readonly after?: Effect.Effect<unknown> | undefined
}

/** How long a call took, and what its own model calls used. */
type Used = Pick<CallResult, "spent"> & { readonly durationMs: number }

const succeeded = (call: Call, { after, event, facts, output }: Answer, used: Used): Ended => ({
  after,
  event,
  result: Calls.succeeded(call, output, facts === undefined ? used : { ...used, ...facts })
})

/** Explains a failure to the model. Fails with errors that concern the run itself. */
const failed = Effect.fnUntraced(function* <A, E>(
  call: Call,
  target: Target<A, E>,
  cause: Cause.Cause<unknown>,
  used: Used
): Effect.fn.Return<Ended, E> {
  const failure = failureIn(cause)
  if (target.concerns(failure)) return yield* Effect.fail(failure)
  const { after, error, event, ...facts } = yield* target.fail(cause, used.durationMs)
  return { after, event, result: Calls.failed(call, error, { ...used, ...facts }) }
})
