/**
 * Converts the end of a run into its typed answer, or the typed reason why it has none.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import {
  MaxStepsReached,
  MiddlewareTermination,
  OutputInvalid,
  RunCancelled,
  RunFinished,
  RunPaused
} from "../../KernelError.ts"
import { type RunResult, type RunState, type Status, answer, result } from "../../RunState.ts"
import { perObject } from "../../kit/perObject.ts"
import { type JsonObject, isJsonObject } from "../../kit/json.ts"
import { lastCorrective, lastText, turnLog } from "../state/state.ts"
import { readAnswer } from "./readAnswer.ts"
import type { AnyAgent, EndError, Run } from "./run.ts"

/** Returns the result of a run that stopped, or fails with the reason why it has none. */
export const conclude = (run: Run): Effect.Effect<RunResult<unknown>, EndError> => {
  const { runId, status } = run.state
  switch (status.type) {
    case "paused":
      return Effect.fail(new RunPaused({ runId, ...status }))
    case "cancelled":
      return Effect.fail(cancelled(runId, status))
    case "failed":
    case "running":
      return Effect.die(new Error(`still ${status.type}`))
    case "completed": {
      const { maxTurns, reason }: JsonObject = isJsonObject(status.metadata) ? status.metadata : {}
      if (status.source === "max_turns") {
        const limit = typeof maxTurns === "number" ? maxTurns : run.maxSteps
        const text = lastText(run.state)
        const told = { ...(text === "" ? {} : { text }), ...lastCorrective(run.state) }
        return Effect.fail(new MaxStepsReached({ runId, limit, ...told }))
      }
      // A host may finish a run with the reason `guardrail`, too, but without this metadata.
      if (status.reason === "guardrail" && typeof reason === "string") {
        return Effect.fail(new MiddlewareTermination({ reason }))
      }
      return answer(run.state) === undefined
        ? Effect.fail(new RunFinished({ runId, reason: status.reason ?? "by its host" }))
        : Effect.succeed(result(run.state, run.output))
    }
  }
}

/** Returns the error of a cancelled run. */
export const cancelled = (
  runId: string,
  { by, reason }: Pick<Extract<Status, { readonly type: "cancelled" }>, "by" | "reason">
): RunCancelled =>
  new RunCancelled({ runId, ...(reason === undefined ? {} : { reason }), ...(by === undefined ? {} : { by }) })

/** Decodes the answer of a stored run. Fails if it no longer fits the agent's output schema. */
export const storedOutput = (agent: AnyAgent, state: RunState): Result.Result<unknown, OutputInvalid> => {
  const { currentTurn, runId } = state
  const outcome = currentTurn?.outcome ?? turnLog(state).last()?.outcome
  if (outcome?.type !== "final" && outcome?.type !== "prose") return Result.succeed(undefined)
  const read = readAnswer(agent, outcome.text)
  if (Result.isSuccess(read)) return Result.succeed(read.success.output)
  // A later turn replaces this answer, so it need not fit.
  const isOld = currentTurn !== undefined && currentTurn.outcome === undefined
  return isOld ? Result.succeed(undefined) : Result.fail(new OutputInvalid({ runId, detail: read.failure }))
}

/** Returns the JSON Schema of a typed answer as text. Undefined for plain text. */
export const outputSchema = (agent: AnyAgent): string | undefined => (agent.typed ? schemaOf(agent) : undefined)

const schemaOf = perObject((agent: AnyAgent) => JSON.stringify(agent.outputJsonSchema?.() ?? {}))
