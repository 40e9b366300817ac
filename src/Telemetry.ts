/**
 * Traces and measures runs by OpenTelemetry's conventions for generative AI.
 *
 * A run is traced if the fiber that starts it has a `Tracer`, such as one of `effect/observability`. Without a `Tracer`
 * nothing is traced or measured, at no cost. `layerOff` turns telemetry off. Prompts, replies, inputs and results are
 * left out of spans unless `captureContent` is set.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { AnySpan } from "effect/Tracer"
import type { CallKind } from "./Call.ts"
import type { Generation } from "./Generation.ts"
import type { Attributes, OpenSpan } from "./internal/record/genAi.ts"
import { measured, messageOf, metrics, names, operations, partOf, providerName } from "./internal/record/genAi.ts"
import { plain } from "./kit/json.ts"
import type { Message } from "./Message.ts"
import type { Effects } from "./Skill.ts"
import type { FinishReason } from "./StreamPart.ts"
import type { Usage } from "./Usage.ts"

// ---------------------------------------------------------------- models

/**
 * The facts of a run at its start.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunFacts {
  readonly agent: string
  readonly description?: string | undefined
  readonly model: string
  readonly provider?: string
  readonly runId?: string
  readonly rootRunId?: string
  readonly depth?: number
  /**
   * The span that started the run, which may belong to another process. An attempt in another trace is linked to it.
   *
   * @since 0.1.0
   */
  readonly startedBy?: AnySpan | undefined
}

/**
 * The facts of a run at its end.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunOutcome {
  /** The usage of the run and of its tasks. It is written as `gen_ai.aggregated_usage`, so that no sum counts it twice. */
  readonly usage?: Usage | null
  readonly turns?: number
  /** Undefined when no price is known. */
  readonly costUsd?: number | undefined
}

/**
 * The facts of a model call when it is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface ChatFacts {
  readonly provider: string
  readonly model: string
  readonly generation?: Generation
  readonly runId?: string
  readonly rootRunId?: string
  readonly step?: number
  /** Called only if contents are captured. */
  readonly input?: () => ReadonlyArray<Message>
}

/**
 * The facts of a model call when its reply has arrived.
 *
 * @category models
 * @since 0.1.0
 */
export interface ChatOutcome {
  readonly usage?: Usage | null
  readonly finishReason?: FinishReason
  /** The model that answered, as the vendor named it in the reply. */
  readonly model?: string
  /** The id that the vendor gave the reply. */
  readonly id?: string
  /**
   * Milliseconds from each chunk of the reply to the next one.
   *
   * @since 0.1.0
   */
  readonly chunkMs?: ReadonlyArray<number> | undefined
  /** Milliseconds from the request to the first part of the reply. */
  readonly firstChunkMs?: number | undefined
  /** Undefined when the price of the model is unknown. */
  readonly costUsd?: number | undefined
  /** Called only if contents are captured. */
  readonly output?: () => Message
}

/**
 * The facts of a call when it is made.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolFacts {
  readonly name: string
  readonly kind: CallKind
  readonly callId: string
  readonly effects?: Effects
  /** Called only if contents are captured. */
  readonly input?: () => unknown
}

/**
 * The facts of a call when it has its result.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolOutcome {
  /** The kind of failure, as one word. */
  readonly error?: string
  /** Called only if contents are captured. */
  readonly output?: () => unknown
}

/**
 * The facts of a workflow at its start.
 *
 * @category models
 * @since 0.1.0
 */
export interface WorkflowFacts {
  readonly goal: string
  readonly tasks: number
}

/**
 * Wraps the operations of a run. `outcome` reads the facts of the end from the value. A task of a workflow is a run of
 * its own, one level deeper.
 *
 * @category models
 * @since 0.1.0
 */
export interface TelemetryShape {
  readonly run: Wrap<RunFacts, RunOutcome>
  readonly chat: Wrap<ChatFacts, ChatOutcome>
  readonly tool: Wrap<ToolFacts, ToolOutcome>
  readonly workflow: <A, E, R>(effect: Effect.Effect<A, E, R>, facts: WorkflowFacts) => Effect.Effect<A, E, R>
}

/**
 * Adds a span and its metrics to an effect without changing it.
 *
 * @category models
 * @since 0.1.0
 */
export type Wrap<Facts, Outcome> = <A, E, R>(
  effect: Effect.Effect<A, E, R>,
  facts: Facts,
  outcome?: (value: A) => Outcome
) => Effect.Effect<A, E, R>

/**
 * Options for captured content.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * Add prompts, replies, inputs and results to spans. They may contain anything from a user or a file. Default: false.
   */
  readonly captureContent?: boolean | undefined
  /** Applied to every captured text, including keys. */
  readonly redact?: ((text: string) => string) | undefined
}

// ---------------------------------------------------------------- service

/**
 * The telemetry of a run. If none is provided, a run is traced without contents if its fiber has a `Tracer`.
 *
 * A provided `undefined` turns telemetry off.
 *
 * @category references
 * @since 0.1.0
 */
export const Telemetry: Context.Reference<TelemetryShape | undefined> = Context.Reference<TelemetryShape | undefined>(
  "kernai/Telemetry",
  { defaultValue: () => undefined }
)

/**
 * Whether requests to vendors of models carry the span of the call as `traceparent`. Provide it like the `Tracer`.
 * Default: false, since vendors take no part in the trace of an application.
 *
 * @category references
 * @since 0.1.0
 */
export const VendorPropagation: Context.Reference<boolean> = Context.Reference<boolean>(
  "kernai/Telemetry/VendorPropagation",
  { defaultValue: () => false }
)

// ---------------------------------------------------------------- constructors

/**
 * Creates the wrappers of a run.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): TelemetryShape => {
  const capture: Capture =
    options.captureContent === true
      ? (name, value) => (value === undefined ? {} : { [name]: JSON.stringify(plain(value(), options.redact)) })
      : () => ({})
  return {
    run: (effect, facts, outcome) =>
      measured(effect, {
        name: `${operations.invokeAgent} ${facts.agent}`,
        kind: "internal",
        metric: metrics.run,
        attributes: runAttributes(facts),
        link: facts.startedBy,
        dimensions: [names.agentName],
        showsFailures: true,
        outcome: (value, span) => span.add(runEnd(outcome?.(value) ?? {}))
      }),
    chat: (effect, facts, outcome) =>
      measured(effect, {
        name: `${operations.chat} ${facts.model}`,
        kind: "client",
        metric: metrics.chat,
        attributes: { ...chatAttributes(facts), ...chatInput(facts, capture) },
        dimensions: [names.operation, names.provider, names.requestModel],
        showsFailures: true,
        outcome: (value, span) => addReply(span, outcome?.(value) ?? {}, capture)
      }),
    tool: (effect, facts, outcome) =>
      measured(effect, {
        name: `${operations.executeTool} ${facts.name}`,
        kind: "internal",
        metric: metrics.tool,
        attributes: { ...toolAttributes(facts), ...capture(names.toolArguments, facts.input) },
        dimensions: [names.toolName, names.toolType],
        // The failure text of a skill may hold anything, so it is left out.
        showsFailures: false,
        outcome: (value, span) => {
          const end = outcome?.(value) ?? {}
          if (end.error !== undefined) span.failed(end.error)
          span.add(capture(names.toolResult, end.output))
        }
      }),
    workflow: (effect, facts) =>
      measured(effect, {
        // The model writes the goal: it is not a name, and may be confidential.
        name: operations.invokeWorkflow,
        kind: "internal",
        metric: metrics.workflow,
        attributes: {
          [names.operation]: operations.invokeWorkflow,
          [names.tasks]: facts.tasks,
          ...capture(names.goal, () => facts.goal)
        },
        dimensions: [],
        showsFailures: true,
        outcome: () => {}
      })
  }
}

/**
 * Sets the options of telemetry. Runs below it are also measured if they have no `Tracer`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<never> => Layer.sync(Telemetry, () => make(options))

/**
 * Turns telemetry off, even if there is a `Tracer`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerOff: Layer.Layer<never> = Layer.succeed(Telemetry, undefined)

// ---------------------------------------------------------------- helpers

/** Adds a reply to the span and the metrics of its call. */
const addReply = (span: OpenSpan, end: ChatOutcome, capture: Capture): void => {
  const { chunkMs = [], firstChunkMs, output, usage } = end
  span.add(chatEnd(end))
  span.add(capture(names.outputMessages, output && (() => [messageOf(output())])))
  if (usage) span.count(metrics.tokens, usage.inputTokens, { [names.tokenType]: "input" })
  if (usage) span.count(metrics.tokens, usage.outputTokens, { [names.tokenType]: "output" })
  if (firstChunkMs !== undefined) span.count(metrics.firstChunk, firstChunkMs / 1000)
  for (const gap of chunkMs) span.count(metrics.nextChunk, gap / 1000)
}

/** Returns the attribute of a content if contents are captured. Otherwise the value is not computed. */
type Capture = (name: string, value: (() => unknown) | undefined) => Attributes

const runAttributes = (facts: RunFacts): Attributes => ({
  [names.operation]: operations.invokeAgent,
  [names.agentName]: facts.agent,
  [names.agentDescription]: facts.description,
  [names.requestModel]: facts.model,
  [names.provider]: facts.provider === undefined ? undefined : providerName(facts.provider),
  [names.conversation]: facts.rootRunId,
  [names.runId]: facts.runId,
  [names.rootRunId]: facts.rootRunId,
  [names.depth]: facts.depth
})

const runEnd = (end: RunOutcome): Attributes => ({
  ...(end.usage && {
    [names.allInputTokens]: end.usage.inputTokens,
    [names.allOutputTokens]: end.usage.outputTokens,
    [names.allCachedTokens]: end.usage.cachedTokens,
    [names.allReasoningTokens]: end.usage.reasoningTokens
  }),
  [names.turns]: end.turns,
  [names.costUsd]: end.costUsd
})

const chatAttributes = (facts: ChatFacts): Attributes => ({
  [names.operation]: operations.chat,
  [names.provider]: providerName(facts.provider),
  [names.requestModel]: facts.model,
  [names.stream]: true,
  [names.temperature]: facts.generation?.temperature,
  [names.topP]: facts.generation?.topP,
  [names.maxTokens]: facts.generation?.maxTokens,
  [names.stopSequences]: facts.generation?.stopSequences,
  [names.seed]: facts.generation?.seed,
  [names.conversation]: facts.rootRunId,
  [names.runId]: facts.runId,
  [names.step]: facts.step
})

const chatInput = (facts: ChatFacts, capture: Capture): Attributes => {
  const input = facts.input
  if (input === undefined) return {}
  const isSystem = (message: Message) => message.role === "system"
  return {
    ...capture(names.systemInstructions, () =>
      input()
        .filter(isSystem)
        .flatMap((message) => message.content.map(partOf))
    ),
    ...capture(names.inputMessages, () =>
      input()
        .filter((message) => !isSystem(message))
        .map(messageOf)
    )
  }
}

const chatEnd = (end: ChatOutcome): Attributes => ({
  ...tokens(end.usage),
  [names.finishReasons]: end.finishReason === undefined ? undefined : [end.finishReason],
  [names.responseModel]: end.model,
  [names.responseId]: end.id,
  [names.firstChunk]: end.firstChunkMs === undefined ? undefined : end.firstChunkMs / 1000,
  [names.costUsd]: end.costUsd
})

const tokens = (usage: Usage | null | undefined): Attributes =>
  usage === null || usage === undefined
    ? {}
    : {
        [names.inputTokens]: usage.inputTokens,
        [names.outputTokens]: usage.outputTokens,
        [names.cachedTokens]: usage.cachedTokens,
        [names.reasoningTokens]: usage.reasoningTokens
      }

const toolAttributes = (facts: ToolFacts): Attributes => ({
  [names.operation]: operations.executeTool,
  [names.toolName]: facts.name,
  [names.toolType]: facts.kind === "protocol" ? "extension" : "function",
  [names.callId]: facts.callId,
  [names.effects]: facts.effects
})
