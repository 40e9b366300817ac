/**
 * What a model says, piece by piece.
 *
 * The names are those of effect/ai's encoded stream parts, so that any
 * `LanguageModel` can be a provider and a provider can be offered as one.
 * These are plain values: nothing on the path of a token decodes a schema.
 *
 * @since 0.1.0
 */

import type { Json } from "effect/Schema"

/**
 * Facts of one vendor that belong to a part, by provider name (a thinking signature, for instance).
 *
 * @category models
 * @since 0.1.0
 */
export type Metadata = { readonly [provider: string]: Json }

/**
 * Why the model stopped (AC-4).
 *
 * @category models
 * @since 0.1.0
 */
export type FinishReason = "stop" | "length" | "content-filter" | "tool-calls" | "error" | "pause" | "other" | "unknown"

/**
 * Tokens as a provider reports them; what it does not report stays absent (CP-14).
 *
 * @category models
 * @since 0.1.0
 */
export interface ReportedUsage {
  readonly inputTokens: {
    readonly total?: number | undefined
    readonly uncached?: number | undefined
    readonly cacheRead?: number | undefined
    readonly cacheWrite?: number | undefined
  }
  readonly outputTokens: {
    readonly total?: number | undefined
    readonly text?: number | undefined
    readonly reasoning?: number | undefined
  }
}

interface Base<Type extends string> {
  readonly type: Type
  readonly metadata?: Metadata | undefined
}

/**
 * Text begins.
 *
 * @category models
 * @since 0.1.0
 */
export interface TextStart extends Base<"text-start"> {
  readonly id: string
}

/**
 * A piece of text.
 *
 * @category models
 * @since 0.1.0
 */
export interface TextDelta extends Base<"text-delta"> {
  readonly id: string
  readonly delta: string
}

/**
 * Text ends.
 *
 * @category models
 * @since 0.1.0
 */
export interface TextEnd extends Base<"text-end"> {
  readonly id: string
}

/**
 * Thinking begins.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReasoningStart extends Base<"reasoning-start"> {
  readonly id: string
}

/**
 * A piece of thinking.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReasoningDelta extends Base<"reasoning-delta"> {
  readonly id: string
  readonly delta: string
}

/**
 * Thinking ends, with what its vendor wants to see again.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReasoningEnd extends Base<"reasoning-end"> {
  readonly id: string
}

/**
 * The parameters of a native call begin.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolParamsStart extends Base<"tool-params-start"> {
  readonly id: string
  readonly name: string
}

/**
 * A piece of JSON text of the parameters.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolParamsDelta extends Base<"tool-params-delta"> {
  readonly id: string
  readonly delta: string
}

/**
 * The parameters are whole; the call itself follows.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolParamsEnd extends Base<"tool-params-end"> {
  readonly id: string
}

/**
 * A native call, whole. `params` is the decoded JSON, or the raw text when it is no JSON.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolCall extends Base<"tool-call"> {
  readonly id: string
  readonly name: string
  readonly params: unknown
}

/**
 * What the vendor calls the reply, and the model that gives it.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResponseMetadata extends Base<"response-metadata"> {
  readonly id?: string | undefined
  readonly modelId?: string | undefined
}

/**
 * The last part of every complete reply. A stream without it was cut (AC-4, R-10).
 *
 * @category models
 * @since 0.1.0
 */
export interface Finish extends Base<"finish"> {
  readonly reason: FinishReason
  readonly usage: ReportedUsage
}

/**
 * One piece of a model's reply.
 *
 * @category models
 * @since 0.1.0
 */
export type StreamPart =
  | TextStart
  | TextDelta
  | TextEnd
  | ReasoningStart
  | ReasoningDelta
  | ReasoningEnd
  | ToolParamsStart
  | ToolParamsDelta
  | ToolParamsEnd
  | ToolCall
  | ResponseMetadata
  | Finish

/**
 * Usage of a provider that reports nothing.
 *
 * @category constructors
 * @since 0.1.0
 */
export const unreported: ReportedUsage = { inputTokens: {}, outputTokens: {} }

/**
 * A piece of text.
 *
 * @category constructors
 * @since 0.1.0
 */
export const text = (delta: string, id = "0"): TextDelta => ({ type: "text-delta", id, delta })

/**
 * The end of a complete reply.
 *
 * @category constructors
 * @since 0.1.0
 */
export const finish = (reason: FinishReason = "stop", usage: ReportedUsage = unreported): Finish => ({
  type: "finish",
  reason,
  usage
})
