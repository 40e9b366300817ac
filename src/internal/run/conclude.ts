/**
 * Converts the end of a run into its typed answer, or the typed reason why it has none.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
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
import { turnLog } from "../state/state.ts"
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
        return Effect.fail(new MaxStepsReached({ runId, limit }))
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
  const output = readOutput(agent, outcome.text)
  if (Result.isSuccess(output)) return Result.succeed(output.success)
  // A later turn replaces this answer, so it need not fit.
  const isOld = currentTurn !== undefined && currentTurn.outcome === undefined
  return isOld ? Result.succeed(undefined) : Result.fail(new OutputInvalid({ runId, detail: output.failure }))
}

/** Decodes an answer with the agent's output schema. Fails with a sentence that describes the mismatch. */
export const readOutput = (agent: AnyAgent, text: string): Result.Result<unknown, string> =>
  agent.typed ? decoderOf(agent)(text.trim()) : Result.succeed(text)

/** Returns the JSON Schema of a typed answer as text. Undefined for plain text. */
export const outputSchema = (agent: AnyAgent): string | undefined => (agent.typed ? schemaOf(agent) : undefined)

const schemaOf = perObject((agent: AnyAgent) => JSON.stringify(agent.outputJsonSchema?.() ?? {}))

const decoderOf = perObject((agent: AnyAgent) => {
  const decode = Schema.decodeUnknownResult(agent.output)
  const read = (text: string) =>
    Result.flatMap(
      // Decoding deeply nested text with a recursive schema may overflow the stack.
      Result.try({ try: () => decode(text), catch: () => "It cannot be read: it nests too deeply." }),
      Result.mapError((error) => error.message)
    )
  // A string may be sent without its quotes. Text that begins like JSON must be JSON.
  return (text: string): Result.Result<unknown, string> =>
    Result.orElse(read(text), (reason) =>
      /^["{[]/.test(text) ? Result.fail(reason) : Result.mapError(read(JSON.stringify(text)), () => reason)
    )
})
