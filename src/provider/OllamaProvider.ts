/**
 * Ollama, local or hosted, over its own chat format of JSON lines.
 *
 * A message is one string, with its images in a field of their own. Images must be bytes; a URL is replaced by a text.
 * A server may first have to load a large model, so it has five minutes to begin its reply, or `Limits.headersTimeout`
 * if that is longer.
 *
 * @since 0.1.0
 */

import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Redacted from "effect/Redacted"
import * as Grammar from "./Grammar.ts"
import type { Json, JsonObject } from "../kit/json.ts"
import { vendorRules } from "../kit/vendorRules.ts"
import type { Message } from "../Message.ts"
import type { ProviderShape, Request } from "../Provider.ts"
import type { FinishReason, ReportedUsage } from "../StreamPart.ts"
import { adapter } from "./internal/adapter.ts"
import { assemble, extras, functions, laidOver } from "./internal/body.ts"
import { findKey } from "../kit/variables.ts"
import { configured } from "./internal/configured.ts"
import { type Fault, saysTooLong, statusReason } from "./internal/providerFault.ts"
import type { Decoder } from "./internal/frames.ts"
import { type Piece, standIn, textOf } from "./internal/messageParts.ts"
import { count, type Fields, fields, isFields, list, string, text } from "./internal/readFields.ts"
import type { Reply } from "./internal/replyParts.ts"
import { ThinkTags } from "./internal/thinkTags.ts"

/**
 * Options of the provider.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Default: `http://localhost:11434`. */
  readonly baseUrl?: string | undefined
  /** Required only by the hosted service. */
  readonly apiKey?: Redacted.Redacted | undefined
  readonly headers?: { readonly [name: string]: string } | undefined
}

/**
 * Creates the provider. It uses the HTTP client in context.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options = {}): Effect.Effect<ProviderShape, never, HttpClient.HttpClient> => {
  const { apiKey } = options
  return adapter(
    {
      name,
      apiKey,
      baseUrl: options.baseUrl ?? "http://localhost:11434",
      version: "",
      headers: () => ({
        ...options.headers,
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${Redacted.value(apiKey)}` })
      }),
      fault,
      takes,
      list: { path: "/api/tags", key: "models", id: "name" }
    },
    (speak) =>
      speak({
        path: () => "/api/chat",
        framing: "ndjson",
        startsSlowly: true,
        rules: vendorRules.ollama,
        media: { image: { urls: false } },
        encode: toMessages,
        body: toBody,
        decoder
      })
  )
}

const found = configured({
  key: () => findKey(["OLLAMA_API_KEY"]),
  address: "OLLAMA_BASE_URL",
  make: (options: Options) => make(options)
})

/**
 * Creates the provider from the environment: `OLLAMA_BASE_URL` and `OLLAMA_API_KEY`, both optional.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromConfig = found.fromConfig

/**
 * Provides the provider from the environment.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = found.layer

/**
 * Provides the provider with settings from the configuration.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = found.layerConfig

const name = "ollama"

// ---------------------------------------------------------------- the request

const toMessages = (message: Message, pieces: ReadonlyArray<Piece>): ReadonlyArray<string> => {
  const written: Array<JsonObject> = []
  const rest: Array<Piece> = []
  for (const piece of pieces) {
    if (piece.kind !== "result") rest.push(piece)
    else {
      written.push({
        role: "tool",
        ...toContent(piece.pieces, "\n"),
        ...(piece.name === undefined ? {} : { tool_name: piece.name })
      })
    }
  }
  if (rest.length > 0 || written.length === 0) {
    const calls = toCalls(rest)
    const content = toContent(rest, "")
    const isEmpty = content["content"] === "" && content["images"] === undefined && calls.length === 0
    // Leaves out empty messages.
    if (!isEmpty) {
      written.push({
        role: message.role === "tool" ? "user" : message.role,
        ...content,
        ...(calls.length === 0 ? {} : { tool_calls: calls })
      })
    }
  }
  return written.map((item) => JSON.stringify(item))
}

const toContent = (pieces: ReadonlyArray<Piece>, separator: string): JsonObject => {
  const texts: Array<string> = []
  const images: Array<string> = []
  for (const piece of pieces) {
    if (piece.kind === "text") texts.push(piece.text)
    else if (piece.kind === "media") {
      if (piece.type === "image" && "data" in piece.source) images.push(piece.source.data)
      else texts.push(textOf([standIn(piece)]))
    }
  }
  return { content: texts.join(separator), ...(images.length === 0 ? {} : { images }) }
}

const toCalls = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Json> => {
  const calls: Array<Json> = []
  for (const piece of pieces) {
    if (piece.kind === "call") calls.push({ function: { name: piece.name, arguments: piece.input } })
  }
  return calls
}

// Thinking is set by `extra`.
const takes: NonNullable<ProviderShape["takes"]> = ({ generation }) => {
  const { thinking: _, ...others } = generation
  return others
}

const toBody = (request: Request, messages: ReadonlyArray<ReadonlyArray<string>>): string => {
  const { generation } = request
  const own = extras(request, name)
  const options = {
    temperature: generation.temperature,
    top_p: generation.topP,
    num_predict: generation.maxTokens,
    seed: generation.seed,
    stop: generation.stopSequences
  }
  return assemble(
    {
      model: request.model.id,
      stream: true,
      tools: functions(request, name),
      // A server cannot follow both tools and a format.
      format:
        request.tools.length === 0 && request.grammar !== undefined ? Grammar.jsonSchemaOf(request.grammar) : undefined,
      ...own,
      options: laidOver(options, own["options"])
    },
    "messages",
    messages.flat()
  )
}

// ---------------------------------------------------------------- the reply

const decoder = (reply: Reply): Decoder => {
  let isKnown = false
  let calls = 0
  const content = new ThinkTags(reply)

  const take = (line: Fields): Fault | undefined => {
    if (line["error"] !== undefined && line["error"] !== null) {
      return isMiswritten(string(line, "error")) ? void reply.finish("error", unreported) : failed
    }
    if (!isKnown) {
      isKnown = true
      reply.about(undefined, text(line, "model"))
    }
    const message = fields(line, "message")
    reply.thinking(string(message, "thinking") ?? "")
    content.text(string(message, "content") ?? "")
    if (message?.["tool_calls"] !== undefined) {
      content.end()
      for (const call of list(message, "tool_calls")) {
        const target = fields(call, "function")
        const key = String(calls++)
        reply.call(key, text(call, "id"), string(target, "name") ?? "")
        const params = target?.["arguments"]
        if (typeof params === "string") reply.params(key, params)
        else reply.input(key, params)
        reply.endCall(key)
      }
    }
    if (line["done"] === true) {
      content.end()
      reply.finish(finishReason(string(line, "done_reason"), reply.hasCalls), {
        inputTokens: { total: count(line, "prompt_eval_count") },
        outputTokens: { total: count(line, "eval_count") }
      })
    }
    return undefined
  }

  return { event: take, failed: () => failed, whole: take, end: () => undefined, hasEnded: () => reply.isFinished }
}

// Errors have a message but no code.
const fault = (document: unknown, status: number): Pick<Fault, "reason"> => ({
  reason:
    status === 400 && isFields(document) && saysTooLong(string(document, "error"))
      ? "context_length"
      : statusReason(status)
})

// The server parses calls strictly. An invalid call means that the model failed, not the request.
const isMiswritten = (error = ""): boolean => error.startsWith("error parsing tool call")

const unreported: ReportedUsage = { inputTokens: {}, outputTokens: {} }

const failed: Fault = { reason: "server_error", note: "reported in the reply" }

// Older versions end without a reason.
const finishReason = (given: string | undefined, hasCalls: boolean): FinishReason => {
  if (given === "length") return "length"
  if (given !== undefined && given !== "stop" && given !== "tool_calls") return "other"
  return hasCalls ? "tool-calls" : "stop"
}
