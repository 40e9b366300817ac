/**
 * Gemini, over the Interactions API.
 *
 * A conversation is a list of steps. Nothing is stored at the service: every request sends the whole conversation, as
 * with all other providers.
 *
 * @since 0.1.0
 */

import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import type * as Redacted from "effect/Redacted"
import { jsonObject, type JsonObject } from "../kit/json.ts"
import { vendorRules } from "../kit/vendorRules.ts"
import type { Message } from "../Message.ts"
import type { ProviderShape, Request } from "../Provider.ts"
import type { FinishReason, ReportedUsage } from "../StreamPart.ts"
import { adapter } from "./internal/adapter.ts"
import { assemble, extras, laidOver, type Settings, toolsOf } from "./internal/body.ts"
import { configured, requireKey } from "./internal/configured.ts"
import type { Fault } from "./internal/providerFault.ts"
import type { Decoder } from "./internal/frames.ts"
import * as Google from "./internal/google.ts"
import { allMedia, itemsOf, type Piece, shownOf, textOf } from "./internal/messageParts.ts"
import { outputSchema } from "./internal/outputSchema.ts"
import { count, type Fields, fields, isFields, list, string, text } from "./internal/readFields.ts"
import type { Reply } from "./internal/replyParts.ts"
import { Signatures } from "./internal/signatures.ts"

/**
 * Options of the provider.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly apiKey: Redacted.Redacted
  /** Default: `https://generativelanguage.googleapis.com`. */
  readonly baseUrl?: string | undefined
  readonly headers?: { readonly [name: string]: string } | undefined
}

/**
 * Creates the provider. It uses the HTTP client in context.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<ProviderShape, never, HttpClient.HttpClient> =>
  adapter({ ...Google.vendor(name, options), takes, constrains }, (speak) =>
    speak({
      path: () => "/interactions",
      rules: vendorRules["gemini-interactions"],
      media: allMedia,
      encode: toSteps,
      body: toBody,
      decoder
    })
  )

const found = configured({
  key: () => requireKey(name, [...Google.variables]),
  address: "GEMINI_BASE_URL",
  make
})

/**
 * Creates the provider from the environment: `GEMINI_API_KEY` (or `GOOGLE_GENERATIVE_AI_API_KEY`, or `GOOGLE_API_KEY`),
 * and optionally `GEMINI_BASE_URL`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromConfig = found.fromConfig

/**
 * Provides the provider from the environment. Without a key, fails with `ProviderUnavailable`, which names the missing
 * variable.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = found.layer

/**
 * Provides the provider with a key from the configuration.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = found.layerConfig

const name = "google-interactions"

// ---------------------------------------------------------------- the request

interface WireSteps {
  readonly system: string
  readonly steps: ReadonlyArray<string>
}

const toSteps = (message: Message, pieces: ReadonlyArray<Piece>): WireSteps => {
  if (message.role === "system") return { system: textOf(pieces), steps: [] }
  const isModel = message.role === "assistant"
  const signatures = Google.callSignatures(pieces)
  const steps: Array<JsonObject> = []
  let content: Array<JsonObject> = []
  const close = () => {
    if (content.length > 0) steps.push({ type: isModel ? "model_output" : "user_input", content })
    content = []
  }
  for (const piece of pieces) {
    switch (piece.kind) {
      case "text":
      case "media":
        content.push(toPart(piece))
        break
      case "call": {
        close()
        const signature = signatures.get(piece.id)
        steps.push({
          type: "function_call",
          id: piece.id,
          name: piece.name,
          arguments: piece.input,
          ...(signature === undefined ? {} : { signature })
        })
        break
      }
      case "result":
        close()
        steps.push({
          type: "function_result",
          call_id: piece.id,
          ...(piece.name === undefined ? {} : { name: piece.name }),
          result: shownOf(piece.pieces).flatMap((inner) =>
            inner.kind === "text" || inner.kind === "media" ? [toPart(inner)] : []
          ),
          ...(piece.isError ? { is_error: true } : {})
        })
        break
      case "thought": {
        close()
        steps.push(...itemsOf(piece))
        const kept = isFields(piece.signature) ? piece.signature : undefined
        const signature = text(kept, "signature")
        if (signature === undefined || text(kept, "callId") !== undefined) break
        steps.push({
          type: "thought",
          signature,
          ...(piece.text === "" ? {} : { summary: [{ type: "text", text: piece.text }] })
        })
      }
    }
  }
  close()
  return { system: "", steps: steps.map((step) => JSON.stringify(step)) }
}

const toPart = (piece: Extract<Piece, { readonly kind: "text" | "media" }>): JsonObject =>
  piece.kind === "text"
    ? { type: "text", text: piece.text }
    : {
        type: piece.type,
        mime_type: piece.mediaType,
        ...("url" in piece.source ? { uri: piece.source.url } : { data: piece.source.data })
      }

// The option is a level of thinking, not a token budget.
const takes: NonNullable<ProviderShape["takes"]> = ({ generation }) => {
  const { budget: _, ...thinking } = generation.thinking ?? {}
  return generation.thinking === undefined ? generation : { ...generation, thinking }
}

const toBody = (request: Request, messages: ReadonlyArray<WireSteps>): string => {
  const { generation } = request
  const own = extras(request, name)
  const system = messages.map((message) => message.system).filter((text) => text !== "")
  const config: Settings = {
    temperature: generation.temperature,
    top_p: generation.topP,
    max_output_tokens: generation.maxTokens,
    stop_sequences: generation.stopSequences,
    seed: generation.seed,
    thinking_level: generation.thinking?.effort,
    thinking_summaries: generation.thinking === undefined ? undefined : "auto"
  }
  return assemble(
    {
      model: request.model.id,
      stream: true,
      store: false,
      system_instruction: system.length === 0 ? undefined : system.join("\n\n"),
      tools: toolsOf(request, name, (tool) => ({
        type: "function",
        name: tool.name,
        description: tool.description,
        parameters: tool.inputSchema
      })),
      response_format: formatOf(request),
      ...own,
      generation_config: laidOver(config, own["generation_config"])
    },
    "input",
    messages.flatMap((message) => message.steps)
  )
}

const formatOf = (request: Request): JsonObject | undefined => {
  const schema = outputSchema(request, vendorRules["gemini-interactions"])
  return schema === undefined ? undefined : { type: "text", mime_type: "application/json", schema }
}

const constrains: NonNullable<ProviderShape["constrains"]> = (request) => formatOf(request) !== undefined

// ---------------------------------------------------------------- the reply

const failed = (told: Fields | undefined): Fault => Google.fault(told, 500)

/** The calls that Google runs. Each arrives as two steps: the call and its result. */
class Hosted {
  readonly #reply: Reply
  readonly #steps = new Map<string, Fields>()
  readonly #calls = new Map<string, Fields>()

  constructor(reply: Reply) {
    this.#reply = reply
  }

  /** Takes a step, or the next piece of one. Returns false for steps of other kinds. */
  take(key: string, piece: Fields | undefined): boolean {
    if (piece === undefined || !hostedNames.has(toolOf(piece))) return false
    this.#steps.set(key, { ...this.#steps.get(key), ...piece })
    return true
  }

  stop(key: string): void {
    const result = this.#steps.get(key)
    const called = text(result, "id")
    if (result !== undefined && called !== undefined) this.#calls.set(called, result)
    const id = text(result, "call_id")
    const call = this.#calls.get(id ?? "")
    if (result === undefined || call === undefined) return
    const sources = list(result, "result").map((page) => ({ url: text(page, "url"), title: text(page, "title") }))
    const isError = result["is_error"] === true
    const input = jsonObject(call["arguments"])
    this.#reply.hosted({ id, name: hostedNames.get(toolOf(call)) ?? "", input, isError, sources }, name, [call, result])
  }
}

const toolOf = (step: Fields): string => (string(step, "type") ?? "").replace(/_(call|result)$/, "")

const hostedNames: ReadonlyMap<string, string> = new Map([
  ["google_search", "web_search"],
  ["code_execution", "code_execution"]
])

/** Reads the steps of an interaction, by their index. */
const makeSteps = (reply: Reply) => {
  const hosted = new Hosted(reply)
  const signatures = new Signatures(name, reply)
  const media = new MediaPieces(reply)

  const start = (key: string, step: Fields | undefined) => {
    if (hosted.take(key, step)) return
    switch (string(step, "type")) {
      case "function_call":
        return beginCall(reply, key, step)
      case "thought":
        list(step, "summary").forEach((part) => reply.thinking(string(part, "text") ?? ""))
        return signatures.add(key, text(step, "signature"))
      case "text":
        return reply.text(string(step, "text") ?? "")
      case "user_input":
        return
      default:
        media.take(key, step)
        list(step, "content").forEach((part) => {
          media.end(key)
          reply.text(string(part, "text") ?? "")
          media.take(key, part)
        })
    }
  }

  const delta = (key: string, part: Fields | undefined) => {
    if (hosted.take(key, part)) return
    switch (string(part, "type")) {
      case "text":
        return reply.text(string(part, "text") ?? "")
      case "thought_summary":
        return reply.thinking(string(fields(part, "content"), "text") ?? string(part, "text") ?? "")
      case "thought_signature":
        return signatures.add(key, text(part, "signature"))
      case "arguments_delta":
        return reply.params(key, string(part, "arguments") ?? "")
    }
    media.take(key, part)
  }

  const stop = (key: string) => {
    reply.endText()
    media.end(key)
    signatures.end(key)
    reply.endCall(key)
    hosted.stop(key)
  }

  const whole = (steps: ReadonlyArray<Fields>) =>
    steps.forEach((step, index) => {
      start(String(index), step)
      stop(String(index))
    })

  return { start, delta, stop, whole, end: () => media.endAll() }
}

const beginCall = (reply: Reply, key: string, step: Fields | undefined): void => {
  const callId = reply.call(key, text(step, "id"), string(step, "name") ?? "")
  const given = fields(step, "arguments")
  if (given !== undefined && Object.keys(given).length > 0) reply.input(key, given)
  else reply.params(key, string(step, "arguments") ?? "")
  const signature = text(step, "signature")
  if (signature !== undefined) reply.endThinking({ [name]: { signature, callId } })
}

/** Media whose data may arrive in pieces after their announcement. */
class MediaPieces {
  readonly #reply: Reply
  readonly #media = new Map<string, { readonly mediaType: string | undefined; readonly data: string }>()

  constructor(reply: Reply) {
    this.#reply = reply
  }

  take(key: string, part: Fields | undefined): void {
    if (!Object.hasOwn(allMedia, string(part, "type") ?? "")) return
    const known = this.#media.get(key)
    const mediaType = text(part, "mime_type") ?? known?.mediaType
    if (known !== undefined && known.mediaType !== mediaType) this.end(key)
    const data = (this.#media.get(key)?.data ?? "") + (string(part, "data") ?? "")
    this.#media.set(key, { mediaType, data })
  }

  end(key: string): void {
    const made = this.#media.get(key)
    this.#media.delete(key)
    if (made !== undefined) this.#reply.file(made.mediaType, made.data)
  }

  /** Reports the media of steps that never ended. */
  endAll(): void {
    for (const key of this.#media.keys()) this.end(key)
  }
}

const decoder = (reply: Reply): Decoder => {
  const steps = makeSteps(reply)
  let usage: Fields | undefined
  let reason: FinishReason | undefined

  const finish = (given: FinishReason) => {
    steps.end()
    reply.finish(given === "stop" && reply.hasCalls ? "tool-calls" : given, toUsage(usage))
  }

  const concluded = (interaction: Fields | undefined): Fault | undefined => {
    usage = fields(interaction, "usage") ?? usage
    const status = string(interaction, "status")
    if (status === "failed") return failed(interaction)
    if (status !== undefined) reason = finishReason(status)
    return undefined
  }

  return {
    event: (event) => {
      const key = String(count(event, "index") ?? 0)
      switch (string(event, "event_type")) {
        case "step.delta":
          return void steps.delta(key, fields(event, "delta"))
        case "step.start":
          return void steps.start(key, fields(event, "step"))
        case "step.stop":
          return void steps.stop(key)
        case "interaction.created": {
          const interaction = fields(event, "interaction")
          return void reply.about(text(interaction, "id"), text(interaction, "model"))
        }
        case "interaction.completed": {
          const fault = concluded(fields(event, "interaction"))
          if (fault === undefined) finish(reason ?? "unknown")
          return fault
        }
        case "interaction.status_update":
          return string(event, "status") === "failed" ? failed(event) : undefined
        case "error":
          return failed(event)
      }
      return event["error"] === undefined || event["error"] === null ? undefined : failed(event)
    },
    failed,
    whole: (interaction) => {
      if (interaction["error"] !== undefined && interaction["error"] !== null) return failed(interaction)
      reply.about(text(interaction, "id"), text(interaction, "model"))
      steps.whole([...list(interaction, "steps"), ...list(interaction, "outputs")])
      const fault = concluded(interaction)
      if (fault === undefined && reason !== undefined) finish(reason)
      return fault
    },
    end: () => {
      if (reason !== undefined) finish(reason)
    },
    hasEnded: () => reason !== undefined
  }
}

const toUsage = (usage: Fields | undefined): ReportedUsage =>
  Google.toUsage({
    prompt: count(usage, "total_input_tokens"),
    byTools: count(usage, "total_tool_use_tokens"),
    cacheRead: count(usage, "total_cached_tokens"),
    answer: count(usage, "total_output_tokens"),
    reasoning: count(usage, "total_thought_tokens")
  })

const finishReason = (status: string): FinishReason => {
  switch (status) {
    case "completed":
      return "stop"
    case "requires_action":
      return "tool-calls"
    case "incomplete":
    case "budget_exceeded":
      return "length"
    case "requires_continuation":
      return "pause"
    default:
      return "other"
  }
}
