/**
 * Claude, over the Messages API.
 *
 * System text travels beside the messages; everything else keeps its order and
 * is never merged (BP-107), except that the results of one turn's native calls
 * share a message, as the API wants. Thinking goes back to the model that
 * thought it, with its signature, and to no other.
 *
 * @since 0.1.0
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import type { Json, JsonObject } from "../internal/json.ts"
import type { ProviderUnavailable } from "../KernelError.ts"
import { Provider, type ProviderShape, type Request } from "../Provider.ts"
import type { FinishReason, ReportedUsage } from "../StreamPart.ts"
import { assemble, endpoint, extras } from "./internal/body.ts"
import { findText, requireKey } from "./internal/configured.ts"
import * as Exchange from "./internal/exchange.ts"
import { type Fault, statusReason } from "./internal/fault.ts"
import type { Decoder } from "./internal/frames.ts"
import { encoder, type Piece, placeholder, spoken, textOf } from "./internal/pieces.ts"
import { count, type Fields, fields, isFields, list, string, sum, text } from "./internal/read.ts"
import type { Reply } from "./internal/reply.ts"

/**
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly apiKey: Redacted.Redacted
  /** Default `https://api.anthropic.com`. */
  readonly baseUrl?: string | undefined
  /** Further headers, `anthropic-beta` for instance. */
  readonly headers?: { readonly [name: string]: string } | undefined
}

/**
 * The provider as a value, speaking through the HTTP client around it.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<ProviderShape, never, HttpClient.HttpClient> =>
  Effect.map(HttpClient.HttpClient, (client) => {
    const encode = encoder({ provider: name, media: ["image"], urls: true }, toMessage)
    return {
      name,
      stream: Exchange.stream(client, {
        name,
        framing: "sse",
        secrets: [options.apiKey],
        url: () => endpoint(options.baseUrl ?? "https://api.anthropic.com", "/v1", "/messages"),
        headers: () => ({
          ...options.headers,
          "anthropic-version": "2023-06-01",
          "x-api-key": Redacted.value(options.apiKey)
        }),
        body: (request) => Effect.map(encode(request), (messages) => toBody(request, messages)),
        decoder,
        fault
      })
    }
  })

/**
 * The provider of the environment: `ANTHROPIC_API_KEY`, and `ANTHROPIC_BASE_URL` if it is set (BP-106).
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromConfig: Effect.Effect<ProviderShape, ProviderUnavailable, HttpClient.HttpClient> = Effect.gen(
  function* () {
    const apiKey = yield* requireKey(name, ["ANTHROPIC_API_KEY"])
    const baseUrl = yield* findText("ANTHROPIC_BASE_URL")
    return yield* make({ apiKey, baseUrl })
  }
)

/**
 * The provider of the environment. Without a key the layer fails, naming the variable.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer: Layer.Layer<Provider, ProviderUnavailable, HttpClient.HttpClient> = Layer.effect(
  Provider,
  fromConfig
)

/**
 * The provider with a key from anywhere in the configuration.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  options: Config.Wrap<Options>
): Layer.Layer<Provider, Config.ConfigError, HttpClient.HttpClient> =>
  Layer.effect(Provider, Effect.flatMap(Config.unwrap(options), make))

const name = "anthropic"

// ---------------------------------------------------------------- the request

interface WireMessage {
  readonly role: "system" | "user" | "assistant"
  /** Native results: joined with those of the messages beside it. */
  readonly isResults: boolean
  readonly text: string
  readonly blocks: ReadonlyArray<string>
}

const toMessage = (message: { readonly role: string }, pieces: ReadonlyArray<Piece>): WireMessage => {
  if (message.role === "system") return { role: "system", isResults: false, text: textOf(pieces), blocks: [] }
  return {
    role: message.role === "assistant" ? "assistant" : "user",
    isResults: message.role === "tool" && pieces.some((piece) => piece.kind === "result"),
    text: "",
    blocks: toBlocks(spoken(pieces)).map((block) => JSON.stringify(block))
  }
}

const toBlocks = (pieces: ReadonlyArray<Piece>): ReadonlyArray<JsonObject> => {
  const blocks: Array<JsonObject> = []
  for (const piece of pieces) {
    const block = toBlock(piece)
    if (block !== undefined) blocks.push(block)
  }
  return blocks
}

const toBlock = (piece: Piece): JsonObject | undefined => {
  switch (piece.kind) {
    case "text":
      return { type: "text", text: piece.text }
    case "media":
      if (piece.type !== "image") return toBlock(placeholder(piece))
      return {
        type: "image",
        source:
          "url" in piece.source
            ? { type: "url", url: piece.source.url }
            : { type: "base64", media_type: piece.mediaType, data: piece.source.data }
      }
    case "call":
      return { type: "tool_use", id: piece.id, name: piece.name, input: piece.input }
    case "result":
      return {
        type: "tool_result",
        tool_use_id: piece.id,
        content: toBlocks(spoken(piece.pieces)),
        ...(piece.isError ? { is_error: true } : {})
      }
    case "thought": {
      const kept = isFields(piece.signature) ? piece.signature : undefined
      const redacted = text(kept, "redacted")
      if (redacted !== undefined) return { type: "redacted_thinking", data: redacted }
      const signature = text(kept, "signature")
      // The API refuses thinking that it did not sign.
      return signature === undefined ? undefined : { type: "thinking", thinking: piece.text, signature }
    }
  }
}

const toBody = (request: Request, messages: ReadonlyArray<WireMessage>): string => {
  const { generation, model } = request
  const known = traits(model.id)
  const marks = new Set((request.cacheBreakpoints ?? []).slice(-4))
  const budget = generation.thinking?.budget
  const thinks =
    known.isClaude && (budget !== undefined || (known.adaptive && generation.thinking?.effort !== undefined))
  const samples = known.sampling && !thinks
  return assemble(
    {
      model: model.id,
      max_tokens:
        generation.maxTokens ?? (known.isClaude && known.budget && budget !== undefined ? 4096 + budget : 4096),
      system: toSystem(messages, marks),
      stream: true,
      temperature: samples ? generation.temperature : undefined,
      top_p: samples && (known.bothSamplings || generation.temperature === undefined) ? generation.topP : undefined,
      stop_sequences: generation.stopSequences,
      thinking: known.adaptive
        ? thinks
          ? { type: "adaptive", display: "summarized" }
          : undefined
        : budget === undefined
          ? undefined
          : { type: "enabled", budget_tokens: budget },
      output_config:
        known.effort && generation.thinking?.effort !== undefined ? { effort: generation.thinking.effort } : undefined,
      tools:
        request.tools.length === 0
          ? undefined
          : request.tools.map((tool) => ({
              name: tool.name,
              description: tool.description,
              input_schema: tool.inputSchema
            })),
      ...extras(request, name)
    },
    "messages",
    toMessages(messages, marks)
  )
}

// The last system message wins (BP-106); a mark on any of them marks it.
const toSystem = (messages: ReadonlyArray<WireMessage>, marks: ReadonlySet<number>): Json | undefined => {
  let system: Json | undefined
  let isMarked = false
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]
    if (message?.role !== "system") continue
    isMarked ||= marks.has(index)
    if (message.text !== "") system = message.text
  }
  if (system === undefined || !isMarked) return system
  return [{ type: "text", text: system, cache_control: { type: "ephemeral" } }]
}

const toMessages = (messages: ReadonlyArray<WireMessage>, marks: ReadonlySet<number>): ReadonlyArray<string> => {
  const written: Array<string> = []
  let blocks: Array<string> = []
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]
    // A model that said nothing is left out: an empty message is refused.
    if (message === undefined || message.role === "system" || message.blocks.length === 0) continue
    if (message.role === "assistant" && message.blocks.length === 1 && message.blocks[0] === emptyText) continue
    blocks.push(...message.blocks)
    if (marks.has(index)) blocks.push(marked(blocks.pop()))
    if (message.isResults && messages[index + 1]?.isResults === true) continue
    written.push(`{"role":"${message.role}","content":[${blocks.join(",")}]}`)
    blocks = []
  }
  return written
}

const emptyText = JSON.stringify({ type: "text", text: "" })

const marked = (block = "{}"): string => `${block.slice(0, -1)},"cache_control":{"type":"ephemeral"}}`

/** What a model takes, by its id: newer Claude models have other thinking and no sampling options. */
const traits = (id: string) => {
  const isClaude = id.startsWith("claude-")
  const version = /^claude-([a-z]+)-(\d{1,2})(?:-(\d{1,2}))?(?!\d)/.exec(id)
  const family = version?.[1]
  const release = Number(version?.[2] ?? 0) * 100 + Number(version?.[3] ?? 0)
  const adaptive = release >= 500 || (family === "opus" && release >= 407)
  return {
    isClaude,
    adaptive,
    budget: !adaptive,
    sampling: !adaptive,
    bothSamplings: release < 401,
    effort: adaptive || (family === "opus" && release >= 405) || (family === "sonnet" && release >= 406)
  }
}

// ---------------------------------------------------------------- the reply

const decoder = (reply: Reply): Decoder => {
  const counts = new Counts()
  let reason: FinishReason | undefined
  let stopSequence: string | undefined
  const signatures = new Map<number, string>()

  const finish = (given: FinishReason) =>
    reply.finish(given, counts.usage, stopSequence === undefined ? undefined : { [name]: { stopSequence } })

  const blockStart = (index: number, block: Fields | undefined) => {
    switch (string(block, "type")) {
      case "text":
        return reply.text(string(block, "text") ?? "")
      case "thinking":
        return reply.thinking(string(block, "thinking") ?? "")
      case "redacted_thinking":
        return reply.endThinking({ [name]: { redacted: string(block, "data") ?? "" } })
      case "tool_use": {
        reply.call(String(index), text(block, "id"), string(block, "name") ?? "")
        const input = fields(block, "input")
        if (input !== undefined && Object.keys(input).length > 0) reply.params(String(index), JSON.stringify(input))
      }
    }
  }

  const blockDelta = (index: number, delta: Fields | undefined) => {
    switch (string(delta, "type")) {
      case "thinking_delta":
        return reply.thinking(string(delta, "thinking") ?? "")
      case "signature_delta":
        signatures.set(index, (signatures.get(index) ?? "") + (string(delta, "signature") ?? ""))
        return
      case "input_json_delta":
        return reply.params(String(index), string(delta, "partial_json") ?? "")
      default:
        return reply.text(string(delta, "text") ?? "")
    }
  }

  const blockStop = (index: number) => {
    const signature = signatures.get(index)
    if (signature !== undefined) reply.endThinking({ [name]: { signature } })
    signatures.delete(index)
    reply.endCall(String(index))
  }

  const stopped = (of: Fields | undefined) => {
    const given = string(of, "stop_reason")
    if (given !== undefined) reason = finishReason(given)
    stopSequence = text(of, "stop_sequence") ?? stopSequence
  }

  return {
    event: (event) => {
      switch (string(event, "type")) {
        case "content_block_delta":
          return void blockDelta(count(event, "index") ?? 0, fields(event, "delta"))
        case "content_block_start":
          return void blockStart(count(event, "index") ?? 0, fields(event, "content_block"))
        case "content_block_stop":
          return void blockStop(count(event, "index") ?? 0)
        case "message_start": {
          const message = fields(event, "message")
          counts.take(fields(message, "usage"))
          return void reply.about(text(message, "id"), text(message, "model"))
        }
        case "message_delta":
          counts.take(fields(event, "usage"))
          return void stopped(fields(event, "delta"))
        case "message_stop":
          return void finish(reason ?? "unknown")
        case "error":
          return inStream(event)
      }
      return undefined
    },
    whole: (message) => {
      if (string(message, "type") === "error") return inStream(message)
      reply.about(text(message, "id"), text(message, "model"))
      list(message, "content").forEach((block, index) => {
        blockStart(index, block)
        const signature = text(block, "signature")
        if (signature !== undefined) reply.endThinking({ [name]: { signature } })
        reply.endCall(String(index))
      })
      counts.take(fields(message, "usage"))
      stopped(message)
      if (reason !== undefined) finish(reason)
      return undefined
    },
    end: () => {
      if (reason !== undefined) finish(reason)
    }
  }
}

/** Counts are cumulative: each replaces the one before. Cached input is part of the input. */
class Counts {
  #input: number | undefined
  #read: number | undefined
  #written: number | undefined
  #output: number | undefined
  #thought: number | undefined

  take(usage: Fields | undefined) {
    this.#input = count(usage, "input_tokens") ?? this.#input
    this.#read = count(usage, "cache_read_input_tokens") ?? this.#read
    this.#written = count(usage, "cache_creation_input_tokens") ?? this.#written
    this.#output = count(usage, "output_tokens") ?? this.#output
    this.#thought = count(fields(usage, "output_tokens_details"), "thinking_tokens") ?? this.#thought
  }

  get usage(): ReportedUsage {
    return {
      inputTokens: {
        total: this.#input === undefined ? undefined : sum(this.#input, this.#read, this.#written),
        uncached: this.#input,
        cacheRead: this.#read,
        cacheWrite: this.#written
      },
      outputTokens: { total: this.#output, reasoning: this.#thought }
    }
  }
}

const finishReason = (given: string): FinishReason => {
  switch (given) {
    case "end_turn":
    case "stop_sequence":
      return "stop"
    case "max_tokens":
    case "model_context_window_exceeded":
      return "length"
    case "tool_use":
      return "tool-calls"
    case "pause_turn":
      return "pause"
    case "refusal":
      return "content-filter"
    default:
      return "other"
  }
}

// ---------------------------------------------------------------- errors

const reasons: ReadonlyMap<string, Fault["reason"]> = new Map<string, Fault["reason"]>([
  ["invalid_request_error", "invalid_request"],
  ["authentication_error", "authentication"],
  ["billing_error", "quota_exhausted"],
  ["permission_error", "permission"],
  ["not_found_error", "not_found"],
  ["request_too_large", "invalid_request"],
  ["rate_limit_error", "rate_limited"],
  ["timeout_error", "timeout"],
  ["api_error", "server_error"],
  ["overloaded_error", "overloaded"]
])

const inStream = (event: Fields): Fault => {
  const code = string(fields(event, "error"), "type")
  return { reason: reasons.get(code ?? "") ?? "server_error", code }
}

const fault = (document: unknown, status: number): Pick<Fault, "reason" | "code"> => {
  const error = isFields(document) ? fields(document, "error") : undefined
  const code = string(error, "type")
  // The sentence is only looked at, never passed on.
  const message = string(error, "message") ?? ""
  if (status === 400 && /prompt is too long|context window/i.test(message)) return { reason: "context_length", code }
  if (status === 400 && /credit balance/i.test(message)) return { reason: "quota_exhausted", code }
  return { reason: reasons.get(code ?? "") ?? statusReason(status), code }
}
