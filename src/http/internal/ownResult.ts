/**
 * The result of a stored run, as a response.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import type { Json } from "../../kit/json.ts"
import * as RunState from "../../RunState.ts"
import type { Runnable } from "../../RunWorker.ts"
import { Conflict, type HttpProblem } from "../HttpProblem.ts"
import type * as Bodies from "../RunBodies.ts"

/** Returns the result of a completed run. */
export const resultOf = (
  state: RunState.RunState,
  agents: ReadonlyMap<string, Runnable<unknown>>
): Effect.Effect<Bodies.Result, HttpProblem> => {
  if (state.status.type !== "completed" || RunState.answer(state) === undefined) {
    return Effect.fail(new Conflict({ reason: "not_completed", id: state.runId }))
  }
  const { calls, messages, text, ...rest } = RunState.result(state, undefined)
  const agent = agents.get(rest.agent)
  return Effect.succeed({
    runId: rest.runId,
    status: rest.status,
    agent: rest.agent,
    output: agent?.typed === true ? outputOf(text, agent.outputJsonSchema?.()["type"] === "string") : text,
    text,
    usage: rest.usage,
    ...(rest.costUsd === undefined ? {} : { costUsd: rest.costUsd }),
    turns: rest.turns,
    finishReason: rest.finishReason,
    messages,
    calls: calls.map(({ callId, error, input, isError, name, turn }) => ({
      callId,
      name,
      input,
      isError,
      ...(error === undefined ? {} : { error }),
      turn
    }))
  })
}

/** Reads the answer of an agent with an output schema: JSON, or a text that its schema accepts without quotes. */
const outputOf = (text: string, isText: boolean): Json => {
  const parsed = Schema.decodeUnknownOption(Schema.fromJsonString(Schema.Json))(text)
  // Where any text is an answer, JSON in it is text, too.
  if (parsed._tag === "None" || (isText && typeof parsed.value !== "string")) return text
  return parsed.value
}
