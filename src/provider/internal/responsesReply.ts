/** Reads replies in OpenAI's Responses format: events about items, and whole responses. */

import { jsonObject, type JsonObject } from "../../kit/json.ts"
import type { FinishReason, ReportedUsage } from "../../StreamPart.ts"
import { inStream } from "./chatReply.ts"
import type { Decoder } from "./frames.ts"
import type { Fault } from "./providerFault.ts"
import { count, type Fields, fields, list, string, text } from "./readFields.ts"
import type { Ran, Reply } from "./replyParts.ts"
import { promptTokens } from "./replyUsage.ts"
import { name } from "./responsesRequest.ts"

/** Reads the items of a response, by their index. */
class Items {
  readonly #reply: Reply
  /** Items of which something arrived before their end. */
  readonly #begun = new Set<string>()
  /** Reasoning that has ended. The next item shows whether it led to a call. */
  #reasoning: { readonly id: string; readonly encrypted: string } | undefined
  isRefused = false

  constructor(reply: Reply) {
    this.#reply = reply
  }

  start(key: string, item: Fields | undefined): void {
    if (string(item, "type") !== "function_call") return this.#endReasoning()
    const callId = text(item, "call_id")
    this.#endReasoning(callId)
    this.#reply.call(key, callId, string(item, "name") ?? "")
  }

  text(key: string, delta: string): void {
    this.#begun.add(key)
    this.#endReasoning()
    this.#reply.text(delta)
  }

  thinking(key: string, delta: string): void {
    this.#begun.add(key)
    this.#reply.thinking(delta)
  }

  params(key: string, delta: string): void {
    this.#begun.add(key)
    this.#reply.params(key, delta)
  }

  /** Ends an item. Reads everything that did not arrive in pieces from the whole item. */
  stop(key: string, item: Fields | undefined): void {
    const isNew = !this.#begun.has(key)
    switch (string(item, "type")) {
      case "message":
        if (isNew) list(item, "content").forEach((part) => this.#part(key, part))
        return this.#reply.endText()
      case "reasoning":
        if (isNew)
          this.thinking(
            key,
            list(item, "summary")
              .map((part) => string(part, "text") ?? "")
              .join(paragraph)
          )
        return this.#keep(text(item, "id"), text(item, "encrypted_content"))
      case "function_call":
        if (isNew) this.params(key, string(item, "arguments") ?? "")
        return this.#reply.endCall(key)
      case "web_search_call":
        return this.#search(item)
      case "code_interpreter_call":
        return this.#code(item)
      case "image_generation_call":
        return this.#reply.file(`image/${text(item, "output_format") ?? "png"}`, string(item, "result") ?? "")
    }
  }

  end(): void {
    this.#endReasoning()
  }

  #search(item: Fields | undefined): void {
    const action = fields(item, "action")
    const { sources: _, ...input } = jsonObject(action)
    const sources = list(action, "sources").map((page) => ({ url: text(page, "url"), title: text(page, "title") }))
    this.#ran("web_search", item, input, sources)
  }

  #code(item: Fields | undefined): void {
    this.#ran("code_execution", item, { code: string(item, "code") ?? "" }, [])
  }

  #ran(tool: string, item: Fields | undefined, input: JsonObject, sources: NonNullable<Ran["sources"]>): void {
    const isError = string(item, "status") === "failed"
    const items = item === undefined ? [] : [item]
    this.#reply.hosted({ id: text(item, "id"), name: tool, input, isError, sources }, name, items)
  }

  #part(key: string, part: Fields): void {
    if (string(part, "type") === "refusal") this.isRefused = true
    this.text(key, string(part, "text") ?? string(part, "refusal") ?? "")
  }

  #keep(id: string | undefined, encrypted: string | undefined): void {
    this.#endReasoning()
    if (encrypted === undefined) return
    this.#reply.keep(encrypted.length)
    this.#reasoning = { id: id ?? "", encrypted }
  }

  #endReasoning(callId?: string): void {
    const reasoning = this.#reasoning
    if (reasoning === undefined) return
    this.#reasoning = undefined
    this.#reply.endThinking({ [name]: { ...reasoning, ...(callId === undefined ? {} : { callId }) } })
  }
}

const paragraph = "\n\n"

/** Reads events and whole responses. */
export const decoder = (reply: Reply): Decoder => {
  const items = new Items(reply)

  const about = (response: Fields | undefined) => reply.about(text(response, "id"), text(response, "model"))

  const finish = (response: Fields | undefined) => {
    items.end()
    const reason = finishReason(response, reply.hasCalls)
    reply.finish(items.isRefused ? "content-filter" : reason, toUsage(fields(response, "usage")))
  }

  const take = (event: Fields): Fault | undefined => {
    const key = String(count(event, "output_index") ?? 0)
    const delta = string(event, "delta") ?? ""
    switch (string(event, "type")) {
      case "response.output_text.delta":
        return void items.text(key, delta)
      case "response.refusal.delta":
        items.isRefused = true
        return void items.text(key, delta)
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return void items.thinking(key, delta)
      case "response.reasoning_summary_part.added":
        return (count(event, "summary_index") ?? 0) > 0 ? void items.thinking(key, paragraph) : undefined
      case "response.function_call_arguments.delta":
        return void items.params(key, delta)
      case "response.output_item.added":
        return void items.start(key, fields(event, "item"))
      case "response.output_item.done":
        return void items.stop(key, fields(event, "item"))
      case "response.created":
        return void about(fields(event, "response"))
      case "response.completed":
      case "response.incomplete":
        return void finish(fields(event, "response"))
      case "response.failed":
        return inStream(fields(event, "response") ?? event)
      case "error":
        return inStream(event)
    }
    return event["error"] === undefined || event["error"] === null ? undefined : inStream(event)
  }

  return {
    event: take,
    failed: inStream,
    whole: (response) => {
      if (fields(response, "error") !== undefined) return inStream(response)
      about(response)
      list(response, "output").forEach((item, index) => {
        items.start(String(index), item)
        items.stop(String(index), item)
      })
      if (text(response, "status") !== undefined) finish(response)
      return undefined
    },
    end: () => undefined,
    hasEnded: () => reply.isFinished
  }
}

const finishReason = (response: Fields | undefined, hasCalls: boolean): FinishReason => {
  if (string(response, "status") === "completed") return hasCalls ? "tool-calls" : "stop"
  switch (string(fields(response, "incomplete_details"), "reason")) {
    case "max_output_tokens":
      return "length"
    case "content_filter":
      return "content-filter"
    default:
      return "other"
  }
}

const toUsage = (usage: Fields | undefined): ReportedUsage => ({
  inputTokens: promptTokens(
    count(usage, "input_tokens"),
    count(fields(usage, "input_tokens_details"), "cached_tokens")
  ),
  outputTokens: {
    total: count(usage, "output_tokens"),
    reasoning: count(fields(usage, "output_tokens_details"), "reasoning_tokens")
  }
})
