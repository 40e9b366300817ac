/**
 * The names of OpenTelemetry's conventions for generative AI.
 *
 * The conventions are still in development. These are from `gen-ai-dev/1.42.0-dev`; change only this file when they
 * move.
 */

import * as Metric from "effect/Metric"

/** Values of `gen_ai.operation.name`. */
export const operations = {
  chat: "chat",
  invokeAgent: "invoke_agent",
  executeTool: "execute_tool",
  invokeWorkflow: "invoke_workflow"
} as const

/** Attributes of spans and metrics. */
export const names = {
  operation: "gen_ai.operation.name",
  provider: "gen_ai.provider.name",
  conversation: "gen_ai.conversation.id",
  agentName: "gen_ai.agent.name",
  agentDescription: "gen_ai.agent.description",
  requestModel: "gen_ai.request.model",
  temperature: "gen_ai.request.temperature",
  topP: "gen_ai.request.top_p",
  maxTokens: "gen_ai.request.max_tokens",
  stopSequences: "gen_ai.request.stop_sequences",
  seed: "gen_ai.request.seed",
  stream: "gen_ai.request.stream",
  responseId: "gen_ai.response.id",
  responseModel: "gen_ai.response.model",
  finishReasons: "gen_ai.response.finish_reasons",
  firstChunk: "gen_ai.response.time_to_first_chunk",
  inputTokens: "gen_ai.usage.input_tokens",
  outputTokens: "gen_ai.usage.output_tokens",
  cachedTokens: "gen_ai.usage.cache_read.input_tokens",
  reasoningTokens: "gen_ai.usage.reasoning.output_tokens",
  tokenType: "gen_ai.token.type",
  toolName: "gen_ai.tool.name",
  toolType: "gen_ai.tool.type",
  callId: "gen_ai.tool.call.id",
  toolArguments: "gen_ai.tool.call.arguments",
  toolResult: "gen_ai.tool.call.result",
  systemInstructions: "gen_ai.system_instructions",
  inputMessages: "gen_ai.input.messages",
  outputMessages: "gen_ai.output.messages",
  errorType: "error.type",
  // Names of kernai, where the conventions have none.
  runId: "kernai.run.id",
  rootRunId: "kernai.run.root_id",
  depth: "kernai.run.depth",
  step: "kernai.run.step",
  turns: "kernai.run.turns",
  paused: "kernai.run.paused",
  costUsd: "kernai.cost_usd",
  effects: "kernai.tool.effects",
  tasks: "kernai.workflow.tasks",
  goal: "kernai.workflow.goal"
} as const

/** The name of a provider in the conventions, if it differs from ours. */
export const providerName = (name: string): string => providers.get(name) ?? name

const providers: ReadonlyMap<string, string> = new Map([
  ["gemini", "gcp.gemini"],
  ["google", "gcp.gemini"],
  ["vertex", "gcp.vertex_ai"],
  ["bedrock", "aws.bedrock"],
  ["azure", "azure.ai.openai"],
  ["mistral", "mistral_ai"],
  ["moonshot", "moonshot_ai"],
  ["xai", "x_ai"]
])

const seconds = (name: string, description: string, boundaries: ReadonlyArray<number>) =>
  Metric.histogram(name, { description, boundaries, attributes: { unit: "s" } })

const doubling = (from: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, power) => Number((from * 2 ** power).toPrecision(4)))

/** Histograms, with the boundaries of the conventions. */
export const metrics = {
  tokens: Metric.histogram("gen_ai.client.token.usage", {
    description: "Number of input and output tokens used.",
    boundaries: Array.from({ length: 14 }, (_, power) => 4 ** power),
    attributes: { unit: "{token}" }
  }),
  chat: seconds("gen_ai.client.operation.duration", "Duration of a model call.", doubling(0.01, 14)),
  firstChunk: seconds(
    "gen_ai.client.operation.time_to_first_chunk",
    "Time until the first part of a reply.",
    doubling(0.01, 14)
  ),
  run: seconds("gen_ai.invoke_agent.duration", "Duration of a run.", doubling(0.1, 13)),
  tool: seconds("gen_ai.execute_tool.duration", "Duration of a call.", doubling(0.01, 14)),
  workflow: seconds(
    "gen_ai.workflow.duration",
    "Duration of a workflow.",
    [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200]
  )
}
