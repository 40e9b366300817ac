/**
 * Wraps calls: with the middleware of the host, a telemetry span, and a proof that this process still owns the run. The
 * revision and the lease in the store decide which process owns it.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Calls from "../../Call.ts"
import type { Call, CallResult } from "../../Call.ts"
import { AgentCrashError, ConcurrentAppendError, RunBusy } from "../../KernelError.ts"
import type { ToolEffect, ToolRun } from "../../Middleware.ts"
import type { RunHead } from "../../RunStore.ts"
import { guarded } from "../../kit/foreignCode.ts"
import { extensionError } from "../errors/extensionError.ts"
import { shown } from "../run/publish.ts"
import type { Run } from "../run/run.ts"
import { stepOf } from "../state/state.ts"
import type { FlushError } from "../../store-kit/storeGuard.ts"
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
  const { context, prompt, rootRunId, runId } = run.state
  const toolRun = { runId, rootRunId, step: stepOf(run.state), context, messages: prompt, call }
  const outermost = next
  return guarded(
    "callTool",
    () => outermost(toolRun),
    (error) => extensionError("callTool", error)
  )
}

/** Wraps a call in a span if telemetry is on. */
export const traced = <A, E>(
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
export const proveOwnership = (run: Run): Effect.Effect<void, FlushError | RunBusy> => {
  const { parent } = run
  const proven = flushed(
    run,
    Effect.flatMap(
      Effect.suspend(() => run.store.head(run.state.runId)),
      (head) => isOwn(run, Option.getOrUndefined(head))
    )
  )
  return parent === undefined ? proven : Effect.andThen(proveOwnership(parent), proven)
}

/**
 * Proves ownership right before a `write` call runs. Returns an error result, instead of running the call, if another
 * process owns the run or the store cannot tell. A process that lost the run stores nothing more.
 */
export const unlessLost = (run: Run, call: Call): Effect.Effect<CallResult | undefined> =>
  Effect.matchEffect(proveOwnership(run), {
    onSuccess: () => Effect.sync(() => ifOver(run, call)),
    onFailure: (error) =>
      Effect.sync(() => {
        if (error._tag === "StoreError") return refused(call, error)
        return lose(run, call)
      })
  })

/** Checks again by the local clock, synchronously: the process may have been suspended since it asked the store. */
export const ifOver = (run: Run, call: Call): CallResult | undefined =>
  run.stop?.()?._tag === "AgentCrashError" ? lose(run, call) : undefined

const isOwn = (run: Run, head: RunHead | undefined): Effect.Effect<void, FlushError | RunBusy> => {
  const { revision, runId } = run.state
  const expectedSeq = revision - run.records.length
  if (head?.revision !== expectedSeq) {
    return Effect.fail(new ConcurrentAppendError({ runId, expectedSeq, actualSeq: head?.revision ?? 0 }))
  }
  const { lease } = head
  if (lease?.isLive === true && lease.workerId !== run.holder) {
    return Effect.fail(new RunBusy({ runId, workerId: lease.workerId, expiresAt: lease.expiresAt }))
  }
  return run.parent === undefined && run.prove !== undefined ? run.prove(head) : Effect.void
}

const lose = (run: Run, call: Call): CallResult => {
  const lost = new AgentCrashError({ runId: run.state.runId, agentId: run.agent.name })
  run.failed = lost
  return refused(call, lost)
}

const refused = (call: Call, { _tag, message }: Pick<AgentCrashError, "message"> & { readonly _tag: string }) =>
  Calls.failed(call, Calls.error(_tag, `The call was not started: ${message}`))
