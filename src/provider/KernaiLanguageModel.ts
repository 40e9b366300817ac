/**
 * Offers a provider as effect/ai's `LanguageModel`.
 *
 * Code written for effect/ai (`generateText`, `generateObject`, `Chat`, toolkits) then runs on kernai's adapters. The
 * provider makes one request and runs no tool; effect/ai resolves tools. Providers cannot force a model to call a tool,
 * so a reply without a required call fails.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as AiError from "effect/ai/AiError"
import * as LanguageModel from "effect/ai/LanguageModel"
import type * as Prompt from "effect/ai/Prompt"
import * as Tool from "effect/ai/Tool"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { Content } from "../Content.ts"
import * as Contents from "../Content.ts"
import type { Generation } from "../Generation.ts"
import type { Json, JsonObject } from "../kit/json.ts"
import { jsonObject } from "../kit/json.ts"
import { mediumOf } from "../store-kit/Medium.ts"
import { MediaNotFound, type ProviderError } from "../KernelError.ts"
import * as Media from "../Media.ts"
import type { Message } from "../Message.ts"
import * as Messages from "../Message.ts"
import type { Model } from "../Model.ts"
import { modelOf } from "../ModelRegistry.ts"
import type { ProviderShape, Request, ToolDefinition } from "../Provider.ts"
import { Provider } from "../Provider.ts"
import { checked, collected, finished, framed, type Method, whole } from "./internal/aiReply.ts"
import { bytesOf } from "./internal/replyParts.ts"
import { madeOf } from "./internal/messageParts.ts"

/**
 * Options of the model.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The provider's name for the model, or a full model value. */
  readonly model: Model | string
  readonly generation?: Generation | undefined
}

/**
 * Offers the provider as a `LanguageModel`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromProvider = (provider: ProviderShape, options: Options): Effect.Effect<LanguageModel.LanguageModel> => {
  const model = typeof options.model === "string" ? modelOf(provider.name, options.model) : options.model
  const ask = (asked: LanguageModel.ProviderOptions, method: Method) => {
    const said = Stream.suspend(() => provider.stream(toRequest(provider, model, options.generation ?? {}, asked)))
    // A toolkit does not know tools that the vendor runs itself.
    const parts = Stream.filter(said, (part) => !("providerExecuted" in part && part.providerExecuted === true))
    const failing = Stream.catch(finished(parts, provider), (error) =>
      Stream.fromEffect(Effect.flatMap(toAiError(provider, error, method), Effect.fail))
    )
    return checked(failing, asked, provider, method)
  }
  return LanguageModel.make({
    streamText: (asked) => framed(ask(asked, "streamText")),
    generateText: (asked) =>
      Effect.map(collected(ask(asked, "generateText"), provider), (parts) =>
        whole(parts, asked.responseFormat.type === "json")
      )
  })
}

/**
 * Offers the provider in context as a `LanguageModel`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<LanguageModel.LanguageModel, never, Provider> =>
  Provider.use((provider) => fromProvider(provider, options))

/**
 * Provides the provider in context as the `LanguageModel`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<LanguageModel.LanguageModel, never, Provider> =>
  Layer.effect(LanguageModel.LanguageModel, make(options))

// ---------------------------------------------------------------- the request

const toRequest = (
  provider: ProviderShape,
  model: Model,
  generation: Generation,
  { prompt, responseFormat, toolChoice, tools }: LanguageModel.ProviderOptions
): Request => {
  const messages = prompt.content.flatMap((message) => toMessage(message, provider, model))
  const format = responseFormat.type === "json" ? toJsonSchema(responseFormat.schema) : undefined
  return {
    model,
    messages: format === undefined ? messages : [...messages, Messages.user(asJson(format))],
    tools: toolChoice === "none" ? [] : allowed(tools, toolChoice).map(toDefinition),
    generation,
    media: { get: () => Effect.succeedNone, bytes: (id) => Effect.fail(new MediaNotFound({ id })) },
    ...(format === undefined ? {} : { grammar: { _tag: "Json" as const, schema: format } })
  }
}

const asJson = (schema: JsonObject): string =>
  `Answer with JSON that fits this JSON Schema, with no text and no code fence around it:\n${JSON.stringify(schema)}`

const toJsonSchema = (schema: Parameters<typeof LanguageModel.defaultCodecTransformer>[0]): JsonObject =>
  plain(LanguageModel.defaultCodecTransformer(schema).jsonSchema)

const allowed = (tools: ReadonlyArray<Tool.Any>, choice: LanguageModel.ToolChoice<string>): ReadonlyArray<Tool.Any> =>
  typeof choice === "object" && "tool" in choice ? tools.filter((tool) => tool.name === choice.tool) : tools

const toDefinition = (tool: Tool.Any): ToolDefinition => ({
  name: tool.name,
  description: Tool.getDescription(tool) ?? "",
  inputSchema: plain(Tool.getJsonSchema(tool))
})

// Keeps only the JSON of a foreign schema.
const plain = (value: unknown): JsonObject => jsonObject(JSON.parse(JSON.stringify(value)))

const toMessage = (message: Prompt.Message, provider: ProviderShape, model: Model): ReadonlyArray<Message> => {
  switch (message.role) {
    case "system":
      return [Messages.system(message.content)]
    case "user":
      return [Messages.make("user", message.content.map(toContent))]
    case "assistant": {
      const content: Array<Content> = []
      for (const part of message.content) {
        if (part.type === "text" || part.type === "file") content.push(toContent(part))
        else if (part.type === "tool-call" && part.providerExecuted !== true) {
          content.push(Contents.toolUse(part.id, part.name, jsonObject(part.params)))
        } else if (part.type === "reasoning") content.push(...toThinking(part, provider, model))
      }
      return [Messages.make("assistant", content)]
    }
    case "tool":
      return message.content.flatMap((part) =>
        part.type === "tool-result" ? [Messages.make("tool", toResult(part))] : []
      )
  }
}

const toContent = (part: Prompt.TextPart | Prompt.FilePart): Content => {
  if (part.type === "text") return Contents.text(part.text)
  const { mediaType } = part
  const source = sourceOf(part)
  if (source === undefined) return Contents.text(madeOf(mediaType))
  const kind = Media.kindOf(mediaType)
  return kind === "document" && part.fileName !== undefined
    ? Contents.document({ ...source, filename: part.fileName })
    : mediumOf(kind, source)
}

const sourceOf = ({ data, mediaType }: Prompt.FilePart) => {
  if (data instanceof URL) return { url: data.href, mediaType }
  const bytes = bytesOf(data)
  return bytes === undefined ? undefined : { data: bytes, mediaType }
}

/** Returns thinking only for the provider that signed it. */
const toThinking = (part: Prompt.ReasoningPart, provider: ProviderShape, model: Model): ReadonlyArray<Content> => {
  const signature: Json | undefined = part.options[provider.name] ?? undefined
  const origin = { provider: provider.name, model: model.id }
  return signature === undefined ? [] : [{ type: "thinking", content: part.text, redacted: false, origin, signature }]
}

const toResult = (part: Prompt.ToolResultPart): Content => {
  const { id, isFailure, modelOutput, result } = part
  const content =
    modelOutput === undefined
      ? [Contents.text(typeof result === "string" ? result : (JSON.stringify(result) ?? ""))]
      : modelOutput.map(toContent)
  return Contents.toolResult(id, content, { isError: isFailure })
}

// ---------------------------------------------------------------- errors

const toAiError = Effect.fnUntraced(function* (provider: ProviderShape, error: ProviderError, method: Method) {
  const now = yield* Clock.currentTimeMillis
  const description = error.message
  const wait = error.retryAt === undefined ? undefined : Duration.millis(Math.max(0, error.retryAt - now))
  return AiError.make({ module: provider.name, method, reason: reasonOf(error, description, wait) })
})

const reasonOf = (
  { provider, reason }: ProviderError,
  description: string,
  retryAfter: Duration.Duration | undefined
): AiError.AiErrorReason => {
  switch (reason) {
    case "rate_limited":
    case "overloaded":
      return new AiError.RateLimitError({ retryAfter })
    case "quota_exhausted":
      return new AiError.QuotaExhaustedError({})
    case "not_configured":
      return new AiError.AuthenticationError({ kind: "MissingKey", description })
    case "authentication":
      return new AiError.AuthenticationError({ kind: "InvalidKey", description })
    case "permission":
      return new AiError.AuthenticationError({ kind: "InsufficientPermissions", description })
    case "content_filter":
    case "refusal":
      return new AiError.ContentPolicyError({ description })
    case "invalid_request":
    case "context_length":
    case "not_found":
    case "forbidden":
      return new AiError.InvalidRequestError({ description })
    case "server_error":
      return new AiError.InternalProviderError({ description })
    case "disconnected":
    case "timeout":
    case "redirect":
      return new AiError.NetworkError({ reason: "TransportError", method: "POST", url: provider, description })
    case "incomplete":
    case "invalid_response":
    case "limit_exceeded":
      return new AiError.InvalidResponseError({ description })
    case "unknown":
      return new AiError.UnknownError({ description })
  }
}
