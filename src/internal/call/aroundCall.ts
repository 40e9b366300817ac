/**
 * Wraps calls: with the middleware of the host, a telemetry span, and a proof that this process still owns the run. The
 * revision and the lease in the store decide which process owns it.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Calls from "../../Call.ts"
import type { Call, CallResult } from "../../Call.ts"
import { AgentCrashError, ConcurrentAppendError, RunBusy } from "../../KernelError.ts"
import type { ToolEffect, ToolRun } from "../../Middleware.ts"
import { guarded } from "../../kit/foreignCode.ts"
import { extensionError } from "../errors/extensionError.ts"
import { isHiccup } from "../errors/failedCall.ts"
import { shown } from "../run/publish.ts"
import { type Run, policyScope } from "../run/run.ts"
import { stepOf } from "../state/state.ts"
import type { FlushError } from "../../store-kit/internal/storeGuard.ts"
import type { Target } from "./targets.ts"
import { flushed } from "../run/commit.ts"

/** Runs a call through the middleware, the first one outermost. */
export const throughMiddleware = (
  run: Run,
  call: Call,
  send: (call: Call) => Effect.Effect<CallResult>
): ToolEffect => {
  let next: ((toolRun: ToolRun) => ToolEffect) | undefined
  for (const { callTool } of run.middleware.toReversed()) {
    if (callTool === undefined) continue
    const inner = next ?? ((toolRun: ToolRun): ToolEffect => send(toolRun.call))
    next = (toolRun) => callTool(toolRun, inner)
  }
  if (next === undefined) return send(call)
  const toolRun = { ...policyScope(run), step: stepOf(run.state), messages: run.state.prompt, call }
  const outermost = next
  return guarded(
    "callTool",
    () => outermost(toolRun),
    (error) => extensionError("callTool", error)
  )
}

/** Returns whether middleware wraps the calls of a run. */
export const hasCallMiddleware = ({ middleware }: Run): boolean =>
  middleware.some(({ callTool }) => callTool !== undefined)

/** Wraps a call in a span if telemetry is on. */
export const tracedCall = <A, E>(
  run: Run,
  { callId, kind }: Call,
  { effects, input, name, perform }: Target<A, E>
): Effect.Effect<A, unknown> =>
  run.telemetry === undefined || kind === "task" || kind === "agent" || kind === "handoff" || kind === "builtin"
    ? perform
    : run.telemetry.tool(perform, { name, kind, callId, effects, input: () => shown(run, input) }, (output) => ({
        output: () => shown(run, output)
      }))

/**
 * Flushes, then fails unless this process owns the run and all its ancestors: the last stored record of each is its
 * own, no other worker holds a lease, and the host of the root run proves its lease.
 */
export const proveOwnership = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, FlushError | RunBusy> {
  if (run.parent !== undefined) yield* proveOwnership(run.parent)
  yield* flushed(run, proveHead(run))
})

const proveHead = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, FlushError | RunBusy> {
  const { revision, runId } = run.state
  const expected = revision - run.records.length
  const head = Option.getOrUndefined(yield* run.store.head(runId))
  if (head?.revision !== expected) {
    return yield* new ConcurrentAppendError({ runId, expected, actual: head?.revision ?? 0 })
  }
  const { lease } = head
  if (lease?.isLive === true && lease.workerId !== run.holder && lease.workerId !== run.workerId) {
    return yield* new RunBusy({ runId, workerId: lease.workerId, expiresAt: lease.expiresAt })
  }
  if (run.parent === undefined && run.prove !== undefined) yield* run.prove(head)
})

/** Proves ownership, and again while the store is away, for as long as an append may take. */
const proveInTime = (run: Run): Effect.Effect<void, FlushError | RunBusy> =>
  Effect.retry(proveOwnership(run), {
    while: (error) => isHiccup(error) && run.failed === undefined && !isLost(run),
    schedule: Schedule.upTo(Schedule.spaced("500 millis"), { duration: run.limits.appendTimeout })
  })

/**
 * Proves ownership right before a `write` call runs. Returns an error result, instead of running the call, if another
 * process owns the run or the store cannot tell. A process that lost the run stores nothing more.
 */
export const unlessLost = Effect.fnUntraced(function* (run: Run, call: Call): Effect.fn.Return<CallResult | undefined> {
  const proof = yield* Effect.result(proveInTime(run))
  if (Result.isSuccess(proof)) return isLost(run) ? lose(run, call) : undefined
  return proof.failure._tag === "StoreError" && !isLost(run) ? refused(call, proof.failure) : lose(run, call)
})

/** Checks again by the local clock: the process may have been suspended since it asked the store. */
export const isLost = (run: Run): boolean => run.stop?.()?._tag === "AgentCrashError"

/** Lets this process store nothing more, and returns the error result of a call that it does not run. Synchronous. */
export const lose = (run: Run, call: Call): CallResult => {
  const lost = new AgentCrashError({ runId: run.state.runId, agentId: run.agent.name })
  run.failed = lost
  return refused(call, lost)
}

const refused = (call: Call, { _tag, message }: Pick<AgentCrashError, "message"> & { readonly _tag: string }) =>
  Calls.failed(call, Calls.error(_tag, `The call was not started: ${message}`))
