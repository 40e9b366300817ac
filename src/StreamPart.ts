/**
 * The parts of a model's reply, as a provider streams them.
 *
 * They are named like the encoded stream parts of effect/ai, so any `LanguageModel` can be a provider and any provider
 * a `LanguageModel`. They are plain values, and no schema is decoded for them.
 *
 * @since 0.1.0
 */

import type { Json } from "effect/Schema"
import type { finishReason } from "./internal/words/modelCallSchema.ts"
import type { TypeOf } from "./kit/schemas.ts"

/**
 * Data of vendors that belongs to a part, by provider name, such as the signature of a thought.
 *
 * @category models
 * @since 0.1.0
 */
export type Metadata = { readonly [provider: string]: Json }

/**
 * The reason why the model stopped. A vendor's reason that is unknown here is `other`: the reply counts as cut, and
 * `metadata` of `Finish` has the vendor's word as `finishReason`, below the name of the provider.
 *
 * @category models
 * @since 0.1.0
 */
export type FinishReason = TypeOf<typeof finishReason>

/**
 * Token counts as a provider reports them. Counts it does not report are absent.
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
 * Start of a text.
 *
 * @category models
 * @since 0.1.0
 */
export interface TextStart extends Base<"text-start"> {
  readonly id: string
}

/**
 * A piece of a text.
 *
 * @category models
 * @since 0.1.0
 */
export interface TextDelta extends Base<"text-delta"> {
  readonly id: string
  readonly delta: string
}

/**
 * End of a text.
 *
 * @category models
 * @since 0.1.0
 */
export interface TextEnd extends Base<"text-end"> {
  readonly id: string
}

/**
 * Start of a thought.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReasoningStart extends Base<"reasoning-start"> {
  readonly id: string
}

/**
 * A piece of a thought.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReasoningDelta extends Base<"reasoning-delta"> {
  readonly id: string
  readonly delta: string
}

/**
 * End of a thought, with the data its vendor needs to receive it again.
 *
 * @category models
 * @since 0.1.0
 */
export interface ReasoningEnd extends Base<"reasoning-end"> {
  readonly id: string
}

/**
 * Start of the parameters of a native call.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolParamsStart extends Base<"tool-params-start"> {
  readonly id: string
  readonly name: string
}

/**
 * A piece of the parameters' JSON text.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolParamsDelta extends Base<"tool-params-delta"> {
  readonly id: string
  readonly delta: string
}

/**
 * End of the parameters. The call itself follows.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolParamsEnd extends Base<"tool-params-end"> {
  readonly id: string
}

/**
 * A complete native call. `params` is the decoded JSON, or the raw text if it is not JSON.
 *
 * @category models
 * @since 0.1.0
 */
export interface ToolCall extends Base<"tool-call"> {
  readonly id: string
  readonly name: string
  readonly params: unknown
  /**
   * True if the vendor ran the call itself. Then it is not run here.
   *
   * @since 0.1.0
   */
  readonly providerExecuted?: boolean
}

/**
 * The result of a call that the vendor ran itself, with the pages it found. For display by hosts: nothing is run.
 *
 * @category models
 * @since 0.1.0
 */
export interface HostedResult extends Base<"tool-result"> {
  readonly id: string
  readonly name: string
  readonly result: { readonly sources: ReadonlyArray<{ readonly url: string; readonly title?: string }> }
  readonly isFailure: boolean
  readonly providerExecuted: true
}

/**
 * A source that the reply cites: a page, or a document by its title.
 *
 * @category models
 * @since 0.1.0
 */
export type Source = UrlSource | DocumentSource

interface UrlSource extends Base<"source"> {
  readonly sourceType: "url"
  readonly id: string
  readonly url: string
  readonly title: string
  /** The cited words. */
  readonly quote?: string
}

interface DocumentSource extends Base<"source"> {
  readonly sourceType: "document"
  readonly id: string
  /** A MIME type. */
  readonly mediaType: string
  readonly title: string
  /** The cited words. */
  readonly quote?: string
}

/**
 * A medium that the model made, whole.
 *
 * @category models
 * @since 0.1.0
 */
export interface File extends Base<"file"> {
  /** A MIME type, such as `image/png`. */
  readonly mediaType: string
  /** The bytes as base64. */
  readonly data: string
  /** The id of a medium that the run has stored already, instead of `data`. */
  readonly fileId?: string
}

/**
 * The vendor's id of the reply, the model that answers, and the usage it reports before the end.
 *
 * @category models
 * @since 0.1.0
 */
export interface ResponseMetadata extends Base<"response-metadata"> {
  readonly id?: string | undefined
  readonly modelId?: string | undefined
  /** The counts known so far. The counts of `finish` replace them; a reply that is cut has no others. */
  readonly usage?: ReportedUsage | undefined
}

/**
 * The last part of every complete reply. A stream without it was cut.
 *
 * @category models
 * @since 0.1.0
 */
export interface Finish extends Base<"finish"> {
  readonly reason: FinishReason
  readonly usage: ReportedUsage
}

/**
 * One part of a reply.
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
  | HostedResult
  | Source
  | File
  | ResponseMetadata
  | Finish

/**
 * The usage of a provider that reports none.
 *
 * @category constructors
 * @since 0.1.0
 */
export const unreported: ReportedUsage = { inputTokens: {}, outputTokens: {} }

/**
 * Creates a piece of text.
 *
 * @category constructors
 * @since 0.1.0
 */
export const text = (delta: string, id = "0"): TextDelta => ({ type: "text-delta", id, delta })

/**
 * Creates the end of a complete reply.
 *
 * @category constructors
 * @since 0.1.0
 */
export const finish = (reason: FinishReason = "stop", usage: ReportedUsage = unreported): Finish => ({
  type: "finish",
  reason,
  usage
})
