/** Reads replies in OpenAI's Responses format: events about items, and whole responses. */

import { jsonObject, type JsonObject } from "../../kit/json.ts"
import type { FinishReason, ReportedUsage } from "../../StreamPart.ts"
import { cite, inStream } from "./chatReply.ts"
import type { Decoder } from "./frames.ts"
import type { Fault } from "./providerFault.ts"
import { count, type Fields, fields, list, string, text } from "./readFields.ts"
import { type Ran, type Reply, unknownReason } from "./replyParts.ts"
import { promptTokens } from "./replyUsage.ts"
import { name } from "./responsesRequest.ts"

/** Reads the items of a response, by their index. */
class Items {
  readonly #reply: Reply
  /** The pieces that arrived, by the index of their item and the place in it. Later events repeat the whole. */
  readonly #arrived = new Map<string, string>()
  readonly #started = new Set<string>()
  readonly #ended = new Set<string>()
  #areNumbered = true
  /** Reasoning that has ended. The next item shows whether it led to a call. */
  #reasoning: { readonly id: string; readonly encrypted: string } | undefined
  isRefused = false

  constructor(reply: Reply) {
    this.#reply = reply
  }

  /** Notes whether an event names its item. Without that, a whole response cannot be matched to what arrived. */
  note(event: Fields): void {
    if (count(event, "output_index") === undefined) this.#areNumbered = false
  }

  start(key: string, item: Fields | undefined): void {
    this.#started.add(key)
    if (string(item, "type") !== "function_call") return this.#endReasoning()
    const callId = text(item, "call_id")
    this.#endReasoning(callId)
    this.#reply.call(key, callId, string(item, "name") ?? "")
  }

  text(key: string, place: number, delta: string): void {
    this.#add(`${key}/${place}`, delta)
    this.#endReasoning()
    this.#reply.text(delta)
  }

  /** Reads what is missing of a text that is whole now. */
  wholeText(key: string, place: number, whole: string): void {
    const rest = this.#rest(`${key}/${place}`, whole)
    if (rest !== "") this.text(key, place, rest)
  }

  thinking(key: string, delta: string): void {
    this.#add(key, delta)
    this.#reply.thinking(delta)
  }

  params(key: string, delta: string): void {
    this.#add(key, delta)
    this.#reply.params(key, delta)
  }

  wholeParams(key: string, whole: string): void {
    this.params(key, this.#rest(key, whole))
  }

  /** Ends the items of a whole response of which no end arrived. */
  complete(items: ReadonlyArray<Fields>): void {
    const isEmpty = this.#started.size === 0 && this.#arrived.size === 0
    if (!this.#areNumbered && !isEmpty) return
    items.forEach((item, index) => {
      const key = String(index)
      if (this.#ended.has(key)) return
      if (!this.#started.has(key)) this.start(key, item)
      this.stop(key, item)
    })
  }

  /** Ends an item. Reads everything that did not arrive in pieces from the whole item. */
  stop(key: string, item: Fields | undefined): void {
    this.#ended.add(key)
    switch (string(item, "type")) {
      case "message":
        list(item, "content").forEach((part, place) => this.#part(key, place, part))
        return this.#reply.endText()
      case "reasoning":
        if (!this.#arrived.has(key))
          this.thinking(
            key,
            list(item, "summary")
              .map((part) => string(part, "text") ?? "")
              .join(paragraph)
          )
        return this.#keep(text(item, "id"), text(item, "encrypted_content"))
      case "function_call":
        this.wholeParams(key, string(item, "arguments") ?? "")
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

  #part(key: string, place: number, part: Fields): void {
    if (string(part, "type") === "refusal") this.isRefused = true
    list(part, "annotations").forEach((annotation) => cite(this.#reply, annotation))
    this.wholeText(key, place, string(part, "text") ?? string(part, "refusal") ?? "")
  }

  #add(key: string, delta: string): void {
    this.#arrived.set(key, (this.#arrived.get(key) ?? "") + delta)
  }

  /** Returns what is missing of a whole text. Nothing if another text arrived, since that cannot be taken back. */
  #rest(key: string, whole: string): string {
    const arrived = this.#arrived.get(key) ?? ""
    return whole.startsWith(arrived) ? whole.slice(arrived.length) : ""
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
    items.complete(list(response, "output"))
    items.end()
    const reason = finishReason(response, reply.hasCalls)
    const given = string(fields(response, "incomplete_details"), "reason") ?? string(response, "status")
    const usage = toUsage(fields(response, "usage"))
    reply.finish(items.isRefused ? "content-filter" : reason, usage, unknownReason(name, reason, given))
  }

  const take = (event: Fields): Fault | undefined => {
    const key = String(count(event, "output_index") ?? 0)
    const place = count(event, "content_index") ?? 0
    const delta = string(event, "delta") ?? ""
    if (string(event, "type")?.startsWith("response.output_") === true) items.note(event)
    switch (string(event, "type")) {
      case "response.output_text.delta":
        return void items.text(key, place, delta)
      case "response.output_text.done":
        return void items.wholeText(key, place, string(event, "text") ?? "")
      case "response.output_text.annotation.added":
        return void cite(reply, fields(event, "annotation"))
      case "response.refusal.delta":
        items.isRefused = true
        return void items.text(key, place, delta)
      case "response.refusal.done":
        items.isRefused = true
        return void items.wholeText(key, place, string(event, "refusal") ?? "")
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return void items.thinking(key, delta)
      case "response.reasoning_summary_part.added":
        return (count(event, "summary_index") ?? 0) > 0 ? void items.thinking(key, paragraph) : undefined
      case "response.function_call_arguments.delta":
        return void items.params(key, delta)
      case "response.function_call_arguments.done":
        return void items.wholeParams(key, string(event, "arguments") ?? "")
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
      items.complete(list(response, "output"))
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
