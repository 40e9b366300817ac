/**
 * Uses any `LanguageModel` of effect/ai as a provider.
 *
 * The model gives one reply and never runs a tool itself. Its own package configures it: the request of effect/ai has
 * no temperature or similar settings, so `Generation` only reaches a model that is created for each request.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import type * as Response from "effect/ai/Response"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import * as Generation from "../Generation.ts"
import { soundObject, soundText } from "../kit/soundText.ts"
import { vendorRules } from "../kit/vendorRules.ts"
import type { Message } from "../Message.ts"
import { Provider, type ProviderShape, type Request } from "../Provider.ts"
import { runHere } from "./internal/body.ts"
import { type Fault, saysTooLong } from "./internal/providerFault.ts"
import { fitting, namedBack } from "./internal/fitRequest.ts"
import * as Foreign from "./internal/foreign.ts"
import { encoder } from "./internal/encodeMessages.ts"
import { allMedia, concluded, type Piece, shownText, textOf } from "./internal/messageParts.ts"
import type { Reply } from "./internal/replyParts.ts"

/**
 * The name of the provider.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The key of the model strings, and the origin of thinking. Default: `ai`. */
  readonly name?: string | undefined
}

/**
 * Creates a provider that calls this model, or the one a function creates for each request.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromModel = (
  model: LanguageModel.LanguageModel | ((request: Request) => Effect.Effect<LanguageModel.LanguageModel>),
  options: Options = {}
): ProviderShape => {
  const name = options.name ?? "ai"
  const fit = fitting(vendorRules["effect-ai"])
  const encode = encoder({ provider: name, media: allMedia }, toMessages)
  const modelFor = typeof model === "function" ? model : () => Effect.succeed(model)
  const ask = Effect.fnUntraced(function* (request: Request) {
    const { messages } = yield* encode(request)
    const model = yield* modelFor(request)
    const options = {
      prompt: Foreign.together(messages.flat()),
      disableToolCallResolution: true,
      toolCallValidation: "deferred"
    } as const
    const asked: Stream.Stream<Part, AiError.AiError> =
      runHere(request.tools).length === 0
        ? model.streamText(options)
        : model.streamText({ ...options, toolkit: toToolkit(request) })
    return Stream.catch(asked, (error) => Stream.fromEffect(Effect.flatMap(toFault(error), Effect.fail)))
  })
  return {
    name,
    ...(typeof model === "function" ? {} : { takes: () => Generation.empty }),
    stream: (asked) => {
      const { names, request } = fit(asked)
      return namedBack(Foreign.stream(name, ask(request), reader(name)), names)
    }
  }
}

/**
 * Uses the model in context as a provider.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options?: Options): Effect.Effect<ProviderShape, never, LanguageModel.LanguageModel> =>
  Effect.map(LanguageModel.LanguageModel, (model) => fromModel(model, options))

/**
 * Provides the model in context as the provider.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<Provider, never, LanguageModel.LanguageModel> =>
  Layer.effect(Provider, make(options))

// ---------------------------------------------------------------- the request

const toToolkit = (request: Request) =>
  Toolkit.make(
    ...runHere(request.tools).map(({ description, inputSchema, name }) =>
      Tool.dynamic(name, { description: soundText(description), parameters: soundObject(inputSchema) })
    )
  )

const toMessages = (message: Message, pieces: ReadonlyArray<Piece>): ReadonlyArray<Prompt.MessageEncoded> => {
  switch (message.role) {
    case "system":
      return pieces.length === 0 ? [] : [{ role: "system", content: textOf(pieces) }]
    case "assistant": {
      const content = toAnswer(concluded(pieces))
      return content.length === 0 ? [] : [{ role: "assistant", content }]
    }
    default: {
      const results = pieces.flatMap((piece) => (piece.kind === "result" ? [toResult(piece)] : []))
      const said = pieces.filter((piece) => piece.kind !== "result")
      return [
        ...(results.length === 0 ? [] : [{ role: "tool", content: results } as const]),
        ...(said.length === 0 ? [] : [{ role: "user", content: toContent(said) } as const])
      ]
    }
  }
}

const toAnswer = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Prompt.AssistantMessagePartEncoded> => {
  const options = Foreign.optionsOf(pieces)
  const parts: Array<Prompt.AssistantMessagePartEncoded> = []
  for (const piece of pieces) {
    if (piece.kind === "call") {
      const own = options.call(piece.id)
      parts.push({
        type: "tool-call",
        id: piece.id,
        name: piece.name,
        params: piece.input,
        ...(own === undefined ? {} : { options: own })
      })
    } else if (piece.kind === "thought") {
      const own = options.thought(piece)
      if (own !== undefined) parts.push({ type: "reasoning", text: piece.text, options: own })
    } else parts.push(...toContent([piece]))
  }
  return parts
}

const toContent = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Prompt.UserMessagePartEncoded> => {
  const parts: Array<Prompt.UserMessagePartEncoded> = []
  for (const piece of pieces) {
    if (piece.kind === "text") parts.push({ type: "text", text: piece.text })
    if (piece.kind !== "media") continue
    const data = "url" in piece.source ? new URL(piece.source.url) : piece.source.data
    parts.push({ type: "file", mediaType: piece.mediaType, data })
  }
  return parts
}

const toResult = (piece: Extract<Piece, { kind: "result" }>): Prompt.ToolResultPartEncoded => {
  const shown = toContent(piece.pieces)
  return {
    type: "tool-result",
    id: piece.id,
    name: piece.name ?? "unknown",
    isFailure: piece.isError,
    result: shownText(piece.pieces),
    ...(shown.some((part) => part.type === "file") ? { modelOutput: shown } : {})
  }
}

// ---------------------------------------------------------------- the reply

type Part = Response.StreamPart<Record<string, Tool.Any>, "deferred">

const reader = (name: string) => (reply: Reply) => {
  const collector = Foreign.makeCollector(name, reply)
  const executed = new Set<string>()
  return (part: Part): Fault | undefined => {
    switch (part.type) {
      case "text-delta":
        reply.text(part.delta)
        return undefined
      case "text-end":
        reply.endText()
        return undefined
      case "reasoning-start":
        collector.note(part.id, part.metadata)
        return undefined
      case "reasoning-delta":
        reply.thinking(part.delta)
        collector.note(part.id, part.metadata)
        return undefined
      case "reasoning-end":
        collector.endThinking(part.id, part.metadata)
        return undefined
      case "tool-params-start":
        // Tools that the vendor runs itself are left out.
        if (part.providerExecuted) executed.add(part.id)
        else collector.begin(part.id, part.name)
        return undefined
      case "tool-params-delta":
        collector.params(part.id, part.delta)
        return undefined
      case "tool-call":
        if (part.providerExecuted || executed.has(part.id)) return undefined
        collector.end(part.id, part.name, part.params, part.metadata)
        return undefined
      case "source":
        reply.source({ url: part.sourceType === "url" ? part.url.href : undefined, title: part.title })
        return undefined
      case "file":
        reply.file(part.mediaType, part.data)
        return undefined
      case "response-metadata":
        reply.about(part.id, part.modelId)
        return undefined
      case "finish":
        reply.finish(part.reason, part.usage)
        return undefined
      case "error":
        return { reason: "server_error", note: "reported in the reply" }
      default:
        return undefined
    }
  }
}

// ---------------------------------------------------------------- errors

const toFault = Effect.fnUntraced(function* (error: AiError.AiError) {
  const fault: Fault = { reason: reasonOf(error.reason), vendor: { message: error.reason.message } }
  if (error.retryAfter === undefined) return fault
  return { ...fault, retryAt: (yield* Clock.currentTimeMillis) + Duration.toMillis(error.retryAfter) }
})

const reasonOf = (reason: AiError.AiErrorReason): Fault["reason"] => {
  switch (reason._tag) {
    case "RateLimitError":
      return "rate_limited"
    case "QuotaExhaustedError":
      return "quota_exhausted"
    case "AuthenticationError":
      return reason.kind === "InsufficientPermissions" ? "permission" : "authentication"
    case "ContentPolicyError":
      return "content_filter"
    case "InternalProviderError":
      return "server_error"
    case "NetworkError":
      return reason.isRetryable ? "disconnected" : "invalid_request"
    case "InvalidOutputError":
    case "InvalidResponseError":
    case "StructuredOutputError":
    case "ToolNotFoundError":
    case "ToolParameterValidationError":
      return "invalid_response"
    case "UnknownError":
      return "unknown"
    case "InvalidRequestError":
      return saysTooLong(reason.description) ? "context_length" : "invalid_request"
    default:
      return "invalid_request"
  }
}
