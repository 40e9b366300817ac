/**
 * Facts about a message that stores and runs need again and again, computed once for each message.
 *
 * A conversation gives all its messages to each of its runs, so only new messages are read.
 */

import * as Arr from "effect/Array"
import * as Equal from "effect/Equal"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { Message } from "../../Message.ts"
import { weigh } from "../../kit/json.ts"

/** Facts about a message, or about all messages of a list. */
interface MessageFacts {
  /** Whether there are only roles and texts, which need no check to be JSON. */
  readonly isBare: boolean
  /** The approximate size in bytes. */
  readonly size: number
  /** Whether there are bytes of a medium, at any depth. */
  readonly hasBytes: boolean
}

/** Returns the facts about the messages of a list. */
export const factsOf = (messages: ReadonlyArray<Message>): MessageFacts =>
  known.get(messages) ?? messages.reduce(including, noFacts)

/** Returns a new list with more messages, and remembers its facts, for which only the added messages are read. */
export const extended = (
  messages: ReadonlyArray<Message>,
  added: ReadonlyArray<Message> = []
): ReadonlyArray<Message> => {
  if (added.length === 0 && known.has(messages)) return messages
  const all = messages.concat(added)
  known.set(all, added.reduce(including, factsOf(messages)))
  return all
}

const noFacts: MessageFacts = { isBare: true, size: 0, hasBytes: false }

const including = (before: MessageFacts, message: Message): MessageFacts => {
  const facts = known.get(message) ?? read(message)
  return {
    isBare: before.isBare && facts.isBare,
    size: before.size + facts.size,
    hasBytes: before.hasBytes || facts.hasBytes
  }
}

const read = (message: Message): MessageFacts => {
  const facts = { isBare: isBare(message), size: weigh(message), hasBytes: message.content.some(hasBytes) }
  known.set(message, facts)
  return facts
}

/** The facts about messages, which are immutable, and about lists made here. */
const known = new WeakMap<Message | ReadonlyArray<Message>, MessageFacts>()

/** Returns whether two messages are equal. `Equal` would keep an entry for each pair, which texts do not need. */
export const isSame = (one: Message, other: Message | undefined): boolean =>
  one === other ||
  (other !== undefined && isBare(one) && isBare(other)
    ? one.role === other.role && Arr.makeEquivalence(isSameText)(one.content, other.content)
    : Equal.equals(one, other))

const isSameText = (one: Content, other: Content): boolean =>
  one.type === "text" && other.type === "text" && one.text === other.text

/** Returns whether a message, which may come from outside, has only a role and texts. */
const isBare = ({ content, metadata, name, role }: Message): boolean =>
  typeof role === "string" && name === undefined && metadata === undefined && content.every(isBareText)

/** Returns whether a content, which may come from outside, is a plain text. */
const isBareText = (part: Content): boolean =>
  part.type === "text" &&
  typeof part.text === "string" &&
  Object.keys(part).length === 2 &&
  Object.getPrototypeOf(part) === Object.prototype

const hasBytes = (part: Content): boolean =>
  part.type === "tool_result" ? part.content.some(hasBytes) : Contents.isMedia(part) && part.data !== undefined
