/**
 * OpenTelemetry's conventions for generative AI: names, contents of messages, and the span and the duration metric of
 * an effect.
 *
 * The conventions are still in development. These are from `gen-ai-dev/1.42.0-dev`. When they change, only this file
 * has to change.
 *
 * Measuring never changes the result, the failure or the interruption of an effect. A span has the type of a failure,
 * but its text only if that is known to hold no secrets. Media are included by reference only, and redacted thinking
 * stays hidden.
 */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as Tracer from "effect/Tracer"
import * as Content from "../../Content.ts"
import type { Message } from "../../Message.ts"
import { field, hasTag, isA, reasonIn, tagOf } from "../../kit/foreignCode.ts"

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
  // A span of an agent has the sums of the spans below it, under names that nobody adds to theirs.
  allInputTokens: "gen_ai.aggregated_usage.input_tokens",
  allOutputTokens: "gen_ai.aggregated_usage.output_tokens",
  allCachedTokens: "gen_ai.aggregated_usage.cache_read.input_tokens",
  allReasoningTokens: "gen_ai.aggregated_usage.reasoning.output_tokens",
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
  // Names of kernai that the conventions lack.
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

/** Returns the name of a provider in the conventions. */
export const providerName = (name: string): string => providers.get(name) ?? name

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
  nextChunk: seconds(
    "gen_ai.client.operation.time_per_output_chunk",
    "Time from each part of a reply to the next.",
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

/** Returns a message in the format of the conventions. */
export const messageOf = (message: Message): object => ({ role: message.role, parts: message.content.map(partOf) })

/** Returns a content in the format of the conventions. */
export const partOf = (content: Content.Content): object => {
  switch (content.type) {
    case "text":
      return { type: "text", content: content.text }
    case "thinking":
      return { type: "reasoning", content: content.redacted ? "" : content.content }
    case "tool_use":
      return { type: "tool_call", id: content.callId, name: content.name, arguments: content.input }
    case "tool_result":
      return { type: "tool_call_response", id: content.callId, result: content.content.map(partOf) }
    case "image":
    case "audio":
    case "video":
    case "document":
      return {
        type: "media",
        modality: content.type,
        mime_type: content.mediaType,
        id: content.fileId,
        uri: content.url
      }
    default:
      return { type: content.type, content: Content.toText(content) }
  }
}

/** Span attributes. Undefined values are left out. */
export type Attributes = { readonly [name: string]: string | number | boolean | ReadonlyArray<string> | undefined }

/** Adds to a span at the end of an effect. */
export interface OpenSpan {
  readonly add: (attributes: Attributes) => void
  /** Marks the span as failed although the effect succeeded, for a value that describes a failure. */
  readonly failed: (type: string) => void
  readonly count: (metric: Histogram, value: number, more?: { readonly [name: string]: string }) => void
}

/** The name, attributes and metric of a measured effect. */
interface Measure<A> {
  readonly name: string
  readonly kind: Tracer.SpanKind
  readonly attributes: Attributes
  /** A span of another trace that the effect belongs to. */
  readonly link?: Tracer.AnySpan | undefined
  /** The histogram of the duration in seconds. */
  readonly metric: Histogram
  /** The attributes that metrics have, too. Of low cardinality. */
  readonly dimensions: ReadonlyArray<string>
  /** Whether the text of a typed failure may be shown. */
  readonly showsFailures: boolean
  readonly outcome: (value: A, span: OpenSpan) => void
}

/** Measures an effect with a span and a duration metric. */
export const measured = <A, E, R>(effect: Effect.Effect<A, E, R>, measure: Measure<A>): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.withFiber((fiber) => {
      const clock = fiber.getRef(Clock.Clock)
      const { context } = fiber
      const { kind, link } = measure
      const links = link === undefined || link.traceId === traceOf(context) ? [] : [{ span: link, attributes: {} }]
      const options = { kind, links, attributes: present(measure.attributes), captureStackTrace: false }
      return Effect.flatMap(Effect.makeSpan(measure.name, options), (span) => {
        const started = clock.currentTimeNanosUnsafe()
        return Effect.onExit(restore(Effect.withParentSpan(effect, span, { captureStackTrace: false })), (exit) =>
          Effect.sync(() => finish(measure, exit, { span, context, started, ended: clock.currentTimeNanosUnsafe() }))
        )
      })
    })
  )

const traceOf = (context: Context.Context<never>): string | undefined =>
  Context.getOrUndefined(context, Tracer.ParentSpan)?.traceId

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

type Histogram = Metric.Histogram<number>

interface End {
  readonly span: Tracer.Span
  readonly context: Context.Context<never>
  readonly started: bigint
  readonly ended: bigint
}

const finish = <A, E>(measure: Measure<A>, exit: Exit.Exit<A, E>, end: End): void => {
  const { context, ended, span, started } = end
  const dimensions: { [name: string]: string } = {}
  for (const name of measure.dimensions) {
    const value = measure.attributes[name]
    if (value !== undefined) dimensions[name] = String(value)
  }
  let failure: string | undefined
  const open: OpenSpan = {
    add: (attributes) => annotate(span, attributes),
    failed: (type) => {
      failure = type
    },
    count: (metric, value, more) =>
      Metric.withAttributes(metric, { ...dimensions, ...more }).updateUnsafe(value, context)
  }
  try {
    if (Exit.isSuccess(exit)) measure.outcome(exit.value, open)
    else if (isPause(exit.cause)) annotate(span, { [names.paused]: true })
    else failure = errorType(exit.cause)
    if (failure !== undefined) annotate(span, { [names.errorType]: failure })
    const seconds = Number(ended - started) / 1e9
    open.count(measure.metric, seconds, failure === undefined ? {} : { [names.errorType]: failure })
  } catch {
    // An exporter or a function that throws must not end a run.
  }
  span.end(ended, shown(exit, failure, measure.showsFailures))
}

/**
 * Returns the exit to report in the span. A pause is not a failure, and of foreign failures and defects only the type
 * is shown.
 */
const shown = <A, E>(
  exit: Exit.Exit<A, E>,
  failure: string | undefined,
  showsFailures: boolean
): Exit.Exit<unknown, unknown> => {
  if (failure === undefined) return Exit.void
  if (Exit.isFailure(exit)) {
    if (Cause.hasInterruptsOnly(exit.cause)) return exit
    if (showsFailures && !Cause.hasDies(exit.cause)) return exit
  }
  return Exit.fail(failure)
}

/** Returns the type of a failure, a word of low cardinality. */
const errorType = (cause: Cause.Cause<unknown>): string => {
  if (Cause.hasInterruptsOnly(cause)) return "interrupted"
  const error = reasonIn(cause)
  const reason = field(error, "reason")
  if (typeof reason === "string" && /^[a-z_]{1,40}$/.test(reason)) return reason
  const tag = tagOf(error)
  return tag === "Error" && !isA(error, Error) ? "_OTHER" : tag
}

const isPause = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isFailReason(reason) && hasTag(reason.error, "RunPaused"))

const annotate = (span: Tracer.Span, attributes: Attributes): void => {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.attribute(name, value)
}

const present = (attributes: Attributes): Record<string, unknown> =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined))
