/**
 * Uses any model of the AI SDK as a provider.
 *
 * Works with the models of `@ai-sdk/*` packages and of every other implementation of the language model specification,
 * versions 2 to 4, and needs no AI SDK package itself: a model is recognized by its shape. A package is loaded when one
 * of its models is first requested. A missing package fails with `ProviderUnavailable`, which names what to install and
 * which variable to set.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { ProviderUnavailable, VendorWords } from "../KernelError.ts"
import { soundObject, soundText } from "../kit/soundText.ts"
import { vendorRules } from "../kit/vendorRules.ts"
import { Limits } from "../Limits.ts"
import type * as ModelRegistry from "../ModelRegistry.ts"
import { type LeftOutMedium, Provider, type ProviderShape, type Request } from "../Provider.ts"
import type { FinishReason, ReportedUsage } from "../StreamPart.ts"
import * as Packages from "./internal/aiSdkPackages.ts"
import { toMessages, type Version, type Written } from "./internal/aiSdkPrompt.ts"
import { extras, runHere } from "./internal/body.ts"
import * as ChatReply from "./internal/chatReply.ts"
import { type Fault, refusal, retryAt } from "./internal/providerFault.ts"
import { fitting, namedBack } from "./internal/fitRequest.ts"
import * as Foreign from "./internal/foreign.ts"
import { encoder } from "./internal/encodeMessages.ts"
import { allMedia } from "./internal/messageParts.ts"
import { outputSchema } from "./internal/outputSchema.ts"
import { count, type Fields, fields, isFields, parse, string, text } from "./internal/readFields.ts"
import { type Reply, unknownReason } from "./internal/replyParts.ts"
import { requestIdOf, wordsOf } from "./internal/vendorWords.ts"

export type {
  /**
   * A model of the AI SDK, such as `openai("gpt-5")`.
   *
   * @category models
   * @since 0.1.0
   */
  AiSdkModel
} from "./internal/aiSdkPackages.ts"

/**
 * The name of the provider.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /**
   * The key of the model strings, and the origin of thinking. Default: the model's own provider name, or `ai-sdk` for a
   * function.
   */
  readonly name?: string | undefined
}

/**
 * Creates a provider that calls this model, or the one a function returns for the requested id.
 *
 * @example
 * const provider = AiSdkProvider.fromModel((id) => groq(id), { name: "groq" })
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromModel = (
  model: Packages.AiSdkModel | ((modelId: string) => Packages.AiSdkModel),
  options: Options = {}
): ProviderShape => {
  const modelFor = typeof model === "function" ? (request: Request) => model(request.model.id) : () => model
  const name = options.name ?? (typeof model === "function" ? "ai-sdk" : model.provider)
  const fit = fitting(vendorRules["ai-sdk"])
  const encode = encoder({ provider: name, media: allMedia }, (message, pieces) => ({ message, pieces }))

  const ask = Effect.fnUntraced(function* (request: Request, clock: Clock.Clock) {
    const limits = yield* Limits
    const leftOut: Array<LeftOutMedium> = []
    const noteLeftOut = (media: ReadonlyArray<LeftOutMedium>) => void leftOut.push(...media)
    const { messages: encoded } = yield* encode({ ...request, noteLeftOut })
    const model = yield* Effect.try({ try: () => modelFor(request), catch: () => refused })
    const abort = yield* Effect.acquireRelease(
      Effect.sync(() => new AbortController()),
      (controller) => Effect.sync(() => controller.abort())
    )
    const asked = yield* Effect.gen(function* () {
      const urls = yield* Effect.tryPromise({ try: async () => await model.supportedUrls, catch: () => refused })
      const target = { version: versionOf(model), reads: readerOf(urls), leftOut }
      const prompt = Foreign.together(encoded.flatMap(({ message, pieces }) => toMessages(target, message, pieces)))
      request.noteLeftOut?.(leftOut)
      return yield* Effect.tryPromise({
        try: () => model.doStream(toOptions(request, name, prompt, abort.signal)),
        catch: (error) => faultOf(error, clock)
      })
    }).pipe(
      Effect.timeoutOrElse({
        duration: limits.headersTimeout,
        orElse: () =>
          Effect.fail<Fault>({ reason: "timeout", note: `headersTimeout is ${Duration.format(limits.headersTimeout)}` })
      })
    )
    // A stream may never confirm its cancellation, so it is not awaited.
    yield* Effect.addFinalizer(() => Effect.sync(() => void asked.stream.cancel().catch(() => undefined)))
    return Stream.fromReadableStream({
      evaluate: () => asked.stream,
      onError: (error) => faultOf(error, clock),
      releaseLockOnEnd: true
    })
  })

  return {
    name,
    takes,
    constrains: (request) => schemaOf(request) !== undefined,
    stream: (asked) => {
      const { names, request } = fit(asked)
      return Stream.unwrap(
        Clock.clockWith((clock) =>
          Effect.succeed(namedBack(Foreign.stream(name, ask(request, clock), reader(name, clock)), names))
        )
      )
    }
  }
}

/**
 * Creates the provider of an `@ai-sdk/*` package, by the key of its model strings. Its API key is read from the
 * configuration.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromPackage = (key: string): Effect.Effect<ProviderShape, ProviderUnavailable> =>
  Effect.map(Packages.load(key), (model) => fromModel((id) => model(id), { name: key }))

/**
 * One adapter for each provider key that has a package: `HttpModelRegistry.layerWith(AiSdkProvider.adapters)` calls
 * every vendor through its AI SDK package.
 *
 * @category models
 * @since 0.1.0
 */
export const adapters: ModelRegistry.Adapters = Object.fromEntries(
  Packages.keys.map((key) => [key, fromPackage(key)] as const)
)

/**
 * Provides this model as the provider.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  model: Packages.AiSdkModel | ((modelId: string) => Packages.AiSdkModel),
  options?: Options
): Layer.Layer<Provider> => Layer.sync(Provider, () => fromModel(model, options))

const refused: Fault = { reason: "invalid_request", note: "there is no such model" }

// ---------------------------------------------------------------- the request

const versionOf = (model: Packages.AiSdkModel): Version =>
  model.specificationVersion === "v2" ? 2 : model.specificationVersion === "v3" ? 3 : 4

/** The addresses a model can read by itself, as patterns by media type; `*` stands for any type. */
const readerOf =
  (supported: unknown) =>
  (mediaType: string, url: string): boolean => {
    if (!isFields(supported)) return false
    return Object.entries(supported).some(([type, patterns]) => {
      const fits = type === "*" || type === "*/*" || type === mediaType || type === `${mediaType.split("/", 1)[0]}/*`
      return (
        fits && Array.isArray(patterns) && patterns.some((pattern) => pattern instanceof RegExp && pattern.test(url))
      )
    })
  }

// The option is a level of thinking, not a token budget.
const takes: NonNullable<ProviderShape["takes"]> = ({ generation }) => {
  const { budget: _, ...thinking } = generation.thinking ?? {}
  return generation.thinking === undefined ? generation : { ...generation, thinking }
}

const schemaOf = (request: Request) => outputSchema(request, vendorRules["ai-sdk"])

const toOptions = (
  request: Request,
  name: string,
  prompt: ReadonlyArray<Written>,
  abortSignal: AbortSignal
): Packages.CallOptions => {
  const { generation } = request
  const tools = runHere(request.tools)
  const schema = schemaOf(request)
  const options = {
    prompt,
    abortSignal,
    maxOutputTokens: generation.maxTokens,
    temperature: generation.temperature,
    topP: generation.topP,
    stopSequences: generation.stopSequences,
    seed: generation.seed,
    reasoning: generation.thinking?.effort,
    providerOptions: extras(request, name),
    responseFormat: schema === undefined ? undefined : { type: "json", schema },
    ...(tools.length === 0
      ? {}
      : {
          tools: tools.map(({ description, inputSchema, name }) => ({
            type: "function",
            name,
            description: soundText(description),
            inputSchema: soundObject(inputSchema)
          })),
          toolChoice: { type: "auto" }
        })
  }
  const given = Object.entries(options).filter(([, value]) => value !== undefined)
  // The types differ between versions of the specification; this value fits the version of the model.
  return Object.fromEntries(given) as unknown as Packages.CallOptions
}

// ---------------------------------------------------------------- the reply

const reader = (name: string, clock: Clock.Clock) => (reply: Reply) => {
  const collector = Foreign.makeCollector(name, reply)
  const executed = new Set<string>()
  return (part: unknown): Fault | undefined => {
    if (!isFields(part)) return { reason: "invalid_response", note: "no part" }
    const id = string(part, "id") ?? ""
    const metadata = part["providerMetadata"]
    switch (part["type"]) {
      case "text-delta":
        reply.text(string(part, "delta") ?? "")
        return undefined
      case "text-end":
        reply.endText()
        return undefined
      case "reasoning-start":
        collector.note(id, metadata)
        return undefined
      case "reasoning-delta":
        reply.thinking(string(part, "delta") ?? "")
        collector.note(id, metadata)
        return undefined
      case "reasoning-end":
        collector.endThinking(id, metadata)
        return undefined
      case "tool-input-start":
        // Tools that the vendor runs itself are left out.
        if (part["providerExecuted"] === true) executed.add(id)
        else collector.begin(id, string(part, "toolName") ?? "")
        return undefined
      case "tool-input-delta":
        collector.params(id, string(part, "delta") ?? "")
        return undefined
      case "tool-call": {
        const callId = string(part, "toolCallId") ?? ""
        if (part["providerExecuted"] === true || executed.has(callId)) return undefined
        collector.end(callId, string(part, "toolName") ?? "", part["input"], metadata)
        return undefined
      }
      case "source":
        reply.source({ url: text(part, "url"), title: text(part, "title") ?? text(part, "filename") })
        return undefined
      case "file":
        reply.file(text(part, "mediaType"), fileData(part["data"]))
        return undefined
      case "response-metadata":
        reply.about(text(part, "id"), text(part, "modelId"))
        return undefined
      case "finish":
        finish(name, reply, part)
        return undefined
      case "error": {
        const fault = faultOf(part["error"], clock)
        return fault.reason === "unknown" ? { reason: "server_error", note: "reported in the reply" } : fault
      }
      default:
        return undefined
    }
  }
}

const finish = (name: string, reply: Reply, part: Fields): void => {
  const given = part["finishReason"]
  const reason = finishReason(given, reply.hasCalls)
  const told = isFields(given) ? (text(given, "raw") ?? text(given, "unified")) : text(part, "finishReason")
  reply.finish(reason, toUsage(fields(part, "usage")), unknownReason(name, reason, told))
}

/** Returns bytes or base64 unchanged, and an empty text for an address, since nothing is fetched here. */
const fileData = (data: unknown): string | Uint8Array => {
  const inner = isFields(data) && !(data instanceof Uint8Array) ? data["data"] : data
  return typeof inner === "string" || inner instanceof Uint8Array ? inner : ""
}

const reasons: ReadonlySet<unknown> = new Set<FinishReason>(["stop", "length", "content-filter", "tool-calls", "error"])

const finishReason = (given: unknown, hasCalls: boolean): FinishReason => {
  const unified = isFields(given) ? given["unified"] : given
  if (unified === "stop" && hasCalls) return "tool-calls"
  return isReason(unified) ? unified : unified === "unknown" ? "unknown" : "other"
}

const isReason = (value: unknown): value is FinishReason => reasons.has(value)

/** Converts usage, which is grouped, or flat in version 2. */
const toUsage = (usage: Fields | undefined): ReportedUsage => {
  const input = fields(usage, "inputTokens")
  const output = fields(usage, "outputTokens")
  const total = count(input, "total") ?? count(usage, "inputTokens")
  const cacheRead = count(input, "cacheRead") ?? count(usage, "cachedInputTokens")
  return {
    inputTokens: {
      total,
      cacheRead,
      cacheWrite: count(input, "cacheWrite"),
      uncached: count(input, "noCache")
    },
    outputTokens: {
      total: count(output, "total") ?? count(usage, "outputTokens"),
      text: count(output, "text"),
      reasoning: count(output, "reasoning") ?? count(usage, "reasoningTokens")
    }
  }
}

// ---------------------------------------------------------------- errors

/** Classifies an error of the AI SDK. Its message may quote a prompt or a key, so only developers see it. */
const faultOf = (error: unknown, clock: Clock.Clock): Fault =>
  isFields(error) ? { ...meaningOf(error, clock), vendor: wordsIn(error) } : { reason: "unknown" }

const meaningOf = (error: Fields, clock: Clock.Clock): Fault => {
  const name = string(error, "name") ?? ""
  const status = count(error, "statusCode")
  if (status !== undefined) {
    return {
      reason: refusal(ChatReply.fault(documentOf(error), status), status).reason,
      status,
      retryAt: retryAt(headersOf(error), clock.currentTimeMillisUnsafe()),
      retry: error["isRetryable"] === false ? false : undefined
    }
  }
  if (name.includes("APIKey") || name === "AI_LoadSettingError") return { reason: "not_configured" }
  if (name === "AI_NoSuchModelError") return { reason: "not_found" }
  if (name === "AI_APICallError") return { reason: "disconnected" }
  if (name === "AI_JSONParseError" || name === "AI_TypeValidationError" || name === "AI_InvalidResponseDataError") {
    return { reason: "invalid_response" }
  }
  if (name === "AI_EmptyResponseBodyError") return { reason: "incomplete" }
  if (name.startsWith("AI_Unsupported") || name.startsWith("AI_Invalid")) return { reason: "invalid_request" }
  return { reason: name === "TypeError" ? "disconnected" : "unknown" }
}

// The error carries the vendor's response as an object or as text.
const documentOf = (error: Fields): unknown => error["data"] ?? parse(string(error, "responseBody") ?? "")

const wordsIn = (error: Fields): VendorWords => {
  const requestId = requestIdOf(headersOf(error))
  return {
    message: string(error, "message") ?? "",
    ...(requestId === undefined ? {} : { requestId }),
    ...wordsOf(documentOf(error) ?? string(error, "responseBody"))
  }
}

const headersOf = (error: Fields): { readonly [name: string]: string | undefined } => {
  const headers: { [name: string]: string } = {}
  for (const [name, value] of Object.entries(fields(error, "responseHeaders") ?? {})) {
    if (typeof value === "string") headers[name.toLowerCase()] = value
  }
  return headers
}
