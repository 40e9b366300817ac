/**
 * Reads replies in the Chat Completions format of OpenAI and most other vendors.
 *
 * Servers differ in small ways. Accepts content as text or as parts, fragments of calls with or without index and id,
 * arguments as text or as an object, thinking under two names, and usage in a separate chunk.
 */

import type { FinishReason, ReportedUsage } from "../../StreamPart.ts"
import { type Fault, saysDayIsOver, saysTooLong, statusReason, type FaultFacts } from "./providerFault.ts"
import type { Decoder } from "./frames.ts"
import { count, type Fields, fields, firstAnswer, isFields, list, string, sum, text } from "./readFields.ts"
import { type Reply, unknownReason } from "./replyParts.ts"
import { promptTokens } from "./replyUsage.ts"
import { ThinkTags } from "./thinkTags.ts"

/** Reads chunks and whole completions. `name` is the name of the provider. */
export const decoder = (name: string, reply: Reply): Decoder => {
  let usage: Fields | undefined
  let reason: FinishReason | undefined
  let told: string | undefined
  let refused = false
  let isKnown = false
  let hasSpoken = false
  let hasDeltas = false
  const keys = new Map<number, string>()
  const signed = new SignedParts(name, reply)
  const content = new ThinkTags(reply)

  const finish = (given: FinishReason) => {
    if (reply.isFinished) return
    content.end()
    signed.end()
    const closing = refused ? "content-filter" : given === "stop" && reply.hasCalls ? "tool-calls" : given
    reply.finish(closing, toUsage(usage), unknownReason(name, closing, told))
  }

  const say = (message: Fields | undefined, isWhole: boolean) => {
    thoughtOf(reply, message)
    signed.thought(message)
    speak(reply, content, message?.["content"])
    list(message, "annotations").forEach((annotation) => cite(reply, annotation))
    const refusal = text(message, "refusal")
    if (refusal !== undefined) {
      refused = true
      reply.text(refusal)
    }
    reply.text(string(fields(message, "audio"), "transcript") ?? "")
    const pieces = callsOf(message)
    if (pieces.length === 0) return
    content.end()
    const hasAll = pieces.length > 1 && pieces.length === reply.callCount
    pieces.forEach((piece, place) => {
      const key = readCall(reply, keys, piece, isWhole, hasAll ? keyAt(place) : undefined)
      if (key !== undefined) signed.call(key, piece)
    })
  }

  const failed = (chunk: Fields): Fault | undefined => (errorOf(chunk).isReply ? void finish("error") : inStream(chunk))

  const take = (chunk: Fields, isWhole: boolean): Fault | undefined => {
    if ((chunk["error"] !== undefined && chunk["error"] !== null) || chunk["object"] === "error") return failed(chunk)
    const choice = firstAnswer(chunk, "choices")
    isKnown ||= introduce(reply, chunk)
    usage = fields(chunk, "usage") ?? fields(fields(chunk, "x_groq"), "usage") ?? fields(choice, "usage") ?? usage
    list(chunk, "search_results").forEach((page) =>
      reply.source({ url: text(page, "url"), title: text(page, "title") })
    )
    if (choice === undefined) return undefined
    if (isFailed(choice)) return failedChoice(choice)
    hasSpoken = true
    const delta = fields(choice, "delta")
    hasDeltas ||= !isWhole && saysAnything(delta)
    // Some servers stream messages instead of deltas; others end their deltas with the whole message.
    say(hasDeltas ? delta : fields(choice, "message"), isWhole)
    const given = text(choice, "finish_reason")
    if (given !== undefined) {
      reason = finishReason(given)
      told = given
    }
    return undefined
  }

  return {
    event: (chunk) => take(chunk, false),
    failed,
    whole: (completion) => {
      const fault = take(completion, true)
      if (fault === undefined && hasSpoken) finish(reason ?? "unknown")
      return fault
    },
    end: (isMarked) => {
      if (reason !== undefined) finish(reason)
      else if (isMarked && hasSpoken) finish("unknown")
    },
    hasEnded: () => reason !== undefined
  }
}

/** Reports an annotation: a page, or a file by its name. Chat Completions nests the facts of a page below its type. */
export const cite = (reply: Reply, annotation: Fields | undefined): void => {
  const cited = fields(annotation, "url_citation") ?? annotation
  reply.source({ url: text(cited, "url"), title: text(cited, "title") ?? text(cited, "filename") })
}

/** Reports the id and the model of a reply. Azure begins with a chunk that has neither, for its filters. */
const introduce = (reply: Reply, chunk: Fields): boolean => {
  const id = text(chunk, "id")
  const model = text(chunk, "model")
  reply.about(id, model)
  return id !== undefined || model !== undefined
}

/** Thoughts and calls that a vendor signed and expects back with the next request. */
class SignedParts {
  readonly #name: string
  readonly #reply: Reply
  readonly #calls = new Set<string>()
  readonly #details: Array<Detail> = []

  constructor(name: string, reply: Reply) {
    this.#name = name
    this.#reply = reply
  }

  thought(message: Fields | undefined): void {
    if (message?.["reasoning_details"] === undefined) return
    for (const piece of list(message, "reasoning_details")) this.#reply.keep(addDetail(this.#details, piece))
  }

  /** Keeps the signature of a call. Servers in front of Gemini may repeat it in every piece of the call. */
  call(key: string, piece: Fields): void {
    const signature = text(fields(fields(piece, "extra_content"), "google"), "thought_signature")
    if (signature === undefined || this.#calls.has(key)) return
    this.#calls.add(key)
    this.#reply.endThinking({ [this.#name]: { signature, callId: this.#reply.ownId(key) } })
  }

  /** Reports the thoughts if any is signed. Unsigned ones are not sent back. */
  end(): void {
    if (!this.#details.some(({ data, signature }) => data !== undefined || signature !== undefined)) return
    for (const detail of this.#details) {
      const key = this.#reply.keyOfId(String(detail["id"]))
      const signature = key === undefined ? { detail } : { detail, callId: this.#reply.ownId(key) }
      this.#reply.endThinking({ [this.#name]: signature })
    }
  }
}

/** Returns true if a delta holds text, thinking or calls. A role alone does not count. */
const saysAnything = (delta: Fields | undefined): boolean =>
  spoken.some((key) => {
    const value = delta?.[key]
    return isFields(value) || ((typeof value === "string" || Array.isArray(value)) && value.length > 0)
  })

const spoken = [
  "content",
  "refusal",
  "reasoning_content",
  "reasoning",
  "reasoning_details",
  "tool_calls",
  "function_call",
  "audio"
]

/** Returns the calls of a message. The older format has a single one. */
const callsOf = (message: Fields | undefined): ReadonlyArray<Fields> => {
  if (message?.["tool_calls"] === undefined && message?.["function_call"] === undefined) return none
  const call = fields(message, "function_call")
  const calls = list(message, "tool_calls")
  const isEmpty = text(call, "name") === undefined && text(call, "arguments") === undefined
  return isEmpty || calls.length > 0 ? calls : [{ function: call }]
}

const none: ReadonlyArray<never> = []

const thoughtOf = (reply: Reply, message: Fields | undefined) => {
  const thought = text(message, "reasoning_content") ?? text(message, "reasoning")
  if (thought !== undefined) return reply.thinking(thought)
  if (message?.["reasoning_details"] === undefined) return
  for (const piece of list(message, "reasoning_details")) {
    reply.thinking(text(piece, "text") ?? text(piece, "summary") ?? "")
  }
}

type Detail = { [key: string]: string | number }

/** Adds a piece of an OpenRouter thought to the thought it continues. Returns the number of characters added. */
const addDetail = (details: Array<Detail>, piece: Fields): number => {
  const type = text(piece, "type") ?? ""
  const index = count(piece, "index")
  const last = details.at(-1)
  const isMore = last?.["type"] === type && last["index"] === index && type !== "reasoning.encrypted"
  const detail: Detail = isMore ? last : index === undefined ? { type } : { type, index }
  if (!isMore) details.push(detail)
  let size = isMore ? 0 : 100
  for (const key of ["id", "format", "text", "summary", "signature", "data"]) {
    const value = text(piece, key)
    if (value === undefined) continue
    size += value.length
    detail[key] = key === "text" || key === "summary" ? `${detail[key] ?? ""}${value}` : value
  }
  return size
}

/** Reports content, which is text or a list of text and thinking parts. */
const speak = (reply: Reply, tags: ThinkTags, content: unknown) => {
  if (typeof content === "string") return tags.text(content)
  if (!Array.isArray(content)) return
  for (const part of content) {
    if (!isFields(part)) continue
    const thought = part["thinking"]
    if (thought === undefined) reply.text(string(part, "text") ?? "")
    else if (typeof thought === "string") reply.thinking(thought)
    else list(part, "thinking").forEach((inner) => reply.thinking(string(inner, "text") ?? ""))
  }
}

/**
 * Reads a piece of a call. In a whole reply, each piece is a call of its own.
 *
 * A piece belongs to the call with its index, or else with its id. Without either, it continues the call at its
 * position (`beside`, if there is a piece for each call) or the last call, unless it begins another call (`isOther`). A
 * whole call that is repeated is read once.
 */
const readCall = (
  reply: Reply,
  keys: Map<number, string>,
  piece: Fields,
  isWhole: boolean,
  beside: string | undefined
): string | undefined => {
  const target = fields(piece, "function")
  const head: Head = { id: text(piece, "id"), name: text(target, "name"), params: target?.["arguments"] }
  const index = count(piece, "index")
  const known = isWhole ? undefined : knownCall(reply, keys, index, head, beside)
  if (known !== undefined && isAgain(reply, known, head)) return undefined
  const key = known === undefined || isOther(reply, known, index, head) ? begin(reply, known, head) : known
  if (index !== undefined) keys.set(index, key)
  if (head.name !== undefined) reply.name(key, head.name)
  if (typeof head.params === "string") reply.params(key, head.params)
  else if (isFields(head.params)) reply.input(key, head.params)
  return key
}

interface Head {
  readonly id: string | undefined
  readonly name: string | undefined
  readonly params: unknown
}

/** Returns the key of the call that a piece would belong to. */
const knownCall = (
  reply: Reply,
  keys: Map<number, string>,
  index: number | undefined,
  { id, name }: Head,
  beside: string | undefined
) => {
  const named = id === undefined ? undefined : reply.keyOfId(id)
  if (index !== undefined) {
    const known = keys.get(index)
    // If every call has the same index, their fragments may take turns, each with its id.
    const isMore =
      named !== undefined && (name === undefined || name === reply.callName(named)) && !reply.isWhole(named)
    return isMore && known !== undefined && id !== reply.callId(known) ? named : known
  }
  if (id !== undefined) return named
  return name === undefined && beside !== undefined && !reply.isWhole(beside) ? beside : reply.lastCall
}

const keyAt = (place: number): string => `next ${place}`

/** Returns true if a piece repeats a whole call, either with its id and name or without a name. */
const isAgain = (reply: Reply, known: string, { id, name, params }: Head): boolean => {
  // If every call has the same index, the id may refer to an earlier call.
  const key = (id === undefined ? undefined : reply.keyOfId(id)) ?? known
  const isNamed = id === undefined ? name === undefined : id === reply.callId(key)
  return (
    isNamed &&
    (name === undefined || name === reply.callName(key)) &&
    reply.isWhole(key) &&
    reply.hasParams(key, params)
  )
}

/**
 * Returns true if a piece begins another call than the one it would belong to: if it has another id or name, or brings
 * arguments although that call's own are complete. Some servers give every call index 0, or the same id. A piece
 * without the start of new arguments is not a call: it invalidates the call before it.
 */
const isOther = (reply: Reply, key: string, index: number | undefined, { id, name, params }: Head): boolean => {
  const hasMore = isFields(params) || (typeof params === "string" && /^\s*[{[]/.test(params))
  if (hasMore && reply.isWhole(key) && (name !== undefined || !reply.hasNoParams(key))) return true
  if (name === undefined) return false
  if (id === undefined ? index === undefined : id !== reply.callId(key)) return true
  const known = reply.callName(key)
  return known !== undefined && known !== name
}

/** Begins a call. A piece with only arguments takes the id and the name of the call before it. */
const begin = (reply: Reply, before: string | undefined, { id, name }: Head): string => {
  const key = keyAt(reply.callCount)
  const isBare = before !== undefined && name === undefined && (id === undefined || id === reply.callId(before))
  reply.call(key, isBare ? reply.callId(before) : id, isBare ? reply.callName(before) : name)
  return key
}

const finishReason = (given: string): FinishReason => {
  switch (given.toLowerCase()) {
    case "stop":
    case "stop_sequence":
    case "end_turn":
    case "eos":
    case "eos_token":
      return "stop"
    case "length":
    case "max_tokens":
    case "model_length":
      return "length"
    case "tool_calls":
    case "tool_use":
    case "function_call":
      return "tool-calls"
    case "content_filter":
      return "content-filter"
    case "error":
      return "error"
    default:
      return "other"
  }
}

const toUsage = (usage: Fields | undefined): ReportedUsage => {
  const prompt = count(usage, "prompt_tokens")
  const cacheRead =
    count(fields(usage, "prompt_tokens_details"), "cached_tokens") ??
    count(usage, "prompt_cache_hit_tokens") ??
    count(usage, "cached_tokens")
  const completion = count(usage, "completion_tokens")
  const reasoning = count(fields(usage, "completion_tokens_details"), "reasoning_tokens")
  // Most servers count reasoning as part of the completion, some in addition to it. The total shows which.
  const both = sum(completion, reasoning)
  const isApart = both !== undefined && sum(prompt, both) === count(usage, "total_tokens")
  return {
    inputTokens: promptTokens(prompt, cacheRead),
    outputTokens: { total: isApart ? both : completion, reasoning }
  }
}

// ---------------------------------------------------------------- errors

const reasons: ReadonlyMap<string, Fault["reason"]> = new Map<string, Fault["reason"]>([
  ["insufficient_quota", "quota_exhausted"],
  ["exceeded_current_quota_error", "quota_exhausted"],
  ["billing_hard_limit_reached", "quota_exhausted"],
  ["billing_not_active", "quota_exhausted"],
  ["context_length_exceeded", "context_length"],
  ["exceed_context_size_error", "context_length"],
  ["string_above_max_length", "context_length"],
  ["invalid_api_key", "authentication"],
  ["model_not_found", "not_found"],
  ["rate_limit_exceeded", "rate_limited"],
  ["content_filter", "content_filter"],
  ["content_policy_violation", "content_filter"],
  ["server_error", "server_error"],
  ["overloaded_error", "overloaded"],
  ["invalid_request_error", "invalid_request"],
  ["authentication_error", "authentication"]
])

/** Classifies an error document and its status. */
export const fault = (document: unknown, status: number): FaultFacts => {
  const { code, isReply, known } = errorOf(document)
  // A status is more precise than a general error type; only specific codes override it.
  const reason = statusReason(status)
  const isPrecise = known !== undefined && known !== "invalid_request" && known !== "server_error"
  return { reason: isPrecise ? known : reason, code, isReply }
}

/** Returns true for an answer whose fields say that the vendor behind a router failed. */
const isFailed = (choice: Fields): boolean => isFields(choice["error"]) || networkReason(choice) !== undefined

/** An end that says that the connection to the vendor failed, which another attempt may not meet. */
const networkReason = (choice: Fields): string | undefined =>
  [text(choice, "native_finish_reason"), text(choice, "finish_reason")].find((given) => given === "network_error")

const failedChoice = (choice: Fields): Fault =>
  isFields(choice["error"]) ? inStream(choice) : { reason: "server_error", code: networkReason(choice) }

/** Classifies an error within a reply. */
export const inStream = (chunk: Fields): Fault => {
  const { code, known, status } = errorOf(chunk)
  return { reason: known ?? (status === undefined ? "server_error" : statusReason(status)), code }
}

const errorOf = (document: unknown) => {
  const outer = isFields(document) ? document : undefined
  const error = fields(outer, "error") ?? outer
  const codes = [text(error, "code"), text(error, "type")].filter((code) => code !== undefined)
  const code = codes.find((code) => reasons.has(code)) ?? codes[0]
  // Gateways may write a status as text.
  const status = Number(error?.["code"])
  const named = saysDayIsOver(error) ? "quota_exhausted" : code === undefined ? undefined : reasons.get(code)
  const isVague = named === undefined || named === "invalid_request"
  return {
    code,
    known: isVague && saysTooLong(text(error, "message") ?? text(outer, "error")) ? "context_length" : named,
    status: status >= 400 ? status : undefined,
    // Groq sends this code, in a refusal or in the stream, if the model wrote an invalid call.
    isReply: codes[0] === "tool_use_failed"
  }
}
