/**
 * What stands around a call: the middleware of the host, and the span of telemetry.
 */

import type * as Effect from "effect/Effect"
import type { Call, CallResult } from "../../Call.ts"
import type { ToolEffect, ToolRun } from "../../Middleware.ts"
import { extensionError, guarded } from "../base/foreignCode.ts"
import { stepOf } from "../state/state.ts"
import type { Run } from "../run/run.ts"
import { shown } from "../run/publish.ts"
import type { Target } from "../target/targets.ts"

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

/** The span of a call, when telemetry is on. */
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
