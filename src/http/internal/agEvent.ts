/**
 * Events of the AG-UI protocol.
 */

import type { Call } from "../../Call.ts"
import type { Json, JsonObject } from "../../kit/json.ts"
import type { Question } from "../../RunModel.ts"
import type { Usage } from "../../Usage.ts"
import { type Chunk, chunk } from "./uiChunk.ts"

/** An event with the names of the protocol. */
export type AgEvent = Chunk

/** Creates an event, without undefined fields. */
export const make: typeof chunk = chunk

/** Returns a value as the text of a message. */
export const textOf = (value: Json | undefined): string =>
  typeof value === "string" ? value : JSON.stringify(value ?? null)

/** Creates the interrupt of a question, also one of a called agent. Its id names the run and the call. */
export const interruptOf = (
  runId: string,
  { asking, callId, reason }: Pick<Question, "asking" | "callId" | "reason">,
  subagentRunId?: string
): JsonObject => ({
  id: `${runId}/${callId}`,
  reason: "tool_call",
  message: reason,
  toolCallId: callId,
  responseSchema: responseSchemaOf(asking),
  ...(subagentRunId === undefined ? {} : { subagentRunId }),
  ...(asking?.url === undefined ? {} : { url: asking.url })
})

/** Creates the interrupt of a run that its host paused, without a question. */
export const pauseOf = (runId: string, reason: string): JsonObject => ({ id: `${runId}/`, reason })

/** Returns the run and the call of an interrupt. */
export const askedBy = (interruptId: string): { readonly runId: string; readonly callId: Call["callId"] } => {
  const at = interruptId.indexOf("/")
  return { runId: interruptId.slice(0, Math.max(0, at)), callId: interruptId.slice(at + 1) }
}

const responseSchemaOf = (asking: Question["asking"]): JsonObject => {
  if (asking === undefined) return responseSchema
  return asking.output === undefined ? replySchema(asking.form) : resultSchema(asking.output)
}

/** Returns the JSON Schema of the result of an external call. */
const resultSchema = (output: JsonObject): JsonObject => ({
  type: "object",
  oneOf: [
    { properties: { output }, required: ["output"] },
    { properties: { error: { type: "string" } }, required: ["error"] }
  ]
})

const responseSchema = {
  type: "object",
  properties: { approved: { type: "boolean" }, reason: { type: "string" }, input: {} },
  required: ["approved"]
}

/** Returns the JSON Schema of the reply to a question of a running call. */
const replySchema = (form: JsonObject | undefined): JsonObject => ({
  type: "object",
  properties: {
    approved: { type: "boolean" },
    reason: { type: "string" },
    dismissed: { type: "boolean" },
    ...(form === undefined ? {} : { values: form })
  },
  required: ["approved"]
})

/** Returns the usage of a model. `key` is `provider/model`. */
export const usageOf = (key: string, usage: Usage): JsonObject => {
  const at = key.indexOf("/")
  const { cacheWriteTokens, cachedTokens, inputTokens, outputTokens, reasoningTokens } = usage
  return {
    ...(at < 0 ? {} : { provider: key.slice(0, at) }),
    model: key.slice(at + 1),
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    reasoningTokens,
    cachedInputTokens: cachedTokens,
    ...(cacheWriteTokens === undefined ? {} : { cacheWriteInputTokens: cacheWriteTokens })
  }
}
