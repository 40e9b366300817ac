/**
 * The messages of a thread, as a client builds them from events. To withdraw a reply, all messages before it are sent
 * again, since the protocol has no smaller event.
 */

import type { Json, JsonObject } from "../../kit/json.ts"
import { type AgEvent, make } from "./agEvent.ts"
import { wordOf } from "./uiChunk.ts"

type Message = { [key: string]: Json; readonly id: string; readonly role: string }

/** A call in a message. Its arguments grow. */
type Called = { readonly id: string; readonly type: "function"; readonly function: { name: string; arguments: string } }

/** The messages of a thread. Its methods change it in place. */
export class Transcript {
  readonly #before: ReadonlyArray<JsonObject>
  readonly #made: Array<Message> = []
  readonly #calls = new Map<string, Called>()
  /** The messages of the replies in progress, by the runs of called agents; those of the page's run without one. */
  readonly #replies = new Map<string, Set<string>>()

  constructor(before: ReadonlyArray<JsonObject>) {
    this.#before = before
  }

  /** Adds the messages of an event. */
  add(event: AgEvent): void {
    const added = this.#added(event, wordOf(event, "messageId"))
    if (added === undefined) return
    const subagentRunId = wordOf(event, "subagentRunId")
    if (subagentRunId !== "") added["subagentRunId"] = subagentRunId
    this.#replies.get(subagentRunId)?.add(added.id)
  }

  /** Returns the message that an event adds, if it adds one. */
  #added(event: AgEvent, id: string): Message | undefined {
    switch (event.type) {
      case "TEXT_MESSAGE_START":
        return this.#append({ id, role: "assistant", content: "" })
      case "REASONING_MESSAGE_START":
        return this.#append({ id, role: "reasoning", content: "" })
      case "TEXT_MESSAGE_CONTENT":
      case "REASONING_MESSAGE_CONTENT":
        return this.#grow(id, wordOf(event, "delta"))
      case "TOOL_CALL_START":
        return this.#call(wordOf(event, "parentMessageId"), wordOf(event, "toolCallId"), wordOf(event, "toolCallName"))
      case "TOOL_CALL_ARGS": {
        const called = this.#calls.get(wordOf(event, "toolCallId"))
        if (called !== undefined) called.function.arguments += wordOf(event, "delta")
        return undefined
      }
      case "TOOL_CALL_RESULT":
        return this.#result(id, wordOf(event, "toolCallId"), wordOf(event, "content"))
      case "REASONING_ENCRYPTED_VALUE": {
        const message = this.#made.find((one) => one.id === wordOf(event, "entityId"))
        if (message !== undefined) message["encryptedValue"] = wordOf(event, "encryptedValue")
        return undefined
      }
      case "ACTIVITY_SNAPSHOT":
        return this.#activity(id, wordOf(event, "activityType"), event["content"] ?? {})
      default:
        return undefined
    }
  }

  /** The messages that the events made. */
  get made(): ReadonlyArray<JsonObject> {
    return this.#made
  }

  /** Marks the beginning of a reply of a called agent, or of the page's run. */
  begin(subagentRunId: string): void {
    this.#replies.set(subagentRunId, new Set())
  }

  /** Removes a reply in progress, and returns the remaining messages. */
  withdraw(subagentRunId: string): AgEvent {
    const withdrawn = this.#replies.get(subagentRunId)
    const kept = this.#made.filter(({ id }) => withdrawn?.has(id) !== true)
    this.#made.splice(0, Infinity, ...kept)
    withdrawn?.clear()
    return make("MESSAGES_SNAPSHOT", { messages: [...this.#before, ...this.#made] })
  }

  #append(message: Message): Message {
    this.#made.push(message)
    return message
  }

  #grow(id: string, delta: string): undefined {
    const message = this.#made.find((one) => one.id === id)
    if (message !== undefined) message["content"] = wordOf(message, "content") + delta
  }

  #call(parent: string, id: string, name: string): Message | undefined {
    const called: Called = { id, type: "function", function: { name, arguments: "" } }
    this.#calls.set(id, called)
    const message = this.#made.find((one) => one.id === parent)
    if (message === undefined) return this.#append({ id: parent, role: "assistant", toolCalls: [called] })
    message["toolCalls"] = [...callsIn(message), called]
    return undefined
  }

  /** Adds a result behind its call and the results before it, where a client puts it. */
  #result(id: string, toolCallId: string, content: string): Message {
    const message = { id, role: "tool", toolCallId, content }
    const called = this.#calls.get(toolCallId)
    const at = called === undefined ? -1 : this.#made.findIndex((one) => callsIn(one).includes(called))
    if (at < 0) return this.#append(message)
    const results = this.#made.slice(at + 1).findIndex(({ role }) => role !== "tool")
    this.#made.splice(results < 0 ? this.#made.length : at + 1 + results, 0, message)
    return message
  }

  #activity(id: string, activityType: string, content: Json): Message | undefined {
    const message = { id, role: "activity", activityType, content }
    const at = this.#made.findIndex((one) => one.id === id)
    if (at < 0) return this.#append(message)
    this.#made[at] = message
    return undefined
  }
}

const callsIn = ({ toolCalls }: JsonObject): ReadonlyArray<Json> => (Array.isArray(toolCalls) ? toolCalls : [])
