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
  #mark = 0

  constructor(before: ReadonlyArray<JsonObject>) {
    this.#before = before
  }

  /** Adds the messages of an event. */
  add(event: AgEvent): void {
    const id = wordOf(event, "messageId")
    switch (event.type) {
      case "TEXT_MESSAGE_START":
        this.#made.push({ id, role: "assistant", content: "" })
        return
      case "REASONING_MESSAGE_START":
        this.#made.push({ id, role: "reasoning", content: "" })
        return
      case "TEXT_MESSAGE_CONTENT":
      case "REASONING_MESSAGE_CONTENT":
        return this.#grow(id, wordOf(event, "delta"))
      case "TOOL_CALL_START":
        return this.#call(wordOf(event, "parentMessageId"), wordOf(event, "toolCallId"), wordOf(event, "toolCallName"))
      case "TOOL_CALL_ARGS": {
        const called = this.#calls.get(wordOf(event, "toolCallId"))
        if (called !== undefined) called.function.arguments += wordOf(event, "delta")
        return
      }
      case "TOOL_CALL_RESULT":
        this.#made.push({
          id,
          role: "tool",
          toolCallId: wordOf(event, "toolCallId"),
          content: wordOf(event, "content")
        })
        return
      case "REASONING_ENCRYPTED_VALUE": {
        const message = this.#made.find((one) => one.id === wordOf(event, "entityId"))
        if (message !== undefined) message["encryptedValue"] = wordOf(event, "encryptedValue")
        return
      }
      case "ACTIVITY_SNAPSHOT":
        return this.#activity(id, wordOf(event, "activityType"), event["content"] ?? {})
    }
  }

  /** The messages that the events made. */
  get made(): ReadonlyArray<JsonObject> {
    return this.#made
  }

  /** Marks the beginning of a reply. */
  begin(): void {
    this.#mark = this.#made.length
  }

  /** Removes the reply in progress, and returns the remaining messages. */
  withdraw(): AgEvent {
    this.#made.length = this.#mark
    return make("MESSAGES_SNAPSHOT", { messages: [...this.#before, ...this.#made] })
  }

  #grow(id: string, delta: string): void {
    const message = this.#made.find((one) => one.id === id)
    if (message !== undefined) message["content"] = wordOf(message, "content") + delta
  }

  #call(parent: string, id: string, name: string): void {
    const called: Called = { id, type: "function", function: { name, arguments: "" } }
    this.#calls.set(id, called)
    const message = this.#made.find((one) => one.id === parent)
    const calls = message?.["toolCalls"]
    if (message === undefined) this.#made.push({ id: parent, role: "assistant", toolCalls: [called] })
    else message["toolCalls"] = [...(Array.isArray(calls) ? calls : []), called]
  }

  #activity(id: string, activityType: string, content: Json): void {
    const message = { id, role: "activity", activityType, content }
    const at = this.#made.findIndex((one) => one.id === id)
    if (at < 0) this.#made.push(message)
    else this.#made[at] = message
  }
}
