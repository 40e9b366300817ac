/**
 * Reads replies and errors of the Messages API.
 */

import { jsonObject } from "../../kit/json.ts"
import type { FinishReason, ReportedUsage } from "../../StreamPart.ts"
import { name } from "./anthropicRequest.ts"
import { type Fault, saysTooLong, statusReason } from "./providerFault.ts"
import type { Decoder } from "./frames.ts"
import { count, type Fields, fields, isFields, list, parse, string, sum, text } from "./readFields.ts"
import { type Reply, unknownReason } from "./replyParts.ts"
import { Signatures } from "./signatures.ts"

/** Reads the blocks of a message, by their index. */
const makeBlocks = (reply: Reply) => {
  const signatures = new Signatures(name, reply)
  const hosted = new Hosted(reply)

  const start = (index: number, block: Fields | undefined) => {
    switch (string(block, "type")) {
      case "text":
        list(block, "citations").forEach((citation) => cite(reply, citation))
        return reply.text(string(block, "text") ?? "")
      case "thinking":
        signatures.add(String(index), text(block, "signature"))
        return reply.thinking(string(block, "thinking") ?? "")
      case "redacted_thinking":
        return reply.endThinking({ [name]: { redacted: string(block, "data") ?? "" } })
      case "tool_use":
        return beginCall(reply, String(index), block)
      case "server_tool_use":
        return hosted.begin(index, block)
    }
    if (text(block, "tool_use_id") !== undefined) hosted.end(block)
  }

  const delta = (index: number, part: Fields | undefined) => {
    switch (string(part, "type")) {
      case "thinking_delta":
        return reply.thinking(string(part, "thinking") ?? "")
      case "signature_delta":
        return signatures.add(String(index), text(part, "signature"))
      case "input_json_delta":
        hosted.params(index, string(part, "partial_json") ?? "")
        return reply.params(String(index), string(part, "partial_json") ?? "")
      case "citations_delta":
        return cite(reply, fields(part, "citation"))
      default:
        return reply.text(string(part, "text") ?? "")
    }
  }

  const stop = (index: number) => {
    reply.endText()
    signatures.end(String(index))
    reply.endCall(String(index))
  }

  return {
    event: (event: Fields): void => {
      const [index, type] = [count(event, "index") ?? 0, string(event, "type")]
      if (type === "content_block_start") start(index, fields(event, "content_block"))
      else if (type === "content_block_stop") stop(index)
      else delta(index, fields(event, "delta"))
    },
    whole: (blocks: ReadonlyArray<Fields>): void =>
      blocks.forEach((block, index) => {
        start(index, block)
        stop(index)
      }),
    pause: () => hosted.pause()
  }
}

/** Reports a citation: of a page, of a search result of the caller, or of a document. */
const cite = (reply: Reply, citation: Fields | undefined): void =>
  reply.source({
    url: text(citation, "url") ?? text(citation, "source"),
    title: text(citation, "title") ?? text(citation, "document_title"),
    quote: text(citation, "cited_text")
  })

const beginCall = (reply: Reply, key: string, block: Fields | undefined): void => {
  reply.call(key, text(block, "id"), string(block, "name") ?? "")
  const input = fields(block, "input")
  if (input !== undefined && Object.keys(input).length > 0) reply.input(key, input)
}

interface Use {
  readonly block: Fields
  params: string
}

/** The calls that Anthropic runs. Each arrives as two blocks: the call and its result. */
class Hosted {
  readonly #reply: Reply
  readonly #uses = new Map<number, Use>()
  readonly #byId = new Map<string, Use>()

  constructor(reply: Reply) {
    this.#reply = reply
  }

  begin(index: number, block: Fields | undefined): void {
    if (block === undefined) return
    const use = { block, params: "" }
    this.#uses.set(index, use)
    this.#byId.set(text(block, "id") ?? "", use)
  }

  params(index: number, fragment: string): void {
    const use = this.#uses.get(index)
    if (use === undefined) return
    use.params += fragment
    this.#reply.keep(fragment.length)
  }

  /** Reads a result. Its call is in the reply before this one if the vendor paused between them. */
  end(result: Fields | undefined): void {
    const id = text(result, "tool_use_id")
    if (result === undefined || id === undefined) return
    const use = this.#byId.get(id)
    this.#byId.delete(id)
    const isError = string(fields(result, "content"), "type")?.endsWith("_error") === true
    const sources = list(result, "content").map((page) => ({ url: text(page, "url"), title: text(page, "title") }))
    if (use === undefined) {
      const tool = (string(result, "type") ?? "").replace(/_tool_result$/, "")
      this.#reply.hosted({ id, name: tool, input: {}, isError, sources, only: "result" }, name, [result])
      return
    }
    const call = { id, name: string(use.block, "name") ?? "", input: inputOf(use), isError, sources }
    this.#reply.hosted(call, name, [{ ...use.block, input: call.input }, result])
  }

  /** Reports the calls without a result, which the vendor runs once the paused reply is sent back. */
  pause(): void {
    for (const [id, use] of this.#byId) {
      const call = { id, name: string(use.block, "name") ?? "", input: inputOf(use), only: "call" } as const
      this.#reply.hosted(call, name, [{ ...use.block, input: call.input }])
    }
    this.#byId.clear()
  }
}

const inputOf = ({ block, params }: Use) => jsonObject(params === "" ? block["input"] : parse(params))

/** Reads events and whole messages. */
export const decoder = (reply: Reply): Decoder => {
  const counts = new Counts()
  let reason: FinishReason | undefined
  let told: string | undefined
  let stopSequence: string | undefined
  let first: Fields | undefined
  const blocks = makeBlocks(reply)

  const finish = (given: FinishReason) => {
    if (given === "pause") blocks.pause()
    reply.finish(
      given,
      counts.usage,
      stopSequence === undefined ? unknownReason(name, given, told) : { [name]: { stopSequence } }
    )
  }

  const stopped = (of: Fields | undefined) => {
    const given = text(of, "stop_reason")
    if (given !== undefined) {
      reason = finishReason(given)
      told = given
    }
    stopSequence = text(of, "stop_sequence") ?? stopSequence
  }

  // A stream also begins with a message. It may already hold content, or be the whole reply.
  const readMessage = (message: Fields | undefined) => {
    counts.take(fields(message, "usage"))
    reply.about(text(message, "id"), text(message, "model"), counts.usage)
    blocks.whole(list(message, "content"))
  }

  return {
    event: (event) => {
      switch (string(event, "type")) {
        case "content_block_delta":
        case "content_block_start":
        case "content_block_stop":
          return void blocks.event(event)
        case "message_start":
          first = fields(event, "message")
          return void readMessage(first)
        case "message_delta":
          counts.take(fields(event, "usage"))
          return void stopped(fields(event, "delta"))
        case "message_stop":
          if (reason === undefined) stopped(first)
          return void finish(reason ?? "unknown")
        case "error":
          return inStream(event)
        case undefined:
          // A gateway may drop the type of an error.
          return fields(event, "error") === undefined ? undefined : inStream(event)
      }
      return undefined
    },
    failed: inStream,
    whole: (message) => {
      if (string(message, "type") === "error" || fields(message, "error") !== undefined) return inStream(message)
      readMessage(message)
      stopped(message)
      if (reason !== undefined) finish(reason)
      return undefined
    },
    end: () => {
      if (reason !== undefined) finish(reason)
    },
    hasEnded: () => reason !== undefined
  }
}

/**
 * The token counts of a reply. They are cumulative: each replaces the one before. Cached input is part of the input.
 */
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
  const error = fields(event, "error")
  const code = string(error, "type")
  return { reason: isFiltered(error) ? "content_filter" : (reasons.get(code ?? "") ?? "server_error"), code }
}

// A withheld reply is reported as a bad request. The message is only inspected, never passed on.
const isFiltered = (error: Fields | undefined): boolean =>
  /blocked by content filter/i.test(string(error, "message") ?? "")

/** Classifies an error document and its status. */
export const fault = (document: unknown, status: number): Pick<Fault, "reason" | "code"> => {
  const error = isFields(document) ? fields(document, "error") : undefined
  const code = string(error, "type")
  const message = string(error, "message") ?? ""
  if (status === 400 && isFiltered(error)) return { reason: "content_filter", code }
  if (status === 400 && saysTooLong(message)) return { reason: "context_length", code }
  if (status === 400 && /credit balance|usage limits/i.test(message)) return { reason: "quota_exhausted", code }
  return { reason: reasons.get(code ?? "") ?? statusReason(status), code }
}
