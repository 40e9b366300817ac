/**
 * Gemini, over generateContent.
 *
 * A reply ends with its body, without an end mark, so it counts as complete once it has a finish reason.
 *
 * @since 0.1.0
 */

import type * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import type * as Redacted from "effect/Redacted"
import { type Json, jsonObject, type JsonObject } from "../kit/json.ts"
import { vendorRules } from "../kit/vendorRules.ts"
import type { Message } from "../Message.ts"
import type { ProviderShape, Request } from "../Provider.ts"
import type { FinishReason, ReportedUsage } from "../StreamPart.ts"
import { adapter } from "./internal/adapter.ts"
import { assemble, extras, hostedOf, laidOver, runHere, type Settings } from "./internal/body.ts"
import { configured, requireKey } from "./internal/configured.ts"
import type { Fault } from "./internal/providerFault.ts"
import type { Decoder } from "./internal/frames.ts"
import * as Google from "./internal/google.ts"
import { allMedia, itemsOf, type Piece, textOf } from "./internal/messageParts.ts"
import { outputSchema } from "./internal/outputSchema.ts"
import { count, type Fields, fields, firstAnswer, list, string, strings, text } from "./internal/readFields.ts"
import { type Reply, unknownReason } from "./internal/replyParts.ts"

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
 * The variables of the key, in the order of lookup.
 *
 * @category models
 * @since 0.1.0
 */
export const variables: ReadonlyArray<string> = Google.variables

/**
 * Creates the provider. It uses the HTTP client in context.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Effect.Effect<ProviderShape, never, HttpClient.HttpClient> =>
  adapter({ ...Google.vendor(name, options), takes, constrains }, (speak) =>
    speak({
      path: ({ model }) => `/models/${encodeURIComponent(model.id)}:streamGenerateContent`,
      query: "alt=sse",
      rules: vendorRules.gemini,
      media: allMedia,
      encode: toMessage,
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

const name = "google"

// ---------------------------------------------------------------- the request

interface WireMessage {
  readonly role: "system" | "user" | "model"
  readonly isResults: boolean
  readonly text: string
  readonly parts: ReadonlyArray<string>
}

const toMessage = (message: Message, pieces: ReadonlyArray<Piece>, model: string): WireMessage => {
  if (message.role === "system") return { role: "system", isResults: false, text: textOf(pieces), parts: [] }
  const signatures = new Map(Google.callSignatures(pieces))
  const first = pieces.find((piece) => piece.kind === "call")
  if (first !== undefined && !signatures.has(first.id) && isStrict.test(model)) signatures.set(first.id, unsigned)
  const parts: Array<string> = []
  for (const piece of pieces) {
    for (const part of toParts(piece, signatures)) parts.push(JSON.stringify(part))
  }
  return {
    role: message.role === "assistant" ? "model" : "user",
    isResults: pieces.some((piece) => piece.kind === "result"),
    text: "",
    parts
  }
}

// Gemini 3 and later refuse a step whose first call is not signed. This value replaces the signature of a call made by
// another model (ai.google.dev/gemini-api/docs/thought-signatures).
const unsigned = "skip_thought_signature_validator"
const isStrict = /^gemini-(?![12]\b)/

const toParts = (piece: Piece, signatures: ReadonlyMap<string, string>): ReadonlyArray<JsonObject> => {
  switch (piece.kind) {
    case "text":
      return [{ text: piece.text }]
    case "media":
      return [
        "url" in piece.source
          ? { fileData: { mimeType: piece.mediaType, fileUri: piece.source.url } }
          : { inlineData: { mimeType: piece.mediaType, data: piece.source.data } }
      ]
    case "call": {
      const signature = signatures.get(piece.id)
      return [
        {
          functionCall: { id: piece.id, name: piece.name, args: piece.input },
          ...(signature === undefined ? {} : { thoughtSignature: signature })
        }
      ]
    }
    case "result": {
      const response = { [piece.isError ? "error" : "output"]: textOf(piece.pieces, "\n") }
      const shown = piece.pieces
        .filter((inner) => inner.kind === "media")
        .flatMap((inner) => toParts(inner, signatures))
      return [{ functionResponse: { id: piece.id, name: piece.name ?? "unknown", response } }, ...shown]
    }
    case "thought":
      return itemsOf(piece)
  }
}

const toBody = (request: Request, messages: ReadonlyArray<WireMessage>): string => {
  const { generation } = request
  const own = extras(request, name)
  const system = messages
    .filter((message) => message.role === "system" && message.text !== "")
    .map((message): Json => ({ text: message.text }))
  const config: Settings = {
    temperature: generation.temperature,
    topP: generation.topP,
    maxOutputTokens: generation.maxTokens,
    stopSequences: generation.stopSequences,
    seed: generation.seed,
    ...formatOf(request),
    thinkingConfig: thinkingConfig(request, fields(fields(own, "generationConfig"), "thinkingConfig"))
  }
  return assemble(
    {
      systemInstruction: system.length === 0 ? undefined : { parts: system },
      tools: toTools(request),
      ...own,
      generationConfig: laidOver(config, own["generationConfig"])
    },
    "contents",
    toContents(messages)
  )
}

const formatOf = (request: Request): Settings => {
  const schema = outputSchema(request, vendorRules.gemini)
  return schema === undefined ? {} : { responseMimeType: "application/json", responseJsonSchema: schema }
}

const constrains: NonNullable<ProviderShape["constrains"]> = (request) =>
  outputSchema(request, vendorRules.gemini) !== undefined

const toTools = ({ tools }: Request): ReadonlyArray<JsonObject> | undefined => {
  const functionDeclarations = runHere(tools).map((tool) => ({
    name: tool.name,
    description: tool.description,
    parametersJsonSchema: tool.inputSchema
  }))
  const written = [...(functionDeclarations.length === 0 ? [] : [{ functionDeclarations }]), ...hostedOf(tools, name)]
  return written.length === 0 ? undefined : written
}

// The API refuses a budget together with a level.
const takes: NonNullable<ProviderShape["takes"]> = ({ generation }) => {
  const { budget } = generation.thinking ?? {}
  return budget === undefined ? generation : { ...generation, thinking: { budget } }
}

const thinkingConfig = (request: Request, own: Fields | undefined): Json | undefined => {
  const { budget, effort } = takes(request).thinking ?? {}
  const isOwn = own?.["thinkingBudget"] !== undefined || own?.["thinkingLevel"] !== undefined
  const shown = { includeThoughts: true }
  if (budget !== undefined) return isOwn ? shown : { ...shown, thinkingBudget: budget }
  if (effort !== undefined) return isOwn ? shown : { ...shown, thinkingLevel: effort }
  return undefined
}

// The results of one turn's calls share a message, and empty messages are not sent.
const toContents = (messages: ReadonlyArray<WireMessage>): ReadonlyArray<string> => {
  const written: Array<string> = []
  let parts: Array<string> = []
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]
    if (message === undefined || message.role === "system" || message.parts.length === 0) continue
    for (const part of message.parts) parts.push(part)
    if (message.isResults && messages[index + 1]?.isResults === true) continue
    written.push(`{"role":"${message.role}","parts":[${parts.join(",")}]}`)
    parts = []
  }
  return written
}

// ---------------------------------------------------------------- the reply

const failed = (piece: Fields): Fault => Google.fault(piece, 500)

/** The calls that Google runs: code, and the searches behind a grounded reply. */
class Hosted {
  readonly #reply: Reply
  #code: Fields | undefined
  #grounding: Fields | undefined

  constructor(reply: Reply) {
    this.#reply = reply
  }

  /** Takes a part about code that was run. The code arrives first, then its result, and both are sent back together. */
  take(part: Fields): boolean {
    const ran = fields(part, "codeExecutionResult")
    if (ran === undefined) {
      if (fields(part, "executableCode") === undefined) return false
      this.#code = part
      return true
    }
    const code = this.#code
    const isError = string(ran, "outcome") !== "OUTCOME_OK"
    const input = jsonObject(fields(code, "executableCode"))
    this.#reply.hosted({ name: "code_execution", input, isError }, name, code === undefined ? [part] : [code, part])
    this.#code = undefined
    return true
  }

  /** Reports the searches once. Every chunk after the search repeats the whole grounding. */
  grounded(candidate: Fields | undefined): void {
    this.#grounding = fields(candidate, "groundingMetadata") ?? this.#grounding
  }

  end(): void {
    const queries = strings(this.#grounding, "webSearchQueries")
    const sources = list(this.#grounding, "groundingChunks").map((chunk) => {
      const page = fields(chunk, "web") ?? fields(chunk, "retrievedContext") ?? fields(chunk, "maps")
      return { url: text(page, "uri"), title: text(page, "title") }
    })
    if (queries.length === 0) return sources.forEach((source) => this.#reply.source(source))
    this.#reply.hosted({ name: "web_search", input: { queries }, sources }, name, [])
  }
}

/** Returns why a reply ends with this piece. Undefined if it does not. */
const endOf = (candidate: Fields | undefined, piece: Fields): FinishReason | undefined => {
  const given = text(candidate, "finishReason")
  if (given !== undefined) return finishReason(given)
  return text(fields(piece, "promptFeedback"), "blockReason") === undefined ? undefined : "content-filter"
}

const decoder = (reply: Reply): Decoder => {
  let usage: Fields | undefined
  let reason: FinishReason | undefined
  let told: string | undefined
  let isKnown = false
  let calls = 0

  const hosted = new Hosted(reply)

  const finish = (given: FinishReason) => {
    if (!reply.isFinished) hosted.end()
    const closing = given === "stop" && reply.hasCalls ? "tool-calls" : given
    reply.finish(closing, toUsage(usage), unknownReason(name, closing, told))
  }

  const readPart = (part: Fields) => {
    if (hosted.take(part)) return
    const call = fields(part, "functionCall")
    if (call !== undefined) {
      const key = String(calls++)
      const callId = reply.call(key, text(call, "id"), string(call, "name") ?? "")
      reply.input(key, fields(call, "args") ?? {})
      reply.endCall(key)
      const signature = text(part, "thoughtSignature")
      if (signature !== undefined) reply.endThinking({ [name]: { signature, callId } })
    } else if (part["thought"] === true) {
      reply.thinking(string(part, "text") ?? "")
    } else {
      const made = fields(part, "inlineData")
      if (made !== undefined) return reply.file(text(made, "mimeType"), string(made, "data") ?? "")
      reply.text(string(part, "text") ?? "")
    }
  }

  const take = (piece: Fields): Fault | undefined => {
    if (piece["error"] !== undefined && piece["error"] !== null) return failed(piece)
    usage = fields(piece, "usageMetadata") ?? usage
    if (!isKnown) {
      isKnown = true
      reply.about(text(piece, "responseId"), text(piece, "modelVersion"), toUsage(usage))
    }
    const candidate = firstAnswer(piece, "candidates")
    list(fields(candidate, "content"), "parts").forEach(readPart)
    hosted.grounded(candidate)
    told = text(candidate, "finishReason") ?? told
    reason = endOf(candidate, piece) ?? reason
    return undefined
  }

  return {
    event: take,
    failed,
    whole: take,
    end: () => {
      if (reason !== undefined) finish(reason)
    },
    hasEnded: () => reason !== undefined
  }
}

const toUsage = (usage: Fields | undefined): ReportedUsage =>
  Google.toUsage({
    prompt: count(usage, "promptTokenCount"),
    byTools: count(usage, "toolUsePromptTokenCount"),
    cacheRead: count(usage, "cachedContentTokenCount"),
    answer: count(usage, "candidatesTokenCount"),
    reasoning: count(usage, "thoughtsTokenCount")
  })

const finishReason = (given: string): FinishReason => {
  switch (given) {
    case "STOP":
      return "stop"
    case "MAX_TOKENS":
      return "length"
    case "SAFETY":
    case "RECITATION":
    case "BLOCKLIST":
    case "PROHIBITED_CONTENT":
    case "SPII":
    case "LANGUAGE":
    case "IMAGE_SAFETY":
    case "IMAGE_PROHIBITED_CONTENT":
    case "IMAGE_RECITATION":
      return "content-filter"
    case "MALFORMED_FUNCTION_CALL":
    case "UNEXPECTED_TOOL_CALL":
    case "TOO_MANY_TOOL_CALLS":
      return "error"
    default:
      return "other"
  }
}
