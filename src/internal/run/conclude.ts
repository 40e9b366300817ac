/**
 * The end of a run: its typed answer, or the typed reason why there is none.
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
import { type JsonObject, isJsonObject } from "../base/json.ts"
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
      // A host may finish a run with the same word as its reason.
      if (status.reason === "guardrail" && typeof reason === "string") {
        return Effect.fail(new MiddlewareTermination({ reason }))
      }
      return answer(run.state) === undefined
        ? Effect.fail(new RunFinished({ runId, reason: status.reason ?? "by its host" }))
        : Effect.succeed(result(run.state, run.output))
    }
  }
}

/** The error of a run that was cancelled. */
export const cancelled = (
  runId: string,
  { by, reason }: Pick<Extract<Status, { readonly type: "cancelled" }>, "by" | "reason">
): RunCancelled =>
  new RunCancelled({ runId, ...(reason === undefined ? {} : { reason }), ...(by === undefined ? {} : { by }) })

/** Decodes the answer that a stored run already has. Fails when it does not fit the agent's output schema any more. */
export const storedOutput = (agent: AnyAgent, state: RunState): Result.Result<unknown, OutputInvalid> => {
  const { currentTurn, runId } = state
  const outcome = currentTurn?.outcome ?? turnLog(state).last()?.outcome
  if (outcome?.type !== "final" && outcome?.type !== "prose") return Result.succeed(undefined)
  const output = readOutput(agent, outcome.text)
  if (Result.isSuccess(output)) return Result.succeed(output.success)
  // An answer that another turn follows is not the one to give.
  const isOld = currentTurn !== undefined && currentTurn.outcome === undefined
  return isOld ? Result.succeed(undefined) : Result.fail(new OutputInvalid({ runId, detail: output.failure }))
}

/** Decodes an answer by the agent's output schema. Fails with a sentence that says what does not fit. */
export const readOutput = (agent: AnyAgent, text: string): Result.Result<unknown, string> =>
  agent.typed ? decoderOf(agent)(text.trim()) : Result.succeed(text)

/** The JSON Schema of a typed answer as text. Undefined for plain text. */
export const outputSchema = (agent: AnyAgent): string | undefined => {
  if (!agent.typed) return undefined
  let text = schemas.get(agent)
  if (text === undefined) schemas.set(agent, (text = JSON.stringify(agent.outputJsonSchema?.() ?? {})))
  return text
}

const decoders = new WeakMap<AnyAgent, (text: string) => Result.Result<unknown, string>>()

const decoderOf = (agent: AnyAgent) => {
  let decoder = decoders.get(agent)
  if (decoder === undefined) {
    const decode = Schema.decodeUnknownResult(agent.output)
    const read = (text: string) =>
      Result.flatMap(
        // A recursive schema must not end the process when a text nests too deeply for it.
        Result.try({ try: () => decode(text), catch: () => "It cannot be read: it nests too deeply." }),
        Result.mapError((error) => error.message)
      )
    // A word or a sentence may leave its quotes out. A text that begins like JSON has to be JSON.
    decoder = (text) =>
      Result.orElse(read(text), (reason) =>
        /^["{[]/.test(text) ? Result.fail(reason) : Result.mapError(read(JSON.stringify(text)), () => reason)
      )
    decoders.set(agent, decoder)
  }
  return decoder
}

const schemas = new WeakMap<AnyAgent, string>()
